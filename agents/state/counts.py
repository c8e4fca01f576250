"""The counts of open panes in their owner's memory, in every form that a chunk may have there."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.state.cell_encoding import decode_chunk, encode_chunk, encode_few

_HeldChunk = bytes | dict[int, int] | NDArray[np.int64]
FEW_ENTRIES: Final = 64
"""A chunk with at most this many non-zero entries is a dictionary."""
ARRAY_BYTES: Final = 64 << 20


class Counts:
    """The counts of open panes, in space proportional to what was counted.

    The statistic has `size` entries, in chunks of `chunk`. A chunk is bytes until it is touched, a
    dictionary while few of its entries are non-zero, and then an array. Arrays take at most
    `ARRAY_BYTES` together: beyond that the oldest become bytes again, because a single hostile
    message may open 65,535 panes.
    """

    def __init__(self, size: int, chunk: int) -> None:
        self._size = size
        self._chunk = chunk
        self._panes: dict[int, dict[int, _HeldChunk]] = {}
        # The arrays, the oldest first.
        self._arrays: dict[tuple[int, int], int] = {}
        self._array_bytes = 0

    def load(self, pane: int, chunk: int, value: bytes) -> None:
        """Load a chunk from its stored value."""
        self._panes.setdefault(pane, {})[chunk] = value

    def add_few(self, pane: int, counts: Sequence[tuple[int, int]]) -> set[int]:
        """Add counts to a pane, as `(entry, count)`; return the chunks touched."""
        chunks = self._panes.setdefault(pane, {})
        touched = set()
        for place, count in counts:
            number, at = divmod(place, self._chunk)
            touched.add(number)
            chunk = chunks.setdefault(number, {})
            if not isinstance(chunk, dict) or len(chunk) >= FEW_ENTRIES:
                chunk = self._array(pane, number)
                chunk[at] += count
            else:
                chunk[at] = chunk.get(at, 0) + count
        return touched

    def add(self, pane: int, places: NDArray[np.int64], counts: NDArray[np.int64]) -> Iterator[int]:
        """Add counts to a pane, at ascending `places`; yield each chunk once it is touched."""
        numbers = places // self._chunk
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        ends = [*starts[1:].tolist(), len(places)]
        for start, end in zip(starts.tolist(), ends, strict=True):
            number = int(numbers[start])
            at = places[start:end] - number * self._chunk
            self._array(pane, number)[at] += counts[start:end]
            yield number

    def _array(self, pane: int, number: int) -> NDArray[np.int64]:
        chunk = self._panes.setdefault(pane, {}).get(number)
        if isinstance(chunk, np.ndarray):
            return chunk
        length = self._length(number)
        if isinstance(chunk, bytes):
            array = decode_chunk(chunk, length)
        else:
            array = np.zeros(length, dtype=np.int64)
            if chunk:
                array[list(chunk)] = list(chunk.values())
        while self._array_bytes + array.nbytes > ARRAY_BYTES and self._arrays:
            self._pack(*next(iter(self._arrays)))
        self._panes[pane][number] = array
        self._arrays[pane, number] = array.nbytes
        self._array_bytes += array.nbytes
        return array

    def _length(self, number: int) -> int:
        return min(self._chunk, self._size - number * self._chunk)

    def _pack(self, pane: int, number: int) -> None:
        """Turn an array into bytes."""
        self._panes[pane][number] = self.value(pane, number)
        self._array_bytes -= self._arrays.pop((pane, number))

    def value(self, pane: int, number: int) -> bytes:
        """Return the stored value of a chunk."""
        chunk = self._panes[pane][number]
        if isinstance(chunk, bytes):
            return chunk
        if isinstance(chunk, dict):
            return encode_few(chunk, self._length(number))
        return encode_chunk(chunk)

    def drop(self, pane: int) -> None:
        """Drop a pane; does nothing if it is not held."""
        for number in self._panes.pop(pane, {}):
            self._array_bytes -= self._arrays.pop((pane, number), 0)

    def drop_below(self, closed: int) -> None:
        """Drop all panes below this one."""
        for pane in [pane for pane in self._panes if pane < closed]:
            self.drop(pane)
