"""Reports that support values: what a two-valued decoder needs to know of its channel.

In a *pure* protocol (Wang, Blocki, Li, Jha 2017, Section 3) each report supports a set of values,
the value's own user supports it with probability `own`, and every other user it could be confused
with supports it with probability `other`. Then `h_x(y) = (1{y supports x} - other)/(own - other)`
is the unbiased decoder of x, and all that a user adds to its variance is
`a (1 - a)/(own - other)^2`, a = own for the value's own user, a = other for the rest
(docs/theory.md section 8).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.decoder import SingleValues, Statistic


@dataclass(frozen=True)
class Support:
    """The exact probabilities; `own > other` where the channel carries information."""

    own: Fraction
    other: Fraction

    @property
    def gap(self) -> Fraction:
        """`own - other`: what is left of a value in its reports."""
        return self.own - self.other

    @property
    def high(self) -> Fraction:
        """`h_x` at reports that support x: `(1 - other)/(own - other)`."""
        return (1 - self.other) / self.gap

    @property
    def low(self) -> Fraction:
        """`h_x` at the others: `-other/(own - other)`."""
        return -self.other / self.gap

    @property
    def own_noise(self) -> Fraction:
        """`(Q h_x^2)[x] - 1`: the noise of a user of the value itself."""
        return self.own * (1 - self.own) / self.gap**2

    @property
    def other_noise(self) -> Fraction:
        """`(Q h_x^2)[x']`: the noise of a user of another value."""
        return self.other * (1 - self.other) / self.gap**2

    def mean_noise(self, size: int) -> Fraction:
        """Return the noise in one value's estimate, averaged over the users of `size` values."""
        return (self.own_noise + (size - 1) * self.other_noise) / size


ALONE = Support(Fraction(1), Fraction(0))
"""A value alone in its block, reported exactly."""


@dataclass(frozen=True)
class SupportTables:
    """What decoders need of each kind of `Support`, float64 `(kinds,)` each.

    `step` is `1/(own - other) = high - low`, from the exact gap: a difference would lose digits.
    """

    high: Floats
    low: Floats
    step: Floats
    own_noise: Floats
    other_noise: Floats

    @classmethod
    def of(cls, supports: Sequence[Support]) -> Self:
        """Return the tables of these supports."""

        def table(get: Callable[[Support], Fraction]) -> Floats:
            return np.array([float(get(support)) for support in supports])

        return cls(
            high=table(lambda s: s.high),
            low=table(lambda s: s.low),
            step=table(lambda s: 1 / s.gap),
            own_noise=table(lambda s: s.own_noise),
            other_noise=table(lambda s: s.other_noise),
        )

    def totals(self, kinds: Integers, supporting: Statistic, in_block: Statistic) -> Floats:
        """Return `step S + low N` of values of these kinds, out of `supporting` and `in_block`.

        S is the number of reports that support a value, N that of its block: int64 `(q,)` each.
        """
        sums: Floats = self.step[kinds] * supporting + self.low[kinds] * in_block
        return sums

    def supporting(self, kinds: Integers, shares: Floats, in_block: Statistic) -> Statistic:
        """Return S out of these shares: it is whole, and they are off by far less than a half.

        So it is below 2^48 reports of a block, since each of the two products is rounded by less
        than 2^-52 of `step N`.
        """
        found = (shares - self.low[kinds] * in_block) / self.step[kinds]
        return np.rint(found).astype(np.int64)

    def single_values(
        self, kinds: Integers, supporting: Statistic, in_block: Statistic
    ) -> SingleValues:
        """Return what bounds of values are made of: `high^2 S + low^2 (N - S)`, and constants."""
        high, low = self.high[kinds], self.low[kinds]
        moments = high**2 * supporting + low**2 * (in_block - supporting)
        return SingleValues(moments, low, high, *self.noise_extremes(kinds))

    def noise_extremes(self, kinds: Integers) -> tuple[Floats, Floats]:
        """Return the smaller and the larger of the own user's noise and a neighbour's."""
        pair = self.own_noise, self.other_noise
        return np.minimum(*pair)[kinds], np.maximum(*pair)[kinds]
