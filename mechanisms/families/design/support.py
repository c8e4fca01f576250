"""Pure protocols: how often reports support values, and the decoders that follow.

In a *pure* protocol (Wang, Blocki, Li, Jha 2017, Section 3) each report supports a set of values:
its user's value with probability `own`, and any other value of the block with probability `other`.
Then `h_x(y) = (1{y supports x} - other)/(own - other)` is the unbiased decoder of x, and a user
adds `a (1 - a)/(own - other)^2` to its variance, where a = own for users of x and a = other for the
rest (docs/theory.md section 8).
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
    """The two exact probabilities; `own > other` if the channel carries information."""

    own: Fraction
    other: Fraction

    @property
    def gap(self) -> Fraction:
        """`own - other`, which is 0 if reports carry no information."""
        return self.own - self.other

    @property
    def high(self) -> Fraction:
        """`h_x` at reports that support x: `(1 - other)/(own - other)`."""
        return (1 - self.other) / self.gap

    @property
    def low(self) -> Fraction:
        """`h_x` at other reports: `-other/(own - other)`."""
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
        """Return the noise of one value's estimate, averaged over uniform users."""
        return (self.own_noise + (size - 1) * self.other_noise) / size


ALONE = Support(Fraction(1), Fraction(0))
"""A value alone in its block, reported exactly."""


@dataclass(frozen=True)
class SupportTables:
    """The properties of each kind of `Support` as float64 `(kinds,)`.

    `step` is `1/(own - other) = high - low`, computed from the exact gap, as the difference would
    lose digits.
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
        """Return `step S + low N` of values of these kinds, float64 `(q,)`.

        S, `supporting`, is the number of reports that support a value; N, `in_block`, is that of
        its block: int64 `(q,)` each.
        """
        sums: Floats = self.step[kinds] * supporting + self.low[kinds] * in_block
        return sums

    def supporting(self, kinds: Integers, shares: Floats, in_block: Statistic) -> Statistic:
        """Return the integer S from shares, float64 `(q,)`.

        Rounding recovers it exactly for fewer than 2^48 reports in a block, since each of the two
        products in a share is rounded by less than 2^-52 of `step N`.
        """
        found = (shares - self.low[kinds] * in_block) / self.step[kinds]
        return np.rint(found).astype(np.int64)

    def single_values(
        self, kinds: Integers, supporting: Statistic, in_block: Statistic
    ) -> SingleValues:
        """Return what bounds are computed from: `high^2 S + low^2 (N - S)` and constants."""
        high, low = self.high[kinds], self.low[kinds]
        moments = high**2 * supporting + low**2 * (in_block - supporting)
        return SingleValues(moments, low, high, *self.noise_extremes(kinds))

    def noise_extremes(self, kinds: Integers) -> tuple[Floats, Floats]:
        """Return the smaller and the larger of `own_noise` and `other_noise` of each value."""
        pair = self.own_noise, self.other_noise
        return np.minimum(*pair)[kinds], np.maximum(*pair)[kinds]
