"""Integers with two-sided geometric noise, clamped to a range (docs/theory.md sections 8 and 9).

The noise is the difference D of two geometrics, `P(D = d) = (1 - alpha)/(1 + alpha) alpha^|d|`. It
is drawn as a sign and a size: `D >= 1` with probability `alpha/(1 + alpha)`; then `D - 1`, and
otherwise `-D`, is one geometric G. The s lowest binary digits of G are independent, digit j being 1
with probability `alpha^(2^j) / (1 + alpha^(2^j))`; the rest, `floor(G / 2^s)`, counts trials of
`alpha^(2^s)` up to the first that fails.

The work therefore grows only with the logarithm of G, and every draw is an exact Bernoulli trial.
Alpha is a multiple of 2^-64; its powers have longer expansions. A trial compares a uniform number
with the power, 64 binary digits at a time: all but one in 2^64 are decided by the first word.

A table of the inverse distribution would end somewhere, and the tails of one value would hold
outputs that are impossible for another. Only the resulting integer is clamped; to clamp the two
geometrics would break the guarantee. When the trials end does not depend on the value: they go on
until one fails, or end after the first where one success clamps every value. The words alone decide
how many are drawn, so that whoever counts them on the device learns nothing about the value.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.exact.entropy import WORD, Entropy, fair_coins

Integers = NDArray[np.int64]

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

    def bernoulli(self, entropy: Entropy, numbers: Integers) -> NDArray[np.bool_]:
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


@dataclass(frozen=True)
class TwoSidedGeometric:
    """Noise for integers `0..m-1` with m up to `largest` >= 2, of one or several kinds.

    Kind i has `alpha = thresholds[i] / 2^64`.
    """

    thresholds: tuple[int, ...]
    largest: int

    @cached_property
    def low_digits(self) -> int:
        """Number s of binary digits drawn one by one; later trials fail at least half of the time.

        At most the number of digits of `largest - 1`, beyond which one success clamps. All kinds
        use the s of the largest alpha, since any s gives the same distribution.
        """
        powers = Powers(max(self.thresholds), 1)
        s = 0
        while 1 << s < self.largest and 2 * powers.digits(s, 1) >= WORD:
            s += 1
        return s

    @cached_property
    def powers(self) -> PowerTable:
        """The probabilities of all trials: levels 0..s of every kind."""
        levels = self.low_digits + 1
        return PowerTable(tuple(Powers(threshold, levels) for threshold in self.thresholds))

    def move(
        self, entropy: Entropy, values: Integers, last: Integers, kinds: Integers | None = None
    ) -> Integers:
        """Return `clamp(value + D, 0, last)` for values in `0..last`, int64 of shape `(n,)`.

        `kinds` is the kind of each value's noise, int64 `(n,)`, by default the first.
        """
        # Where a kind's trials begin in the table of powers.
        base = np.zeros_like(values) if kinds is None else kinds * (self.low_digits + 1)
        drawn = self._odds(entropy, base)
        up = drawn[:, 0] == 1
        size = drawn[:, 1:] @ (1 << np.arange(self.low_digits, dtype=np.int64))
        active = np.arange(len(values))
        while active.size:
            active = active[self.powers.bernoulli(entropy, base[active] + self.low_digits)]
            # Beyond `largest` the result is clamped, whatever follows.
            size[active] = np.minimum(size[active] + (1 << self.low_digits), self.largest)
            if 1 << self.low_digits >= self.largest:
                # The first success clamps, whatever the value is. Tiny budgets would have millions.
                break
        return np.where(up, np.minimum(values + 1 + size, last), np.maximum(values - size, 0))

    def _odds(self, entropy: Entropy, base: Integers) -> Integers:
        """Return the signs and binary digits of n draws, int64 of shape `(n, 1 + s)`.

        An entry is 1 with probability `a / (1 + a)`, where `a = alpha` in column 0 and
        `alpha^(2^j)` in column `1 + j`. A fair coin chooses between 0 and a trial of a; a failed
        trial starts over.
        """
        of_column = np.concatenate(([0], np.arange(self.low_digits)))
        trials = (base[:, None] + of_column).ravel()
        drawn = np.zeros(trials.size, dtype=np.int64)
        undecided = np.arange(drawn.size)
        while undecided.size:
            undecided = undecided[fair_coins(entropy, undecided.size)]
            success = self.powers.bernoulli(entropy, trials[undecided])
            drawn[undecided[success]] = 1
            undecided = undecided[~success]
        return drawn.reshape(len(base), of_column.size)
