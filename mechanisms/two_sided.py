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

from ldpstream.mechanisms.entropy import WORD, Entropy, fair_coins
from ldpstream.mechanisms.powers import Powers

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class TwoSidedGeometric:
    """Noise with `alpha = threshold / 2^64`, for integers `0..m-1` with m up to `largest` >= 2."""

    threshold: int
    largest: int

    @cached_property
    def low_digits(self) -> int:
        """Number s of binary digits drawn one by one: trials then fail half of the time or more.

        No more than there are in `largest - 1`: one success beyond them clamps.
        """
        powers = Powers(self.threshold, 1)
        s = 0
        while 1 << s < self.largest and 2 * powers.digits(s, 1) >= WORD:
            s += 1
        return s

    @cached_property
    def powers(self) -> Powers:
        """The probabilities of all trials."""
        return Powers(self.threshold, self.low_digits + 1)

    def move(self, entropy: Entropy, values: Integers, last: Integers) -> Integers:
        """Return `clamp(value + D, 0, last)` for values in `0..last`, int64 of shape `(n,)`."""
        drawn = self._odds(entropy, len(values))
        up = drawn[:, 0] == 1
        size = drawn[:, 1:] @ (1 << np.arange(self.low_digits, dtype=np.int64))
        # What G must reach to end at the border whatever follows.
        room = np.where(up, last - values - 1, values)
        active = np.flatnonzero(size < room)
        while active.size:
            levels = np.full(active.size, self.low_digits, dtype=np.int64)
            active = active[self.powers.bernoulli(entropy, levels)]
            size[active] += 1 << self.low_digits
            active = active[size[active] < room[active]]
        return np.where(up, np.minimum(values + 1 + size, last), np.maximum(values - size, 0))

    def _odds(self, entropy: Entropy, n: int) -> Integers:
        """Return signs and binary digits, int64 of shape `(n, 1 + s)`.

        1 with probability `a / (1 + a)`, `a = alpha` in column 0 and `alpha^(2^j)` in column
        `1 + j`. A fair coin decides for 0 or for a trial of a; a trial that fails starts anew.
        """
        of_column = np.concatenate(([0], np.arange(self.low_digits)))
        drawn = np.zeros(n * of_column.size, dtype=np.int64)
        undecided = np.arange(drawn.size)
        while undecided.size:
            undecided = undecided[fair_coins(entropy, undecided.size)]
            success = self.powers.bernoulli(entropy, of_column[undecided % of_column.size])
            drawn[undecided[success]] = 1
            undecided = undecided[~success]
        return drawn.reshape(n, of_column.size)
