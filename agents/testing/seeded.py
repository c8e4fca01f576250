"""Reproducible randomness for tests: never for privacy."""

from typing import Final

import numpy as np

from ldpstream.mechanisms.exact.entropy import Words

_NOISE: Final = int.from_bytes(b"noise", "big")
"""Separates this stream from other uses of the same seed."""


class SeededEntropy:
    """A reproducible generator (PCG64) of independent, uniform words.

    Its words differ from those of `numpy.random.default_rng(seed)`: simulations draw their values
    from that, and noise from the same words would depend on the values.
    """

    def __init__(self, seed: int) -> None:
        sequence = np.random.SeedSequence(seed, spawn_key=(_NOISE,))
        self._bits = np.random.PCG64(sequence)

    def words(self, n: int) -> Words:
        """Return the next `n` words, uint64 of shape `(n,)`."""
        return self._bits.random_raw(n)
