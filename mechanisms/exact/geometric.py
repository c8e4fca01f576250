"""Integers moved by two-sided geometric noise, and clamped (docs/theory.md sections 8 and 9).

The noise is the difference D of two geometrics, `P(D = d) = (1 - alpha)/(1 + alpha) alpha^|d|`. It
is drawn as its sign and its size, which has the same distribution: `D >= 1` with probability
`alpha/(1 + alpha)`, and then `D - 1`, else `-D`, is one geometric G. Its s lowest binary digits are
independent, digit j being 1 with probability `alpha^(2^j) / (1 + alpha^(2^j))`; the rest,
`floor(G / 2^s)`, counts trials of `alpha^(2^s)` up to the first that fails. So the work grows with
the logarithm of G only, and every draw is an exact Bernoulli trial: no output that a value can have
is impossible for another, as in the tails of a table of the inverse distribution. Only the moved
integer is clamped: trials end where further ones could not change it.
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
    """Noise of one or several kinds, for integers `0..m-1` with m up to `largest` >= 2.

    Kind i has `alpha = thresholds[i] / 2^64`.
    """

    thresholds: tuple[int, ...]
    largest: int

    @cached_property
    def low_digits(self) -> int:
        """Number s of binary digits drawn one by one: trials then fail half of the time or more.

        No more than there are in `largest - 1`: one success beyond them clamps. The same for all
        kinds, as the largest alpha needs it: any s gives the same distribution.
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
        # What G must reach to end at the border whatever follows.
        room = np.where(up, last - values - 1, values)
        active = np.flatnonzero(size < room)
        while active.size:
            active = active[self.powers.bernoulli(entropy, base[active] + self.low_digits)]
            size[active] += 1 << self.low_digits
            active = active[size[active] < room[active]]
        return np.where(up, np.minimum(values + 1 + size, last), np.maximum(values - size, 0))

    def _odds(self, entropy: Entropy, base: Integers) -> Integers:
        """Return signs and binary digits, int64 of shape `(n, 1 + s)`, of n kinds.

        1 with probability `a / (1 + a)`, `a = alpha` in column 0 and `alpha^(2^j)` in column
        `1 + j`. A fair coin decides for 0 or for a trial of a; a trial that fails starts over.
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
