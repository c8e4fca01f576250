"""Sums of weights, protected as a dimension or in the clear."""
