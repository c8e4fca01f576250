"""Mechanisms from block designs: randomized response and projective geometry."""
