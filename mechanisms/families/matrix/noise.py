"""Rows of integers with discrete Laplace noise, clamped to fixed ranges (docs/theory.md section 4).

Row j of value x is `clamp(A[j, x] + D)`, `P(D = d) = (1 - a)/(1 + a) a^|d|`, `a = e^(-1/s_j)` as a
multiple of 2^-64: the discrete Laplace, or two-sided geometric, distribution (`exact.geometric`).
The range extends so far beyond the row's entries that less than 2^-64 of the noise is clamped.
Channels and the ratios of a proof are exact rationals.

Under a policy a strategy has such rows, and exact ones, which disclose groups of values.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.channels.channel import Channel, refuse_large
from ldpstream.mechanisms.exact.dyadic import geometric_threshold, log_bounds, log_estimate
from ldpstream.mechanisms.exact.entropy import WORD, Entropy
from ldpstream.mechanisms.exact.geometric import TwoSidedGeometric
from ldpstream.mechanisms.families.matrix.pairs import (
    ProtectedPairs,
    check_rates,
    harmless_rows,
    read_rates,
    uniform_rate,
)
from ldpstream.mechanisms.families.matrix.strategy import Entries, Strategy

_CELLS = 1 << 20
# 65 log 2, rounded up.
_CLIPPED = Fraction(450545669, 10**7)
LARGEST_REACH = 1 << 30
_MARGIN = 1e-9
_LONGEST_BITS = 4096
_KEPT_BITS = 512


@dataclass(frozen=True, eq=False)
class LaplaceRows:
    """m noisy rows over k values.

    `entries` is int32 `(m, k)` and `kinds` is int64 `(m,)`. Row j has
    `alpha = thresholds[kinds[j]] / 2^64`, and a range that extends `reaches[kinds[j]]` beyond its
    entries on both sides.
    """

    entries: Entries
    thresholds: tuple[int, ...]
    reaches: tuple[int, ...]
    kinds: Integers

    @property
    def count(self) -> int:
        """Number of rows m."""
        return len(self.entries)

    @cached_property
    def low(self) -> Integers:
        """The least report of each row, int64 `(m,)`."""
        ends: Integers = self.entries.min(axis=1).astype(np.int64)
        return ends - np.array(self.reaches, dtype=np.int64)[self.kinds]

    @cached_property
    def high(self) -> Integers:
        """The largest report of each row, int64 `(m,)`."""
        ends: Integers = self.entries.max(axis=1).astype(np.int64)
        return ends + np.array(self.reaches, dtype=np.int64)[self.kinds]

    @cached_property
    def variances(self) -> Floats:
        """The noise's variance `2 a/(1 - a)^2` of each row, float64 `(m,)`.

        Clamping changes it by less than `2^-64` times the squared length of the range, and the mean
        by less than `2^-64` times the length, which is below the rounding of float64.
        """
        # 1 - alpha in floating point would lose its digits.
        of_kind = [2 * t * WORD / (WORD - t) ** 2 for t in self.thresholds]
        return np.array(of_kind)[self.kinds]

    @cached_property
    def deviations(self) -> Floats:
        """`3/log(1/a) + 1` of each row: its `LinearDecoder.deviation`, float64 `(m,)`.

        For even m, the m-th cumulant is `v E X^(m - 2)` for an X with `P(X = k) ~ k a^k`. X is 1
        plus two geometric numbers, which exponential ones of mean `b = 1/log(1/a)` dominate. The
        cumulant is therefore at most `v sum_i C(m - 2, i) b^i (i + 1)!`. Term by term this is at
        most `v (m!/2) (b + 1/3)^(m - 2)`, since `2 3^j (i + 1)! <= m!` for `j = m - 2 - i`. That is
        Bernstein's condition with `M/3 = b + 1/3`.
        """
        rates = [float(log_bounds(Fraction(WORD, t))[0]) for t in self.thresholds]
        return (3.0 / np.array(rates) + 1.0)[self.kinds]

    def privatize(self, values: Integers, entropy: Entropy) -> Integers:
        """Return the reports of values, int64 `(n,)`, as int64 `(n, m)`, with independent noise.

        Values are drawn in batches of `2^20 / m` (at least one), in order.
        """
        out = np.empty((len(values), self.count), dtype=np.int64)
        step = max(1, _CELLS // self.count)
        last = self.high - self.low
        for start in range(0, len(values), step):
            cells = self._columns[values[start : start + step]]
            n = len(cells)
            moved = self._noise.move(
                entropy, cells.ravel(), np.tile(last, n), np.tile(self.kinds, n)
            )
            out[start : start + n] = moved.reshape(n, self.count) + self.low
        return out

    def row_channel(self, row: int) -> list[dict[int, Fraction]]:
        """Return the channel of one row: for each value, the exact probability of each report."""
        alpha = Fraction(self.thresholds[self.kinds[row]], WORD)
        low, high = int(self.low[row]), int(self.high[row])
        ends = [alpha**d / (1 + alpha) for d in range(high - low + 1)]
        return [
            {
                y: ends[abs(y - a)] * (1 if y in (low, high) else 1 - alpha)
                for y in range(low, high + 1)
            }
            for a in self.entries[row].tolist()
        ]

    @cached_property
    def _columns(self) -> Integers:
        """The columns of the values, minus the least report of each row, int64 `(k, m)`."""
        return np.ascontiguousarray((self.entries - self.low[:, None]).T)

    @cached_property
    def _noise(self) -> TwoSidedGeometric:
        largest = int((self.high - self.low).max()) + 1
        return TwoSidedGeometric(self.thresholds, largest)


def reach(threshold: int) -> int:
    """Return an R that the noise exceeds with probability `2 a^(R + 1) / (1 + a) < 2^-64`.

    It is the least such R or one more: `R + 1 = ceil(65 log 2 / log(1/a))`, with the quotient
    rounded up.

    >>> reach(1), reach(1 << 63)
    (1, 65)
    """
    rate = Fraction(log_bounds(Fraction(WORD, threshold))[0])
    return max(math.ceil(_CLIPPED / rate) - 1, 1) if rate else LARGEST_REACH + 1


def channel_of_rows(rows: LaplaceRows, group: Integers, groups: int) -> Channel:
    """Return the channel of values in disclosed groups, `group` int64 `(k,)` in `0..groups-1`.

    Outputs are numbered by group, then by the combination of the rows' numbers, the last row
    varying fastest.
    """
    refuse_many(rows, len(group), groups)
    tables = [rows.row_channel(row) for row in range(rows.count)]
    outputs = prod(_spans(rows))
    channel = []
    for value, number in enumerate(group.tolist()):
        chances = product(*(table[value].values() for table in tables))
        row = (prod(factors, start=Fraction(1)) for factors in chances)
        channel.append(dict(enumerate(row, number * outputs)))
    return Channel(tuple(channel), groups * outputs)


def refuse_many(rows: LaplaceRows, size: int, groups: int) -> None:
    """Refuse channels of `size` values that are too large."""
    spans = _spans(rows)
    refuse_large(size, size * groups * prod(spans) * sum(spans))


def _spans(rows: LaplaceRows) -> list[int]:
    return [int(span) + 1 for span in (rows.high - rows.low).tolist()]


def worst_ratios(rows: LaplaceRows, pairs: ProtectedPairs) -> dict[Fraction, Fraction]:
    """Return the largest ratio of the pairs with each budget.

    Two columns that differ by d_j in row j give each report, clamped or not, probabilities whose
    ratio is at most `prod_j a_j^-d_j`. A report beyond both columns in every row attains it.

    Floats, with a relative error of some 1e-12, exclude pairs that are surely below another one of
    the same budget. For the rest, all different products are computed as fractions; those of more
    than 4096 bits are rounded up to a multiple of 2^-512, so that a certificate can hold them.
    """
    rates = np.array([log_estimate(Fraction(WORD, t)) for t in rows.thresholds])
    if len(rates) == 1:
        losses = rates[0] * pairs.distances(rows.entries)
    else:
        losses = pairs.weighted(rows.entries, rates[rows.kinds])
    largest = np.zeros(len(pairs.budgets))
    np.maximum.at(largest, pairs.which, losses)
    near = np.flatnonzero(losses >= largest[pairs.which] * (1.0 - _MARGIN))
    worst = dict.fromkeys(pairs.budgets, Fraction(1))
    for *counts, which in pairs.patterns(rows.entries, rows.kinds, near):
        budget = pairs.budgets[which]
        worst[budget] = max(worst[budget], _ratio(rows.thresholds, counts))
    return worst


def _ratio(thresholds: Sequence[int], counts: Sequence[int]) -> Fraction:
    top = bottom = 1
    for threshold, count in zip(thresholds, counts, strict=True):
        top *= WORD**count
        bottom *= threshold**count
    if top.bit_length() > _LONGEST_BITS:
        return Fraction(-((-top << _KEPT_BITS) // bottom), 1 << _KEPT_BITS)
    return Fraction(top, bottom)


def disclosed_pair(group: Integers, pairs: ProtectedPairs) -> str | None:
    """Return a message on the first protected pair in different groups, which reports disclose."""
    separate = np.flatnonzero(group[pairs.first] != group[pairs.second])
    if not separate.size:
        return None
    value, other = int(pairs.first[separate[0]]), int(pairs.second[separate[0]])
    return f"values {value} and {other}: reports disclose which of them it is"


@dataclass(frozen=True, eq=False)
class RealisedRows:
    """The noisy rows, and the group of each value that the exact rows disclose.

    `group` is int64 `(k,)`, numbered from 0.
    """

    noisy: LaplaceRows
    group: Integers

    @property
    def groups(self) -> int:
        """Number of groups, 1 if nothing is disclosed."""
        return int(self.group.max()) + 1


def realise(
    strategy: Strategy, pairs: ProtectedPairs, scales: Sequence[float] | None
) -> RealisedRows:
    """Return a strategy's rows with noise that keeps a policy.

    Without `scales` all noisy rows share one scale, and rows that separate no protected pair are
    exact. Constant rows are left out, since they hold no more than the number of reports.
    """
    entries = strategy.entries
    harmless = harmless_rows(entries, pairs)
    rates: Sequence[Fraction | None]
    varied = (entries != entries[:, :1]).any(axis=1)
    if scales is None:
        if harmless.all():
            raise SpecError("policy", "a budget between values that the strategy tells apart")
        shared = uniform_rate(entries[~harmless], pairs)
        rates = [None if free else shared for free in harmless.tolist()]
    else:
        rates = read_rates(scales, entries, harmless)
    rows = [j for j, rate in enumerate(rates) if rate is not None and varied[j]]
    finite = [rate for j in rows if (rate := rates[j]) is not None]
    if not rows:
        raise SpecError("scales", "a number above 0 for some row that is not constant")
    if scales is not None:
        check_rates(entries[rows], finite, pairs)
    exact = entries[[rate is None for rate in rates]]
    return RealisedRows(_laplace(entries[rows], finite), _groups(exact, strategy.size))


def _laplace(entries: Entries, rates: Sequence[Fraction]) -> LaplaceRows:
    """Return the rows with alphas rounded up to multiples of 2^-64."""
    of_rate = {rate: geometric_threshold(rate) for rate in set(rates)}
    thresholds = tuple(sorted(set(of_rate.values())))
    if thresholds[-1] >= WORD:
        raise SpecError("policy", "larger budgets: at these rows are nothing but noise")
    reaches = tuple(reach(threshold) for threshold in thresholds)
    if max(reaches) > LARGEST_REACH:
        raise SpecError("policy", f"larger budgets, for noise of at most {LARGEST_REACH}")
    places = {threshold: kind for kind, threshold in enumerate(thresholds)}
    kinds = np.array([places[of_rate[rate]] for rate in rates], dtype=np.int64)
    return LaplaceRows(entries, thresholds, reaches, kinds)


def _groups(exact: Entries, size: int) -> Integers:
    if not len(exact):
        return np.zeros(size, dtype=np.int64)
    return np.unique(exact, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class RowCodec:
    """Integers in `low[j]..high[j]`, int64 `(width,)` each, `high - low` below 2^32.

    Column j is sent as `y - low[j]`, little-endian in the fewest whole bytes (1..4) that hold
    `high[j] - low[j]`.
    """

    low: Integers
    high: Integers

    @cached_property
    def lengths(self) -> Integers:
        """Bytes of each column, int64 `(width,)`."""
        spans = (self.high - self.low).tolist()
        return np.array([max(1, -(-span.bit_length() // 8)) for span in spans], dtype=np.int64)

    @property
    def bytes(self) -> int:
        """Length of a row."""
        return int(self.lengths.sum())

    def encode(self, reports: Integers) -> NDArray[np.uint8]:
        """Encode reports, int64 `(n, width)`, as uint8 `(n, bytes)`."""
        column, shift = self._places
        offsets = reports - self.low
        return (offsets[:, column] >> shift & 0xFF).astype(np.uint8)

    def decode(self, payload: NDArray[np.uint8]) -> tuple[Integers, Bools]:
        """Decode uint8 `(n, bytes)` into `(reports, valid)` of shapes `(n, width)` and `(n,)`.

        A row out of range is clamped and not valid.
        """
        column, shift = self._places
        shifted = payload.astype(np.int64) << shift
        starts = np.flatnonzero(np.diff(column, prepend=-1))
        reports = np.add.reduceat(shifted, starts, axis=1) + self.low
        outside = np.zeros(len(payload), dtype=np.bool_)
        outside[np.flatnonzero(reports > self.high) // len(self.high)] = True
        clamped: Integers = np.minimum(reports, self.high)
        return clamped, ~outside

    @cached_property
    def _places(self) -> tuple[Integers, Integers]:
        """Column and shift of each byte, int64 `(bytes,)`."""
        column = np.repeat(np.arange(self.lengths.size), self.lengths)
        starts = np.cumsum(self.lengths) - self.lengths
        return column, 8 * (np.arange(self.bytes) - starts[column])
