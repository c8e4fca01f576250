"""Exact arithmetic and randomness: dyadic probabilities, entropy, rounding, transforms."""
