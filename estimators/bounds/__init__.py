"""Estimates with bounds, from sums over reports."""
