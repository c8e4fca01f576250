"""Linear queries of reports from the own group, or from a blanket over several groups.

With probability `tau` a report is one of disclosed groups, whose decoder `h'` is known. Otherwise
it is from the *blanket*, whatever the value is: group g with probability `pi_g`, and a uniform
report of that group. Over these `h'` has the mean `B = sum_g pi_g mean_(x in g) w_x`, so that
`h = h'/tau - B (1 - tau)/tau` is without bias. The noise of a user of x is, with the shift
`c = -B (1 - tau)/tau` and the noise v' of `h'`,

    v(x) = tau c^2 + 2 c w_x + w_x^2 (1 - tau)/tau + v'(x)/tau + (1 - tau) Z,

`Z` being the mean of `h^2` over the blanket.
"""

from functools import cached_property
from typing import Final

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Indices, Integers
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.design.decoder import DesignDecoder
from ldpstream.mechanisms.families.subset.subsets import SubsetDecoder
from ldpstream.mechanisms.interface.decoder import (
    ROUNDING,
    Decoded,
    Decoder,
    LinearDecoder,
    SingleValues,
    Statistic,
)
from ldpstream.mechanisms.interface.symbols import CountDecoder, remove_rounding

_MOST_PREPARED: Final = 1 << 16
"""Up to this many values, what bounds need of each without reports is computed once."""


class BlanketDecoder(Decoder):
    """What `h` is made of in all forms of reports.

    `inner` decodes reports of disclosed `groups`, `tau` is the probability of such a report, and
    `blanket` holds the `pi_g`, float64 `(groups,)`.
    """

    def __init__(
        self, inner: DesignDecoder | SubsetDecoder, groups: Blocks, *, tau: float, blanket: Floats
    ) -> None:
        self._inner, self._groups, self._blanket = inner, groups, blanket
        self._tau, self._odds = tau, (1.0 - tau) / tau
        self._group_shift: Floats = -self._odds * blanket / groups.sizes
        self.scratch = inner.scratch + 2.0
        # Of a plain value all that is known is how often it was reported.
        plain = np.flatnonzero(((groups.sizes == 1) & (blanket == 0.0))[groups.of_value])
        if plain.size:
            self.step, self.in_steps = 1.0 / tau, plain

    def _shift(self, at: slice | Integers) -> Floats:
        """Return `c` of single values."""
        shift: Floats = self._group_shift[self._groups.of_value[at]]
        return shift

    def _means(self, weights: Floats) -> Floats:
        """Return the mean weight of each group."""
        groups = self._groups
        means: Floats = np.bincount(groups.of_value, weights, groups.count) / groups.sizes
        return means

    def _mean_shift(self, weights: Floats) -> float:
        """Return `c` of a query."""
        return float(self._shift(slice(None)) @ weights)

    def totals(self, statistic: Statistic) -> Floats:
        return self._move(self._inner.totals(statistic), self.group_reports(statistic))

    def decode_values(self, statistic: Statistic) -> Decoded:
        inner = self._inner.decode_values(statistic)
        reports = inner.reports.sum(keepdims=True)
        return Decoded(statistic, self._move(inner.totals, reports), reports, parts=(inner,))

    def _move(self, of_inner: Floats, reports: Integers) -> Floats:
        """Return the totals, from those of the reports' groups."""
        totals = of_inner / self._tau
        shift = self._shift(slice(None)) if self._constants is None else self._constants[0]
        totals += shift * int(reports[0])
        return totals

    def moments(self, decoded: Decoded, at: slice | Integers) -> Floats:
        return self.single_values(decoded, at).second_moments

    def single_values(self, decoded: Decoded, at: slice | Integers) -> SingleValues:
        inner, tau, (in_groups,) = self._inner, self._tau, decoded.parts
        constants = None if self._constants is None else self._constants[:, at]
        shift = self._shift(at) if constants is None else constants[0]
        totals, moved = decoded.totals[at], shift * int(decoded.reports[0])
        if constants is None:
            single = inner.single_values(in_groups, at)
            moments = single.second_moments
            constants = self._constants_of(at, single.least, single.largest)
        else:
            moments = inner.moments(in_groups, at)
        moments /= tau**2
        moments += (2.0 * totals - moved) * shift
        return SingleValues(moments, *constants[1:])

    @cached_property
    def _constants(self) -> Floats | None:
        """`_constants_of` all values; None if they are too many to be kept."""
        if self._groups.size > _MOST_PREPARED:
            return None
        return self._constants_of(slice(None), *self._inner.extremes())

    def _constants_of(self, at: slice | Integers, least: Floats, largest: Floats) -> Floats:
        """Return what bounds of values need beside reports, `(5, q)`.

        These are the shift, the extremes, and the extremes of the noise. `least` and `largest` are
        the extremes among the reports of the values' groups.
        """
        shift = self._shift(at)
        return np.stack([shift, *self._ends(least, largest, shift), *self._noise_levels(at)])

    def _ends(self, least: Floats, largest: Floats, shift: Floats) -> tuple[Floats, Floats]:
        """Return the extremes of values, from those among the reports of their groups."""
        if self._groups.count > 1:
            least, largest = np.minimum(least, 0.0), np.maximum(largest, 0.0)
        return least / self._tau + shift, largest / self._tau + shift

    def extremes(self) -> tuple[Floats, Floats]:
        return self._ends(*self._inner.extremes(), self._shift(slice(None)))

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the extremes over users of the value, of others of its group, and of the rest."""
        return self._noise_levels(slice(None))

    def _noise_levels(self, at: slice | Integers) -> tuple[Floats, Floats]:
        group, groups, shift = self._groups.of_value[at], self._groups, self._shift(at)
        inner, least, largest = (level / self._tau for level in self._inner.noise_levels(at))
        size = groups.sizes[group]
        inside = 2.0 * shift / size + self._inner.uniform_moments(at) / self._tau
        elsewhere = shift**2 + self._odds * self._blanket[group] * inside
        inner = inner + elsewhere + 2.0 * shift + self._odds
        # A group of one value may be certain of its own reports, but for rounding.
        inner[inner <= ROUNDING * (1.0 + self._odds)] = 0.0
        several = size > 1
        least = np.where(several, elsewhere + least, inner)
        largest = np.where(several, elsewhere + largest, inner)
        rest = elsewhere if groups.count > 1 else inner
        levels = inner, least, largest, rest
        return np.minimum.reduce(levels), np.maximum.reduce(levels)

    def groups(self) -> None:
        """Return None: any value may send the reports of the blanket."""


class SubsetBlanket(BlanketDecoder, LinearDecoder):
    """The decoder where reports hold subsets of the values of a group."""

    _inner: SubsetDecoder

    def noise(self, weights: Floats) -> Floats:
        tau, shift = self._tau, self._mean_shift(weights)
        inside = self._inner.uniform_variances(weights) / tau**2
        moments = self._blanket @ ((shift + self._means(weights) / tau) ** 2 + inside)
        every = tau * shift**2 + (1.0 - tau) * float(moments)
        noise = self._inner.noise(weights) / tau
        noise += every + 2.0 * shift * weights + weights**2 / tau
        return remove_rounding(noise, weights, 1.0 / tau)

    def total(self, weights: Floats, statistic: Statistic) -> float:
        n = int(self.group_reports(statistic)[0])
        total = self._inner.total(weights, statistic) / self._tau
        return total + self._mean_shift(weights) * n

    def span(self, weights: Floats) -> tuple[float, float]:
        shift = self._mean_shift(weights)
        least, largest = (end / self._tau + shift for end in self._inner.span(weights))
        return least, largest

    def group_reports(self, statistic: Statistic) -> Indices:
        return np.array([statistic[self._groups.size :].sum()], dtype=np.int64)


class SymbolBlanket(BlanketDecoder, CountDecoder):
    """The decoder where symbols are counted, those of one group after the other."""

    _inner: DesignDecoder

    def decode(self, weights: Floats) -> Floats:
        (decoded,) = self.decode_each(weights[None])
        return np.asarray(decoded)

    def decode_each(self, weights: Floats) -> Floats:
        decoded = self._inner.decode_each(weights) / self._tau
        # One by one: a row must not depend on the rows beside it.
        for row, own in zip(decoded, weights, strict=True):
            row += self._mean_shift(own)
        return decoded

    def expect(self, function: Floats) -> Floats:
        (expected,) = self.expect_each(np.asarray(function, dtype=np.float64)[None])
        return np.asarray(expected)

    def expect_each(self, function: Floats) -> Floats:
        """Return `Q f` of each row, from the means over the reports of each group."""
        orders = self._inner.reports.orders
        means = (1.0 - self._tau) * np.repeat(self._blanket / orders, orders)
        expected = self._inner.expect_each(function) * self._tau
        for row, own in zip(expected, function, strict=True):
            row += float(means @ own)
        return expected
