"""Linear queries of reports from the own group, or from a blanket over all groups.

With probability `tau` a report is one of disclosed groups: of block mechanisms, whose decoder `h'`
is known. Otherwise it is from the *blanket*, whatever the value is: group g with probability
`pi_g`, and a uniform report of that group. Over these `h'` has the mean
`B = sum_g pi_g mean_(x in g) w_x`, so that `h = h'/tau - B (1 - tau)/tau` is without bias. The
noise of a user of x is, with the shift `c = -B (1 - tau)/tau` and the noise v' of `h'`,

    v(x) = tau c^2 + 2 c w_x + w_x^2 (1 - tau)/tau + v'(x)/tau + (1 - tau) Z,

`Z` being the mean of `h^2` over the blanket. Values that are not sensitive have one plain report
each, which is not in the blanket: there `h' = w_x`.
"""

from abc import abstractmethod

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Indices, Integers
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.design.centred import CentredDecoder
from ldpstream.mechanisms.families.design.decoder import DesignDecoder
from ldpstream.mechanisms.families.design.design import DesignLayout, SymmetricDesign
from ldpstream.mechanisms.families.design.incidence import Incidence
from ldpstream.mechanisms.families.subset.decoder import SubsetDecoder
from ldpstream.mechanisms.families.subset.subsets import SubsetLayout, Subsets
from ldpstream.mechanisms.interface.decoder import (
    ROUNDING,
    Decoded,
    Decoder,
    LinearDecoder,
    SingleValues,
    Statistic,
    parts,
)
from ldpstream.mechanisms.interface.symbols import CountDecoder, remove_rounding


class BlanketDecoder(Decoder):
    """What `h` is made of in all forms of reports.

    `groups` are the sensitive values, group 0, and one group of each other value. `inner` decodes
    the reports of group 0 by themselves, and `threshold` is tau in units of 2^-64.
    """

    def __init__(
        self, inner: DesignDecoder | SubsetDecoder, groups: Blocks, *, threshold: int
    ) -> None:
        self._inner, self._size = inner, groups.size
        self._hidden = groups.of_value == 0
        self._sensitive, self._plain = np.flatnonzero(self._hidden), np.flatnonzero(groups.of_value)
        # The plain report of each value; of a sensitive one, any.
        self._report = np.maximum(groups.of_value - 1, 0)
        self._tau = threshold / WORD
        self._odds = (WORD - threshold) / threshold
        self._shift = -self._odds / self._sensitive.size

    @abstractmethod
    def _split(self, statistic: Statistic) -> tuple[Statistic, Statistic]:
        """Return the statistic that `inner` decodes, and the number of each plain report."""

    def _joined(self, sensitive: Floats | float, plain: Floats | float) -> Floats:
        """Return properties of all values, `(k,)`, from those of the two kinds, each in order."""
        out = np.empty(self._size)
        out[self._plain] = plain
        out[self._sensitive] = sensitive
        return out

    def _mean_shift(self, weights: Floats) -> float:
        """Return `c` of a query."""
        return self._shift * float(weights[self._sensitive].sum())

    def totals(self, statistic: Statistic) -> Floats:
        inner, plain = self._split(statistic)
        sums = np.empty(self._size)
        if plain.size:
            for at in parts(self._size):
                np.divide(plain[self._report[at]], self._tau, out=sums[at])
        shifted = self._shift * int(self.group_reports(statistic)[0])
        sums[self._sensitive] = self._inner.totals(inner) / self._tau + shifted
        return sums

    def second_moments(self, statistic: Statistic) -> Floats:
        decoded = Decoded(statistic, self.totals(statistic), self.group_reports(statistic))
        return self.single_values(decoded, slice(None)).second_moments

    def single_values(self, decoded: Decoded, at: slice | Integers) -> SingleValues:
        statistic, plain = self._split(decoded.statistic)
        n, shift, inner = int(decoded.reports.sum()), self._shift, self._inner
        values = np.arange(self._size)[at] if isinstance(at, slice) else at
        moments = np.zeros(values.size)
        if plain.size:
            np.divide(plain[self._report[at]], self._tau**2, out=moments)
        least, largest = np.zeros(values.size), np.full(values.size, 1.0 / self._tau)
        quietest, noisiest = np.zeros(values.size), np.full(values.size, self._odds)
        here = np.flatnonzero(self._hidden[at])
        if here.size:
            places = np.searchsorted(self._sensitive, values[here])
            shares = decoded.shares[self._sensitive]
            of_own = (shares - shift * n) * self._tau
            single = inner.single_values(
                Decoded(statistic, of_own, inner.group_reports(statistic)), places
            )
            moments[here] = single.second_moments / self._tau**2
            moments[here] += (2.0 * shares[places] - shift * n) * shift
            least[here], largest[here] = self._ends(single.least, single.largest)
            quietest[here], noisiest[here] = self._noise_levels(places)
        return SingleValues(moments, least, largest, quietest, noisiest)

    def _ends(self, least: Floats, largest: Floats) -> tuple[Floats, Floats]:
        """Return the extremes of sensitive values, from those among the reports of group 0."""
        if self._plain.size:
            # Plain reports.
            least, largest = np.minimum(least, 0.0), np.maximum(largest, 0.0)
        return least / self._tau + self._shift, largest / self._tau + self._shift

    def extremes(self) -> tuple[Floats, Floats]:
        least, largest = self._ends(*self._inner.extremes())
        return self._joined(least, 0.0), self._joined(largest, 1.0 / self._tau)

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the extremes over users of the value, of other sensitive ones, and of the rest."""
        least, largest = self._noise_levels(slice(None))
        return self._joined(least, 0.0), self._joined(largest, self._odds)

    def _noise_levels(self, at: slice | Integers) -> tuple[Floats, Floats]:
        inner, least, largest = (level / self._tau for level in self._inner.noise_levels(at))
        shift, size = self._shift, self._sensitive.size
        inside = 2.0 * shift / size + self._inner.uniform_moments(at) / self._tau
        elsewhere = shift**2 + self._odds * inside
        inner += elsewhere + 2.0 * shift + self._odds
        # A group of one value is certain of its own reports, but for rounding.
        inner[inner <= ROUNDING] = 0.0
        levels = [inner] if size == 1 else [inner, elsewhere + least, elsewhere + largest]
        if self._plain.size:
            levels.append(elsewhere)
        return np.minimum.reduce(levels), np.maximum.reduce(levels)

    def groups(self) -> None:
        """Return None: any value may send the reports of the blanket."""


class SubsetBlanket(BlanketDecoder, LinearDecoder):
    """The decoder where reports hold subsets of the sensitive values."""

    _inner: SubsetDecoder

    def __init__(self, groups: Blocks, subsets: Subsets, *, threshold: int) -> None:
        inner = SubsetDecoder(SubsetLayout(Blocks.one(subsets.size), (subsets,)), (subsets,))
        super().__init__(inner, groups, threshold=threshold)

    def _split(self, statistic: Statistic) -> tuple[Statistic, Statistic]:
        held = statistic[self._sensitive]
        reports = statistic[self._size :]
        return np.concatenate((held, reports[:1])), reports[1:]

    def noise(self, weights: Floats) -> Floats:
        sensitive = weights[self._sensitive]
        shift, mean = self._mean_shift(weights), sensitive.mean()
        inside = float(self._inner.uniform_variances(sensitive)[0]) / self._tau**2
        blanket = (shift + mean / self._tau) ** 2 + inside
        every = self._tau * shift**2 + (1.0 - self._tau) * blanket
        inner = self._inner.noise(sensitive) / self._tau
        moments = every + 2.0 * shift * weights + weights**2 / self._tau
        moments[self._sensitive] += inner
        return remove_rounding(moments, weights)

    def total(self, weights: Floats, statistic: Statistic) -> float:
        inner, plain = self._split(statistic)
        total = self._inner.total(weights[self._sensitive], inner)
        total += float((weights[self._plain] * plain).sum())
        n = int(self.group_reports(statistic)[0])
        return total / self._tau + self._mean_shift(weights) * n

    def span(self, weights: Floats) -> tuple[float, float]:
        least, largest = self._inner.span(weights[self._sensitive])
        plain = weights[self._plain]
        ends = plain.min(initial=least), plain.max(initial=largest)
        shift = self._mean_shift(weights)
        return float(ends[0]) / self._tau + shift, float(ends[1]) / self._tau + shift

    def group_reports(self, statistic: Statistic) -> Indices:
        return np.array([statistic[self._size :].sum()], dtype=np.int64)


class SymbolBlanket(BlanketDecoder, CountDecoder):
    """The decoder where symbols are counted: those of group 0, then plain ones."""

    _inner: DesignDecoder

    def __init__(
        self, groups: Blocks, design: SymmetricDesign, incidence: Incidence, *, threshold: int
    ) -> None:
        size, self._order = int(groups.sizes[0]), design.order
        layout = DesignLayout(Blocks.one(size), {size: design})
        kind = DesignDecoder if design.order == size else CentredDecoder
        super().__init__(kind(layout, (incidence,)), groups, threshold=threshold)
        self.scratch = 2.0

    def _split(self, statistic: Statistic) -> tuple[Statistic, Statistic]:
        return statistic[: self._order], statistic[self._order :]

    def decode(self, weights: Floats) -> Floats:
        inner = self._inner.decode(weights[self._sensitive])
        decoded = np.concatenate((inner, weights[self._plain])) / self._tau
        decoded += self._mean_shift(weights)
        return decoded

    def expect(self, function: Floats) -> Floats:
        """Return `Q f`, from the mean over the reports of group 0."""
        inner, plain = function[: self._order], function[self._order :]
        means = self._joined(self._inner.expect(inner), plain)
        means *= self._tau
        means += (1.0 - self._tau) * inner.mean()
        return means
