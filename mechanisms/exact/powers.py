"""Exact Bernoulli draws with the probabilities alpha, alpha^2, alpha^4, ..., alpha^(2^j).

`alpha = T / 2^64` is a multiple of 2^-64; its powers have longer expansions. A draw compares a
uniform real number with the power, 64 binary digits at a time: all but one in 2^64 draws are
decided by the first word.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.exact.entropy import WORD, Entropy

_WORD_BITS = 64


@dataclass(frozen=True)
class Powers:
    """The powers `alpha^(2^j)`, `j = 0..levels-1`, of `alpha = threshold / 2^64` in (0, 1)."""

    threshold: int
    levels: int

    def digits(self, level: int, words: int) -> int:
        """Return `floor(alpha^(2^level) * 2^(64 words))`, exactly.

        Squares lower and upper bounds of a fixed precision, and doubles the precision until both
        have these digits.
        """
        bits = _WORD_BITS * (words + 2)
        while True:
            low = high = self.threshold << (bits - _WORD_BITS)
            for _ in range(level):
                low, high = low * low >> bits, -(-high * high >> bits)
            spare = bits - _WORD_BITS * words
            if low >> spare == high >> spare:
                return low >> spare
            bits *= 2

    @cached_property
    def first_digits(self) -> NDArray[np.uint64]:
        """The first 64 binary digits of every level, uint64 of shape `(levels,)`."""
        return np.array([self.digits(level, 1) for level in range(self.levels)], dtype=np.uint64)

    def beyond_first(self, entropy: Entropy, level: int) -> bool:
        """Return whether a number that equals the power in its first 64 digits lies below it.

        The expansion ends after `2^level` words; a number that is still equal is not below it.
        """
        for words in range(2, (1 << level) + 1):
            digit = self.digits(level, words) % WORD
            word = int(entropy.words(1)[0])
            if word != digit:
                return word < digit
        return False


@dataclass(frozen=True)
class PowerTable:
    """The powers of several alphas, all with the same number of levels.

    Level j of alpha i has the number `i * levels + j`.
    """

    powers: tuple[Powers, ...]

    @cached_property
    def first_digits(self) -> NDArray[np.uint64]:
        """The first 64 binary digits of every power, uint64."""
        return np.concatenate([powers.first_digits for powers in self.powers])

    def bernoulli(self, entropy: Entropy, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return draws, the i-th True with probability exactly the power of `numbers[i]`, `(n,)`.

        Takes one word for each draw, in order; then, for each draw whose word equals the power's
        first digits, further words one by one until they differ.
        """
        if not len(numbers):
            return np.zeros(0, dtype=np.bool_)
        words = entropy.words(len(numbers))
        limits = self.first_digits[numbers]
        drawn: NDArray[np.bool_] = words < limits
        for place in np.flatnonzero(words == limits):
            alpha, level = divmod(int(numbers[place]), self.powers[0].levels)
            drawn[place] = self.powers[alpha].beyond_first(entropy, level)
        return drawn
