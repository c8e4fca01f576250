"""Draws that can be repeated, for tests and simulations: never for privacy."""

from ldpstream.agents.testing.seeded import SeededEntropy

__all__ = ["SeededEntropy"]
