"""Symmetric designs inside blocks: which values a report supports, and how it is decoded.

In a *pure* protocol (Wang, Blocki, Li, Jha 2017, Section 3) each report supports a set of values:
its user's value with probability `own`, and any other value of the block with probability `other`.
Then `h_x(y) = (1{y supports x} - other)/(own - other)` is the unbiased decoder of x, and a user
adds `a (1 - a)/(own - other)^2` to its variance, where a = own for users of x and a = other for the
rest.

In a symmetric design a block has `order` reports, of which `inside` support each value and
`overlap` support both of any two values. A report supports its user's value with probability
`T / 2^64`, and is uniform over the reports that do, or over those that do not. Randomised response
is the design `(k, 1, 0)`; projective geometry response is that of points and hyperplanes
(docs/theory.md section 8).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Indices, Integers
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.entropy import WORD, Words
from ldpstream.mechanisms.families.block.decoder import ReportLayout
from ldpstream.mechanisms.interface.decoder import SingleValues, Statistic


@dataclass(frozen=True)
class Support:
    """The exact probabilities of a report to support its user's value, and any other one.

    `own > other` if the channel carries information.
    """

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
class SymmetricDesign:
    """A design with its realised threshold T: `order`, `inside` and `overlap` as above."""

    order: int
    inside: int
    overlap: int
    threshold: int

    @property
    def outside(self) -> int:
        """Number of reports that do not support a given value."""
        return self.order - self.inside

    @cached_property
    def support(self) -> Support:
        """How often a report supports its user's value, and any other value."""
        if self.outside == 0:
            return ALONE
        support = Fraction(self.threshold, WORD)
        both = Fraction(self.overlap, self.inside)
        other = Fraction(self.inside - self.overlap, self.outside)
        return Support(support, support * both + (1 - support) * other)

    @property
    def likely(self) -> Fraction:
        """Probability of each report that supports the user's value."""
        return Fraction(self.threshold, WORD * self.inside)

    @property
    def unlikely(self) -> Fraction:
        """Probability of each report that does not support it; 0 if there is none."""
        return Fraction(WORD - self.threshold, WORD * max(1, self.outside))

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of the probabilities of a report for two values."""
        return self.likely / self.unlikely


SINGLE = SymmetricDesign(order=1, inside=1, overlap=0, threshold=WORD)
"""A value alone in its block: one report, no noise."""


class DesignLayout(ReportLayout):
    """The tables with which reports are drawn and decoded.

    For each block, `kinds`, int64 `(blocks,)`, is the number of its design in `designs`, and
    `thresholds`, uint64 `(blocks,)`, its T (2^64 - 1 for a value alone, where it is never used).
    For each value, `offset`, int64 `(k,)`, is its block's first report.
    """

    def __init__(self, blocks: Blocks, designs: Sequence[SymmetricDesign], kinds: Indices) -> None:
        self.designs, self.kinds = tuple(designs), kinds
        orders = np.array([d.order for d in self.designs], dtype=np.int64)
        super().__init__(blocks, orders[self.kinds])
        self.offset: Indices = self.starts[blocks.of_value]
        thresholds = [min(d.threshold, WORD - 1) for d in self.designs]
        self.thresholds: Words = np.array(thresholds, dtype=np.uint64)[self.kinds]

    @classmethod
    def by_size(cls, blocks: Blocks, of_size: Mapping[int, SymmetricDesign]) -> Self:
        """Return the layout in which the size of a block decides its design."""
        sizes = sorted(of_size)
        kinds = np.searchsorted(np.array(sizes), blocks.sizes)
        return cls(blocks, [of_size[size] for size in sizes], kinds)

    def check(self) -> None:
        """Check what the proof by structure assumes of the tables."""
        sound = (
            self.disjoint
            and bool(np.all(self.orders >= self.blocks.sizes))
            and bool(np.all((self.orders == 1) == (self.blocks.sizes == 1)))
            and bool(np.all(self.offset == self.starts[self.blocks.of_value]))
        )
        if not sound:
            raise ValueError("the tables of the designs are not what their proof assumes")


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

    def moments(self, kinds: Integers, sums: Floats, in_block: Statistic) -> Floats:
        """Return `high^2 S + low^2 (N - S)` of values of these kinds, float64 `(q,)`.

        S is the number of reports that support a value; N, `in_block`, int64 `(q,)`, is that of its
        block. It is computed as `(high + low) sum - high low N` from `sums`, `step S + low N`.
        """
        moments: Floats = (self.high + self.low)[kinds] * sums
        moments -= (self.high * self.low)[kinds] * in_block
        return moments

    def single_values(self, kinds: Integers, moments: Floats) -> SingleValues:
        """Return what bounds are computed from, `(q,)` each: these moments, and constants."""
        return SingleValues(moments, self.low[kinds], self.high[kinds], *self.noise_extremes(kinds))

    def uniform_moments(self, kinds: Integers, shares: Sequence[float]) -> Floats:
        """Return the mean of `h_x^2` over reports; by kind, these shares of them support x."""
        supporting = np.array(shares)
        moments: Floats = self.high**2 * supporting + self.low**2 * (1.0 - supporting)
        return moments[kinds]

    def noise_levels(self, kinds: Integers) -> tuple[Floats, Floats, Floats]:
        """Return `own_noise` and, twice, `other_noise` of each value."""
        other = self.other_noise[kinds]
        return self.own_noise[kinds], other, other

    def noise_extremes(self, kinds: Integers) -> tuple[Floats, Floats]:
        """Return the smaller and the larger of `own_noise` and `other_noise` of each value."""
        pair = self.own_noise, self.other_noise
        return np.minimum(*pair)[kinds], np.maximum(*pair)[kinds]
