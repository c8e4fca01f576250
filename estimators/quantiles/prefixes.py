"""Estimates of all prefixes of one ordered dimension: the cumulative distribution.

Statistics of counts have `CountPrefixes`. Over statistics of sums, prefixes have a closed form if
the decoder knows their noise, and are otherwise sets like any other.

Disclosed groups are independent, so that they are decoded together: all groups cut after their
first position, then after their second, and so on. This takes as many decodes as the longest group
has positions, which may be far fewer than there are prefixes. All sums that a variance needs add up
over groups.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Self, Unpack

import numpy as np

from ldpstream.estimators.bounds.bounded import bound
from ldpstream.estimators.bounds.options import OptionKeywords, Options
from ldpstream.estimators.bounds.types import Estimate, Limits, Noise, Sums
from ldpstream.estimators.estimate import check_counts, set_sums
from ldpstream.estimators.queries import (
    TOGETHER,
    DisclosedGroups,
    LinearQueries,
    SetDecoder,
    prepare_queries,
)
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers
from ldpstream.mechanisms.interface.decoder import LinearDecoder, PrefixNoise
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic
from ldpstream.mechanisms.interface.symbols import remove_rounding

_KEPT: Final = 1 << 21
"""Most decoder entries that are kept, 16 MiB: those of a thousand values in one group."""


@dataclass(frozen=True)
class _Cuts:
    """A cut is a group with one of its distinct positions, and holds the group's values up to it.

    Cuts are ordered by group, then position. For each cut, `(cuts,)`: `group`, `rank` (0-based in
    the group) and `position` are int64, and `whole` (the cut holds all of its group) is bool.
    `rank_of_value` is int64 `(k,)`. `length` is the number m of positions, and `ranks` the largest
    number of cuts in a group.
    """

    group: Integers
    rank: Integers
    position: Integers
    whole: Bools
    rank_of_value: Integers
    length: int
    ranks: int

    @classmethod
    def of(cls, groups: DisclosedGroups, positions: Integers) -> Self:
        """Cut groups at each of their values' positions, int64 `(k,)` >= 0."""
        pairs = np.stack([groups.of_place, positions])
        (group, position), cut_of_value = np.unique(pairs, axis=1, return_inverse=True)
        sizes = np.bincount(group, minlength=groups.count)
        starts = np.cumsum(sizes) - sizes
        rank = np.arange(group.size) - starts[group]
        return cls(
            group=group,
            rank=rank,
            position=position,
            whole=rank == sizes[group] - 1,
            rank_of_value=rank[cut_of_value.reshape(-1)],
            length=int(positions.max()) + 1,
            ranks=int(sizes.max()),
        )

    def whole_groups(self, rank: int, groups: int) -> Bools:
        """Return which groups are whole after the cuts of a rank, bool of shape `(groups,)`."""
        out = np.zeros(groups, dtype=np.bool_)
        out[self.group[self.whole & (self.rank <= rank)]] = True
        return out

    def accumulate(self, state: Floats) -> Floats:
        """Return, for each position, the sum over groups of the state at their last cut: `(m,)`.

        `state` is float64 `(cuts,)`; a group before its first cut counts as 0.
        """
        before = np.where(self.rank > 0, np.concatenate([[0.0], state[:-1]]), 0.0)
        return np.cumsum(np.bincount(self.position, state - before, self.length))


class _Envelopes(NamedTuple):
    """What is known of the m prefixes before any report: bool and float64 `(m,)`.

    `parted`: whether a group is cut in two. The others are fields of `Noise` and `Limits`.
    """

    parted: Bools
    least: Floats
    largest: Floats
    slope: Floats
    peak: Floats
    typical: Floats


@dataclass(frozen=True)
class CountPrefixes:
    """Decodes the m prefixes `{x : position of x <= i}` of counts.

    For each cut's decoder, float64 `(cuts,)`: the anchor with the least noise (see
    `queries`), the least and largest noise in its group, the least and largest value, and what its
    group adds to the mean noise of uniform data. `held` is the fraction of the values that
    each prefix holds, float64 `(m,)`. `kept` are the decoders themselves, float64
    `(ranks, outputs)`, if these are few enough; otherwise None, and they are computed for each
    statistic. All depend only on the mechanism and the order: prepare once, estimate often.
    """

    decoder: SetDecoder
    cuts: _Cuts
    held: Floats
    kept: Floats | None
    anchors: Floats
    quietest: Floats
    noisiest: Floats
    least: Floats
    largest: Floats
    typical: Floats

    @classmethod
    def of(cls, decoder: SetDecoder, positions: Integers) -> Self:
        """Prepare an order, given by the position of each value, int64 `(k,)`, >= 0."""
        groups = decoder.groups
        cuts = _Cuts.of(groups, positions)
        table = np.zeros((6, cuts.group.size))
        shape = cuts.ranks, decoder.outputs.of_place.size
        stored = np.empty(shape) if shape[0] * shape[1] <= _KEPT else None
        for ranks, plain in _plain(decoder, cuts):
            anchors = decoder.best_anchors(plain)
            decoded = _anchored(decoder, cuts, ranks, plain, anchors)
            if stored is not None:
                stored[ranks.start : ranks.stop] = decoded
            expected = decoder.decoder.expect_each(decoded**2)
            if groups.count == 1:
                # Each rank has one cut, and one pass over all of them takes a third of the time.
                some = slice(ranks.start, ranks.stop)
                indicators = cuts.rank_of_value <= np.array(ranks)[:, None]
                noise = remove_rounding(expected, indicators.astype(np.float64))
                table[0, some] = anchors[:, 0]
                table[1, some], table[2, some] = noise.min(axis=1), noise.max(axis=1)
                table[3, some], table[4, some] = decoded.min(axis=1), decoded.max(axis=1)
                table[5, some] = noise.sum(axis=1) / positions.size
                continue
            for rank, anchor, h, moments in zip(ranks, anchors, decoded, expected, strict=True):
                at = np.flatnonzero(cuts.rank == rank)
                noise = remove_rounding(moments, (cuts.rank_of_value <= rank).astype(np.float64))
                measures = [anchor, *groups.extremes(noise), *decoder.outputs.extremes(h)]
                measures.append(groups.sums(noise) / positions.size)
                table[:, at] = np.stack(measures)[:, cuts.group[at]]
        length_share = np.cumsum(np.bincount(positions, minlength=cuts.length)) / positions.size
        return cls(decoder, cuts, length_share, stored, *table)

    def sums(self, statistic: Statistic) -> Sums:
        """Return the sums of every prefix, q = m."""
        cuts, groups = self.cuts, self.decoder.groups
        total, squares = np.zeros((2, cuts.group.size))
        for ranks, decoded in self._decoders():
            if groups.count == 1:
                some = slice(ranks.start, ranks.stop)
                total[some] = (statistic * decoded).sum(axis=1)
                squares[some] = (statistic * decoded**2).sum(axis=1)
                continue
            for rank, h in zip(ranks, decoded, strict=True):
                at = np.flatnonzero(cuts.rank == rank)
                total[at] = self.decoder.outputs.sums(statistic * h)[cuts.group[at]]
                squares[at] = self.decoder.outputs.sums(statistic * h**2)[cuts.group[at]]
        reports = self.decoder.decoder.group_reports(statistic)[cuts.group]
        whole = cuts.accumulate(np.where(cuts.whole, reports, 0.0))
        known = self._envelopes

        def amounts(state: Floats) -> Floats:
            # Running sums of numbers >= 0 may end a rounding error below 0.
            return np.maximum(self._parts(known.parted, state), 0.0)

        estimated = whole + self._parts(known.parted, total)
        return Sums(
            total=estimated,
            squares=whole + amounts(squares),
            offset=estimated,
            noise=Noise(
                floor=amounts(reports * self.quietest),
                ceiling=amounts(reports * self.noisiest),
                slope=known.slope,
                reports=amounts(np.where(self.noisiest > 0.0, reports, 0.0)),
                moment=whole + amounts(reports * (self.noisiest + 1.0)),
                peak=known.peak,
                typical=known.typical,
                deviation=np.maximum(known.largest, 1.0 - known.least),
            ),
            limits=Limits(
                least=known.least,
                largest=known.largest,
                bottom=np.where(self.held < 1.0, 0.0, 1.0),
                top=np.ones_like(estimated),
                fewest=whole,
                most=whole + amounts(reports.astype(np.float64)),
            ),
            typical_sampling=self.held * (1.0 - self.held),
            disclosed=groups.disclosed,
            indicators=True,
        )

    def _parts(self, parted: Bools, state: Floats) -> Floats:
        # If no group is cut in two, running sums would leave rounding errors instead of 0.
        cuts = self.cuts
        return np.where(parted, cuts.accumulate(np.where(cuts.whole, 0.0, state)), 0.0)

    @cached_property
    def _envelopes(self) -> _Envelopes:
        parted = self.cuts.accumulate(np.where(self.cuts.whole, 0.0, 1.0)) > 0.5
        least = self._envelope(self.least, np.minimum)
        largest = self._envelope(self.largest, np.maximum)
        least[-1] = largest[-1] = 1.0  # the whole domain
        return _Envelopes(
            parted=parted,
            least=least,
            largest=largest,
            slope=self._envelope(self.noisiest - self.quietest, np.maximum),
            peak=self._envelope(self.noisiest, np.maximum) + 1.0,
            typical=np.maximum(self._parts(parted, self.typical), 0.0),
        )

    def _decoders(self) -> Iterator[tuple[range, Floats]]:
        """Yield several ranks at a time, with the decoders of all groups' cuts for each."""
        cuts = self.cuts
        if self.kept is not None:
            step = max(1, TOGETHER // self.kept.shape[1])
            for first in range(0, cuts.ranks, step):
                rows = self.kept[first : first + step]
                yield range(first, first + len(rows)), rows
            return
        for ranks, plain in _plain(self.decoder, cuts):
            anchors = np.zeros((len(ranks), self.decoder.groups.count))
            for row, rank in enumerate(ranks):
                at = np.flatnonzero(cuts.rank == rank)
                anchors[row, cuts.group[at]] = self.anchors[at]
            yield ranks, _anchored(self.decoder, cuts, ranks, plain, anchors)

    def _envelope(self, ends: Floats, extreme: np.ufunc) -> Floats:
        """Return the extremes of the prefixes' decoders.

        Exact for one group; for several groups, the extremes over all cuts so far, which are
        bounds.
        """
        cuts = self.cuts
        if self.decoder.groups.count == 1:
            return cuts.accumulate(ends)
        out = np.zeros(cuts.length)
        extreme.at(out, cuts.position, ends)
        return np.array(extreme.accumulate(out), dtype=np.float64)


def _plain(decoder: SetDecoder, cuts: _Cuts) -> Iterator[tuple[range, Floats]]:
    """Yield several ranks at a time, with the plain decoders of their cuts, `(r, outputs)`.

    The decoder of a rank is that of the rank before it plus that of the values it adds.
    """
    last = np.zeros(decoder.slack.size)
    step = max(1, TOGETHER // last.size)
    for first in range(0, cuts.ranks, step):
        ranks = range(first, min(first + step, cuts.ranks))
        added = cuts.rank_of_value == np.array(ranks)[:, None]
        plain = decoder.decoder.decode_each(added.astype(np.float64))
        plain[0] += last
        last = np.cumsum(plain, axis=0, out=plain)[-1]
        yield ranks, plain


def _anchored(
    decoder: SetDecoder, cuts: _Cuts, ranks: range, plain: Floats, anchors: Floats
) -> Floats:
    """Return the decoders with the least noise of these ranks, `(r, outputs)`."""
    of_output = decoder.outputs.of_place
    h: Floats = anchors if decoder.groups.count == 1 else anchors[:, of_output]
    h = plain + h * decoder.slack
    for row, rank in enumerate(ranks):
        if decoder.groups.count > 1 or rank == cuts.ranks - 1:
            h[row, cuts.whole_groups(rank, decoder.groups.count)[of_output]] = 1.0
    return h


@dataclass(frozen=True)
class SetPrefixes:
    """Prefixes of any order, each a set like any other; `positions` int64 `(k,)`."""

    queries: LinearQueries
    positions: Integers

    def sums(self, statistic: Statistic) -> Sums:
        """Return the sums of every prefix, q = m."""
        return set_sums(self.queries, statistic, self._indicators())

    def _indicators(self) -> Iterator[Floats]:
        for cut in range(int(self.positions.max()) + 1):
            yield (self.positions <= cut).astype(np.float64)


@dataclass(frozen=True)
class SummedPrefixes:
    """Prefixes with known noise, as running sums of the values' shares."""

    decoder: LinearDecoder
    positions: Integers
    prefix_noise: PrefixNoise

    def sums(self, statistic: Statistic) -> Sums:
        """Return the sums of every prefix, q = m; the last is the whole domain."""
        m, n = self.prefix_noise.noise.size, float(self.decoder.group_reports(statistic).sum())
        shares = np.bincount(self.positions, self.decoder.totals(statistic), m)
        total = np.cumsum(shares, dtype=np.float64)
        total[-1] = n
        cumulative = np.cumsum(np.bincount(self.positions, minlength=m)) / self.positions.size
        noise, reach = n * self.prefix_noise.noise, np.ones(m)
        reach[-1] = 0.0
        return Sums(
            total=total,
            squares=noise + total,
            offset=total,
            noise=Noise(
                floor=noise,
                ceiling=noise,
                slope=np.zeros(m),
                reports=np.where(noise > 0.0, n, 0.0),
                moment=noise + n,
                peak=self.prefix_noise.noise + 1.0,
                typical=self.prefix_noise.noise,
                deviation=np.where(noise > 0.0, self.prefix_noise.largest, 0.0),
            ),
            limits=Limits(
                least=self.prefix_noise.least,
                largest=self.prefix_noise.largest,
                bottom=np.where(cumulative < 1.0, 0.0, 1.0),
                top=np.ones(m),
                fewest=np.where(cumulative < 1.0, 0.0, n),
                most=np.full(m, n),
            ),
            typical_sampling=cumulative * (1.0 - cumulative),
            disclosed=False,
            indicators=True,
            reach=reach,
        )


@dataclass(frozen=True)
class Prefixes:
    """Decodes the m prefixes `{x : positions[x] <= i}` of a mechanism's values.

    `positions` holds the position of each value, int64 `(k,)`. All fields depend only on the
    mechanism and the order: prepare once, estimate often.
    """

    mechanism: Mechanism
    positions: Integers
    prepared: CountPrefixes | SummedPrefixes | SetPrefixes

    @classmethod
    def of(cls, mechanism: Mechanism, positions: Integers | None = None) -> Self:
        """Prepare an order by the position of each value, int64 `(k,)`, by default its index.

        To order a grid along one axis, give the row, or the column, of each value.
        """
        ranks = np.arange(mechanism.size) if positions is None else positions
        if ranks.shape != (mechanism.size,) or ranks.min() < 0:
            raise ValueError(f"positions: expected {mechanism.size} numbers >= 0")
        queries = prepare_queries(mechanism)
        if isinstance(queries, SetDecoder):
            return cls(mechanism, ranks, CountPrefixes.of(queries, ranks))
        assert isinstance(queries, LinearQueries)
        known = queries.decoder.prefix_noise(ranks)
        if known is None:
            return cls(mechanism, ranks, SetPrefixes(queries, ranks))
        return cls(mechanism, ranks, SummedPrefixes(queries.decoder, ranks, known))

    @property
    def spread(self) -> Floats:
        """The length of the interval of decoded reports, `max h - min h`: float64 `(m,)`.

        With several disclosed groups it is taken over all prefixes so far, which is a bound.
        """
        return self.prepared.sums(self.mechanism.empty()).spread

    def estimate(self, statistic: Statistic, n: int, **options: Unpack[OptionKeywords]) -> Estimate:
        """Estimate the share of every prefix, q = m; the last is 1."""
        check_counts(self.mechanism, statistic, n)
        return bound(self.prepared.sums(statistic), n, Options(**options))
