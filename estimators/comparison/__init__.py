"""Comparisons of two spans of time."""
