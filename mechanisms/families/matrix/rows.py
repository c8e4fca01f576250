"""A strategy under a policy: its rows with noise, what exact rows disclose, and their encoding."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Bools, Integers
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.exact.dyadic import geometric_threshold
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.matrix.noise import LARGEST_REACH, LaplaceRows, reach
from ldpstream.mechanisms.families.matrix.pairs import (
    ProtectedPairs,
    check_rates,
    harmless_rows,
    read_rates,
    uniform_rate,
)
from ldpstream.mechanisms.families.matrix.strategy import Entries, Strategy


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

    Raises:
        SpecError: as for `Matrix`.
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
    kept = [j for j, rate in enumerate(rates) if rate is not None and varied[j]]
    finite = [rate for j in kept if (rate := rates[j]) is not None]
    if not kept:
        raise SpecError("scales", "a number above 0 for some row that is not constant")
    if scales is not None:
        check_rates(entries[kept], finite, pairs)
    exact = entries[[rate is None for rate in rates]]
    return RealisedRows(_laplace(entries[kept], finite), _groups(exact, strategy.size))


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
        parts = payload.astype(np.int64) << shift
        starts = np.flatnonzero(np.diff(column, prepend=-1))
        reports = np.add.reduceat(parts, starts, axis=1) + self.low
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
