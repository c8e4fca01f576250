"""Draws that can be repeated, for tests and simulations: never for privacy."""

import os
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final
from zlib import crc32

from ldpstream.agents.engine.testing import SeededEntropy
from ldpstream.mechanisms.exact.entropy import Entropy, SystemEntropy, Words

__all__ = ["SYSTEM_WORDS", "CountedEntropy", "SeededEntropy", "assert_alike", "seed_system"]

_SEEDS = range(12)
SYSTEM_WORDS: Final = SystemEntropy.words
"""The words of the operating system's generator, which tests are not to depend on."""


def seed_system(name: str) -> None:
    """Let `SystemEntropy` return the words of a seed that follows from a name, in this process.

    Processes forked from it draw from the operating system: they must not share its words.
    """
    process, entropy = os.getpid(), SeededEntropy(crc32(name.encode()))

    @wraps(SYSTEM_WORDS)
    def words(system: SystemEntropy, n: int) -> Words:
        return entropy.words(n) if os.getpid() == process else SYSTEM_WORDS(system, n)

    # Code that is given no entropy makes this object itself, so only its class can be changed.
    SystemEntropy.words = words  # type: ignore[method-assign]  # replaced on purpose, see above


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
