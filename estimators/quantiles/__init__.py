"""Quantiles and their bounds, from estimates of prefixes."""
