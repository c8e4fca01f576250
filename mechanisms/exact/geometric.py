"""Integers with two-sided geometric noise, clamped to a range (docs/theory.md sections 8 and 9).

The noise is the difference D of two geometrics, `P(D = d) = (1 - alpha)/(1 + alpha) alpha^|d|`. It
is drawn as a sign and a size: `D >= 1` with probability `alpha/(1 + alpha)`; then `D - 1`, and
otherwise `-D`, is one geometric G. The s lowest binary digits of G are independent, digit j being 1
with probability `alpha^(2^j) / (1 + alpha^(2^j))`; the rest, `floor(G / 2^s)`, counts trials of
`alpha^(2^s)` up to the first that fails.

The work therefore grows only with the logarithm of G, and every draw is an exact Bernoulli trial.
A table of the inverse distribution would end somewhere, and the tails of one value would hold
outputs that are impossible for another. Only the resulting integer is clamped (to clamp the two
geometrics would break the guarantee): trials stop once further ones could not change it.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.exact.entropy import WORD, Entropy, fair_coins
from ldpstream.mechanisms.exact.powers import Powers, PowerTable

Integers = NDArray[np.int64]


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
        # Once G reaches this, the result is clamped whatever follows.
        room = np.where(up, last - values - 1, values)
        active = np.flatnonzero(size < room)
        while active.size:
            active = active[self.powers.bernoulli(entropy, base[active] + self.low_digits)]
            size[active] += 1 << self.low_digits
            active = active[size[active] < room[active]]
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
