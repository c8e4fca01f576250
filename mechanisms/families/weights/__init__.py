"""Weights of values, protected as one more dimension or sent in the clear."""
