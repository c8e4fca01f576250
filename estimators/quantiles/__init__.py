"""Quantiles and their bounds from prefix sums."""
