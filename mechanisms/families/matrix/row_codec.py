"""Fixed-length encoding of rows of integers, each with its own range."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Integers


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

    def decode(self, payload: NDArray[np.uint8]) -> tuple[Integers, NDArray[np.bool_]]:
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
