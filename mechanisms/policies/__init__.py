"""Policies: a budget for every pair of values, how policies compare, and how they add up."""
