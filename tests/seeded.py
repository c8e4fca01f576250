"""Draws that can be repeated, for tests and simulations: never for privacy."""

from ldpstream.agents.testing.owner import SeededEntropy

__all__ = ["SeededEntropy"]
