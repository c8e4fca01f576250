"""Hadamard response inside disclosed blocks."""
