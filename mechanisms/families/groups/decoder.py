"""Linear queries of reports from the own group, or from a blanket over all groups.

With probability `tau` a report is one of disclosed groups: of block mechanisms, whose decoder `h'`
is known. Otherwise it is from the *blanket*, whatever the value is: group g with probability
`pi_g`, and a uniform report of that group. Over these `h'` has the mean
`B = sum_g pi_g mean_(x in g) w_x`, so that `h = h'/tau - B (1 - tau)/tau` is without bias. The
noise of a user of x is, with the shift `c = -B (1 - tau)/tau` and the noise v' of `h'`,

    v(x) = tau c^2 + 2 c w_x + w_x^2 (1 - tau)/tau + v'(x)/tau + (1 - tau) Z,

`Z` being the mean of `h^2` over the blanket.
"""

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Indices, Integers
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.design.centred import CentredDecoder
from ldpstream.mechanisms.families.design.decoder import DesignDecoder
from ldpstream.mechanisms.families.design.design import SINGLE, DesignLayout, SymmetricDesign
from ldpstream.mechanisms.families.design.incidence import OWN, Incidence
from ldpstream.mechanisms.families.subset.decoder import SubsetDecoder
from ldpstream.mechanisms.interface.decoder import (
    ROUNDING,
    Decoded,
    Decoder,
    LinearDecoder,
    SingleValues,
    Statistic,
)
from ldpstream.mechanisms.interface.symbols import CountDecoder, remove_rounding


class BlanketDecoder(Decoder):
    """What `h` is made of in all forms of reports.

    `own` decodes reports of disclosed groups, `threshold` is tau in units of 2^-64, and `chosen`,
    float64 `(groups,)`, are the `pi_g`.
    """

    def __init__(
        self,
        own: DesignDecoder | SubsetDecoder,
        groups: Blocks,
        *,
        threshold: int,
        chosen: Floats,
    ) -> None:
        self._own, self._groups, self._chosen = own, groups, chosen
        self.scratch = own.scratch + 1.0
        self._tau = threshold / WORD
        self._odds = (WORD - threshold) / threshold

    def _shift(self, at: slice | Integers) -> Floats:
        """Return `c` of single values."""
        group = self._groups.of_value[at]
        shift: Floats = -self._odds * self._chosen[group] / self._groups.sizes[group]
        return shift

    def _mean_shift(self, weights: Floats) -> float:
        """Return `c` of a query."""
        groups = self._groups
        means = np.bincount(groups.of_value, weights, groups.count) / groups.sizes
        return -self._odds * float((self._chosen * means).sum())

    def totals(self, statistic: Statistic) -> Floats:
        sums = self._own.totals(statistic) / self._tau
        sums += self._shift(slice(None)) * int(self._own.group_reports(statistic).sum())
        return sums

    def second_moments(self, statistic: Statistic) -> Floats:
        decoded = Decoded(statistic, self.totals(statistic), self.group_reports(statistic))
        return self.single_values(decoded, slice(None)).second_moments

    def single_values(self, decoded: Decoded, at: slice | Integers) -> SingleValues:
        shift, n = self._shift(slice(None)), int(decoded.reports.sum())
        reports = self._own.group_reports(decoded.statistic)
        shares = (decoded.shares - shift * n) * self._tau
        own = self._own.single_values(Decoded(decoded.statistic, shares, reports), at)
        shift = shift[at]
        moments = own.second_moments / self._tau**2
        moments += (2.0 * decoded.shares[at] - shift * n) * shift
        least, largest = own.least / self._tau + shift, own.largest / self._tau + shift
        return SingleValues(moments, least, largest, *self._noise_extremes(at))

    def extremes(self) -> tuple[Floats, Floats]:
        shift = self._shift(slice(None))
        least, largest = (end / self._tau + shift for end in self._own.extremes())
        return least, largest

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the extremes over users of the value, of others of its group, and of the rest."""
        return self._noise_extremes(slice(None))

    def _noise_extremes(self, at: slice | Integers) -> tuple[Floats, Floats]:
        shift, group = self._shift(at), self._groups.of_value[at]
        own, least, largest = (level / self._tau for level in self._own.noise_levels(at))
        inside = 2.0 * shift / self._groups.sizes[group] + self._own.uniform_moments(at) / self._tau
        elsewhere = shift**2 + (1.0 - self._tau) / self._tau * self._chosen[group] * inside
        own += elsewhere + 2.0 * shift + self._odds
        # A group of one value is certain of its own reports, but for rounding.
        own[(shift < 0.0) & (own <= ROUNDING)] = 0.0
        alone = self._groups.sizes[group] == 1
        levels = [own, *(np.where(alone, own, elsewhere + level) for level in (least, largest))]
        if self._groups.count > 1:
            levels.append(elsewhere)
        return np.minimum.reduce(levels), np.maximum.reduce(levels)

    def groups(self) -> None:
        """Return None: any report may come from the blanket."""

    def group_reports(self, statistic: Statistic) -> Indices:
        return np.array([self._own.group_reports(statistic).sum()], dtype=np.int64)


class SubsetBlanket(BlanketDecoder, LinearDecoder):
    """The decoder where reports hold subsets of their group."""

    _own: SubsetDecoder

    def noise(self, weights: Floats) -> Floats:
        shift, groups = self._mean_shift(weights), self._groups
        means = np.bincount(groups.of_value, weights, groups.count) / groups.sizes
        inside = self._own.uniform_variances(weights) / self._tau**2
        blanket = float((self._chosen * ((shift + means / self._tau) ** 2 + inside)).sum())
        noise = self._tau * shift**2 + 2.0 * shift * weights + self._odds * weights**2
        noise += self._own.noise(weights) / self._tau + (1.0 - self._tau) * blanket
        return remove_rounding(noise + weights**2, weights)

    def total(self, weights: Floats, statistic: Statistic) -> float:
        reports = int(self._own.group_reports(statistic).sum())
        own = self._own.total(weights, statistic) / self._tau
        return own + self._mean_shift(weights) * reports

    def span(self, weights: Floats) -> tuple[float, float]:
        shift = self._mean_shift(weights)
        least, largest = (end / self._tau + shift for end in self._own.span(weights))
        return least, largest


class SymbolBlanket(BlanketDecoder, CountDecoder):
    """The decoder where symbols are counted."""

    _own: DesignDecoder

    def __init__(
        self, own: DesignDecoder, layout: DesignLayout, *, threshold: int, chosen: Floats
    ) -> None:
        super().__init__(own, layout.blocks, threshold=threshold, chosen=chosen)
        self._layout = layout

    def decode(self, weights: Floats) -> Floats:
        decoded = self._own.decode(weights) / self._tau
        decoded += self._mean_shift(weights)
        return decoded

    def expect(self, function: Floats) -> Floats:
        """Return `Q f`, from the means over each group's reports."""
        layout = self._layout
        means = np.add.reduceat(function, layout.starts) / layout.orders
        blanket = float((self._chosen * means).sum())
        return self._tau * self._own.expect(function) + (1.0 - self._tau) * blanket


def decoder_of(
    groups: Blocks, design: SymmetricDesign, incidence: Incidence, *, threshold: int
) -> SymbolBlanket:
    """Return the decoder of group 0, whose reports are also the blanket, and of single values."""
    kinds = min(groups.count, 2)
    of_group = np.minimum(np.arange(groups.count), 1)
    layout = DesignLayout(groups, (design, SINGLE)[:kinds], of_group)
    even = design.order == groups.sizes[0]
    own = (DesignDecoder if even else CentredDecoder)(layout, (incidence, OWN)[:kinds])
    return SymbolBlanket(own, layout, threshold=threshold, chosen=blanket_shares(groups))


def blanket_shares(groups: Blocks) -> Floats:
    """Return the probability of each group in the blanket: it is group 0 alone."""
    shares = np.zeros(groups.count)
    shares[0] = 1.0
    return shares
