"""Likelihood of the counts of one ordered dimension: its maximum, profiles, and a smooth curve."""
