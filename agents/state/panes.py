"""What is held by pane, so that dropping a pane costs only as much as it has.

A replica and its owner index the names of cells and keep the parts that panes are grouped into
(`ldpstream.agents.partition.answers`); only the owner holds the counts of open panes.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from heapq import heappop, heappush
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.state.cells import decode_chunk, encode_chunk, encode_few
from ldpstream.agents.state.records import Kind, Name
from ldpstream.agents.state.windows import NEVER, WindowSpec

_FEW_NAMES: Final = 8
"""Up to this many names of a pane are a tuple: most panes have two or three."""
_KEPT: Final = 0
_LIFETIMES: Final[dict[Kind, int]] = {"token": 1, "release": 2, "open": 2, "late": 3}
FEW_ENTRIES: Final = 64
"""A chunk with at most this many non-zero entries is a dictionary."""
ARRAY_BYTES: Final = 64 << 20


class Firsts(NamedTuple):
    """The first pane of each lifetime whose cells have not left the state; NEVER: all are in it."""

    kept: int = NEVER
    tokens: int = NEVER
    releases: int = NEVER
    late: int = NEVER


class PaneIndex:
    """The names of cells by pane; a final belongs to its window's first pane.

    Cells leave the state with their pane: tokens when it closes, releases when it is in a part, its
    counts when partition 0 stores them, all others when it expires.
    """

    def __init__(self, window: WindowSpec) -> None:
        self._hop_panes = window.hop_panes
        # Tuples and dictionaries are ordered, so every process iterates in the same order.
        self._names: tuple[dict[int, tuple[Name, ...] | dict[Name, None]], ...] = ({}, {}, {}, {})
        self._order: tuple[list[int], ...] = ([], [], [], [])

    def add(self, name: Name) -> None:
        """Add a name; adding it again changes nothing."""
        lifetime = _LIFETIMES.get(name.kind, _KEPT)
        pane = name.number * self._hop_panes if name.kind == "final" else name.number
        panes = self._names[lifetime]
        names = panes.get(pane)
        if names is None:
            panes[pane] = (name,)
            heappush(self._order[lifetime], pane)
        elif isinstance(names, dict):
            names[name] = None
        elif name not in names:
            more = (*names, name)
            panes[pane] = more if len(more) <= _FEW_NAMES else dict.fromkeys(more)

    def discard(self, name: Name) -> None:
        """Remove a name if present."""
        panes = self._names[_LIFETIMES.get(name.kind, _KEPT)]
        pane = name.number * self._hop_panes if name.kind == "final" else name.number
        names = panes.get(pane, ())
        if isinstance(names, dict):
            names.pop(name, None)
        elif name in names:
            panes[pane] = tuple(other for other in names if other != name)

    def names(self, pane: int, kind: Kind = "n") -> Collection[Name]:
        """Return the names of a pane that leave when those of this kind do."""
        return self._names[_LIFETIMES.get(kind, _KEPT)].get(pane, ())

    def between(self, first: int, end: int, *kinds: Kind) -> list[int]:
        """Return the panes in `[first, end)` that may have names of these kinds, in order."""
        found: set[int] = set()
        for kind in kinds:
            panes = self._names[_LIFETIMES.get(kind, _KEPT)]
            few = end - first < len(panes)
            found |= panes.keys() & range(first, end) if few else panes.keys()
        return sorted(pane for pane in found if first <= pane < end)

    def holds(self, name: Name, firsts: Firsts) -> bool:
        """Return whether a cell has not left the state."""
        pane = name.number * self._hop_panes if name.kind == "final" else name.number
        return pane >= firsts[_LIFETIMES.get(name.kind, _KEPT)]

    def pop_gone(self, firsts: Firsts) -> list[Name]:
        """Remove and return the names that have left."""
        gone: list[Name] = []
        for panes, order, first in zip(self._names, self._order, firsts, strict=True):
            while order and order[0] < first:
                gone += panes.pop(heappop(order))
        return gone


class Part(NamedTuple):
    """The panes `[first, end)` and their number of reports over all partitions."""

    first: int
    end: int
    n: int


class Parts:
    """A set of parts that do not overlap."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._parts: dict[int, Part] = {}

    def add(self, part: Part) -> None:
        """Add a part, which must overlap no other."""
        if part.end not in self._parts:
            self._ends.insert(bisect_left(self._ends, part.end), part.end)
        self._parts[part.end] = part

    def discard(self, end: int) -> None:
        """Remove the part that ends there, if any."""
        if self._parts.pop(end, None) is not None:
            del self._ends[bisect_left(self._ends, end)]

    def touching(self, first: int, end: int) -> list[Part]:
        """Return the parts that share panes with `[first, end)`, in order."""
        found = []
        for at in range(bisect_right(self._ends, first), len(self._ends)):
            part = self._parts[self._ends[at]]
            if part.first >= end:
                break
            found.append(part)
        return found


_HeldChunk = bytes | dict[int, int] | NDArray[np.int64]


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
            held = chunks.get(number)
            if held is None:
                chunks[number] = {at: count}
                continue
            if not isinstance(held, dict) or len(held) >= FEW_ENTRIES:
                held = self._array(pane, number)
                held[at] += count
            else:
                held[at] = held.get(at, 0) + count
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
        held = self._panes.setdefault(pane, {}).get(number)
        if isinstance(held, np.ndarray):
            return held
        length = self._length(number)
        if isinstance(held, bytes):
            array = decode_chunk(held, length)
        else:
            array = np.zeros(length, dtype=np.int64)
            if held:
                array[list(held)] = list(held.values())
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
        held = self._panes[pane][number]
        if isinstance(held, bytes):
            return held
        if isinstance(held, dict):
            return encode_few(held, self._length(number))
        return encode_chunk(held)

    def drop(self, pane: int) -> None:
        """Drop a pane; does nothing if it is not held."""
        for number in self._panes.pop(pane, {}):
            self._array_bytes -= self._arrays.pop((pane, number), 0)

    def drop_below(self, closed: int) -> None:
        """Drop all panes below this one."""
        for pane in [pane for pane in self._panes if pane < closed]:
            self.drop(pane)
