"""Variances, intervals, anytime bounds and projections."""
