"""Draws that can be repeated, for tests and simulations: never for privacy."""

from collections.abc import Callable, Sequence
from typing import Any

from ldpstream.agents.engine.testing import SeededEntropy
from ldpstream.mechanisms.exact.entropy import Entropy, Words

__all__ = ["CountedEntropy", "SeededEntropy", "assert_alike"]

_SEEDS = range(12)


class CountedEntropy(SeededEntropy):
    """The words of a seed, and how many each call took."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.calls: list[int] = []

    def words(self, n: int) -> Words:
        self.calls.append(n)
        return super().words(n)


def assert_alike(draw: Callable[[Any, Entropy], object], values: Sequence[Any]) -> None:
    """Assert that with the same words all values take equally many, in calls of the same sizes."""
    for seed in _SEEDS:
        found = set()
        for value in values:
            entropy = CountedEntropy(seed)
            draw(value, entropy)
            found.add(tuple(entropy.calls))
        assert len(found) == 1, seed
