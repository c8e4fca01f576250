"""Reports that are one symbol: their bytes, the counts of symbols, and the decoders of counts.

A symbol is an integer in `0..outputs-1`, sent little-endian in the fewest whole bytes. The
statistic counts each symbol, so that a decoder is a vector over the symbols.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.decoder import ROUNDING, Decoded, Decoder
from ldpstream.mechanisms.interface.mechanism import Mechanism, Reports, Statistic

_FEW: Final = 16
MOST_REPORTS: Final = 1 << 11
"""Most reports, and values, of a channel whose whole table is computed, in about a second."""
_IMPOSSIBLE: Final = 2.0**-60
"""Probabilities below this are rounding of a transform, or might as well be."""


class SymbolMechanism(Mechanism):
    """Encoding and statistic shared by all mechanisms that report one symbol."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Number of possible reports; reports are the integers `0..outputs-1`."""

    def possible_reports(self) -> Reports:
        return np.arange(self.outputs, dtype=np.int64)

    @cached_property
    def report_bytes(self) -> int:
        """Length of a report: the fewest whole bytes that hold every symbol, at least 1."""
        return -(-self.report_bits // 8)

    @property
    def report_bits(self) -> int:
        return max(1, (self.outputs - 1).bit_length())

    @cached_property
    def statistic_size(self) -> int:
        return self.outputs

    def encode(self, reports: Reports) -> NDArray[np.uint8]:
        return to_bytes(reports, self.report_bytes)

    def decode(self, payload: NDArray[np.uint8]) -> tuple[Reports, NDArray[np.bool_]]:
        """Decode uint8 `(n, report_bytes)` into `(reports, valid)`, each of shape `(n,)`.

        A symbol that does not exist becomes 0 and is not valid.
        """
        reports = from_bytes(payload)
        valid = reports < self.outputs
        if not valid.all():
            reports[~valid] = 0
        return reports, valid

    @property
    @abstractmethod
    def decoder(self) -> "CountDecoder":
        """The decoder of linear queries."""

    @cached_property
    def table(self) -> Floats | None:
        if max(self.size, self.outputs) > MOST_REPORTS:
            return None
        table: Floats = self.decoder.expect_each(np.eye(self.outputs)).T
        return np.where(table < _IMPOSSIBLE, 0.0, table)

    def accumulate(self, statistic: Statistic, reports: Reports) -> None:
        statistic += np.bincount(reports, minlength=self.outputs)

    def sparse_counts(self, reports: Reports) -> Sequence[tuple[int, int]] | None:
        """Return each symbol of a few reports with its count; None for more reports."""
        if len(reports) > _FEW:
            return None
        return list(Counter(reports.tolist()).items())

    def count(self, statistic: Statistic) -> int:
        return int(statistic.sum())

    def accumulate_times(
        self, statistic: Statistic, reports: Reports, times: NDArray[np.int64]
    ) -> None:
        np.add.at(statistic, reports, times)


def to_bytes(numbers: Integers, size: int) -> NDArray[np.uint8]:
    """Return n integers >= 0 as rows, uint8 `(n, size)`, little-endian; size is at most 8."""
    table = np.ascontiguousarray(numbers, dtype="<i8").view(np.uint8).reshape(-1, 8)
    return table[:, :size]


def from_bytes(rows: NDArray[np.uint8]) -> Integers:
    """Return the integers of little-endian rows, uint8 `(n, size)`: int64 `(n,)`."""
    table = np.zeros((len(rows), 8), dtype=np.uint8)
    table[:, : rows.shape[1]] = rows
    return table.view("<i8")[:, 0].astype(np.int64, copy=False)


class CountDecoder(Decoder):
    """Decoders of a statistic `N` that counts symbols `y = 0..outputs-1`."""

    @abstractmethod
    def decode(self, weights: Floats) -> Floats:
        """Return `h` with `Q h = weights`: float64 `(k,)` -> float64 `(outputs,)`.

        `h` is the sum of the single values' decoders, weighted: linear in `weights`.
        """

    @abstractmethod
    def expect(self, function: Floats) -> Floats:
        """Return `Q f`, the mean of a function of the report for a user of each value.

        float64 `(outputs,)` -> float64 `(k,)`; with `f = h^2` this gives every variance.
        """

    def decode_each(self, weights: Floats) -> Floats:
        """Return `decode` of each row, float64 `(q, k)` -> `(q, outputs)`."""
        return np.stack([self.decode(row) for row in weights])

    def expect_each(self, function: Floats) -> Floats:
        """Return `expect` of each row, float64 `(q, outputs)` -> `(q, k)`."""
        return np.stack([self.expect(row) for row in function])

    def output_groups(self) -> Integers | None:
        """Return the group of each output, int64 `(outputs,)`; None if `groups` is None."""
        return None

    def noise(self, weights: Floats) -> Floats:
        """Return `(Q h^2)[x] - w[x]^2` of the plain decoder: float64 `(k,)`."""
        return self.noise_of(self.decode(weights), weights)

    def noise_of(self, decoded: Floats, weights: Floats) -> Floats:
        """Return the noise of any `h` with `Q h = weights`: float64 `(k,)`, >= 0."""
        return remove_rounding(self.expect(decoded**2), weights)

    def group_reports(self, statistic: Statistic) -> Integers:
        group = self.output_groups()
        if group is None:
            return np.array([statistic.sum()], dtype=np.int64)
        reports = np.zeros(int(group.max()) + 1, dtype=np.int64)
        np.add.at(reports, group, statistic)
        return reports


class DenseDecoder(CountDecoder):
    """Decoders of small channels, from dense tables.

    `decoders[x]` is `h_x` and `channel[x]` is `Q[x, .]`: float64 `(k, outputs)` each.
    """

    def __init__(self, decoders: Floats, channel: Floats) -> None:
        self._h = decoders
        self._q = channel

    def totals(self, statistic: Statistic) -> Floats:
        return self._h @ statistic.astype(np.float64)

    def moments(self, decoded: Decoded, at: slice | Integers) -> Floats:
        moments: Floats = (self._h**2) @ decoded.statistic.astype(np.float64)
        return moments[at]

    def extremes(self) -> tuple[Floats, Floats]:
        return self._h.min(axis=1), self._h.max(axis=1)

    def decode(self, weights: Floats) -> Floats:
        decoded: Floats = np.asarray(weights, dtype=np.float64) @ self._h
        return decoded

    def expect(self, function: Floats) -> Floats:
        return self._q @ np.asarray(function, dtype=np.float64)


class MassDecoder(CountDecoder):
    """Count decoders that know `sum_x Q[x, y]` of each output without the whole channel."""

    @abstractmethod
    def output_mass(self, ones: Floats) -> Floats:
        """Return `sum_x Q[x, y]` of each output, `(outputs,)`, `ones` being `decode(1)`."""


def remove_rounding(moments: Floats, weights: Floats, scale: float = 1.0) -> Floats:
    """Return `moments - weights^2`, float64 `(.., k)`, exactly 0 where only rounding is left.

    A value that is reported exactly then has no noise. Rounding is measured against the largest
    weight, so that the unit of the weights does not matter. What moments were added up from is
    about `scale` times as large as squared weights.
    """
    squares = weights**2
    noise = moments - squares
    largest = scale * squares.max(axis=-1, initial=0.0, keepdims=True)
    noise[noise <= ROUNDING * np.maximum(moments, largest)] = 0.0
    return noise
