"""What the owner of a partition holds of its cells: those that it touches, as numbers.

Counts of a closed pane never change any more, so only open panes are held as arrays, chunk by chunk
and from the first report that touches a chunk; the totals of all panes are held, because late
reports still move them. Of all other live cells only the epoch is known, for the lineage.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.cells import (
    Totals,
    decode_chunk,
    decode_final,
    decode_totals,
    encode_chunk,
    encode_final,
    encode_totals,
)
from ldpstream.agents.context import Context
from ldpstream.agents.panes import PaneIndex
from ldpstream.agents.records import Head, Name
from ldpstream.agents.tail import CellRecord
from ldpstream.mechanisms.mechanism import Reports


class OwnedCells:
    """The cells of a partition in its owner's memory, loaded from a head and its live cells."""

    def __init__(
        self, context: Context, epoch: int, head: Head, cells: Mapping[Name, CellRecord]
    ) -> None:
        self._mechanism = context.spec.mechanism
        self._chunk = context.chunk
        self._epoch = epoch
        self._origin: dict[Name, int] = {}
        self._epochs: Counter[int] = Counter()
        self._index = PaneIndex(context.window)
        self._totals: dict[int, Totals] = {}
        self._stored: dict[int, dict[int, bytes]] = {}
        self._chunks: dict[int, dict[int, NDArray[np.int64]]] = {}
        self._finals: dict[int, bytes] = {}
        self._dirty: set[Name] = set()
        self._scratch = self._mechanism.empty()
        size = self._mechanism.statistic_size
        self._ends = np.minimum(np.arange(0, size, self._chunk) + self._chunk, size)
        for name, cell in cells.items():
            self._adopt(name, cell.epoch)
            if name.kind == "n":
                self._totals[name.number] = decode_totals(cell.value)
            elif name.kind == "count" and name.number >= head.closed:
                self._stored.setdefault(name.number, {})[name.chunk] = cell.value
            elif name.kind == "final" and name.number >= head.published:
                self._finals[name.number] = decode_final(cell.value)

    def _adopt(self, name: Name, epoch: int) -> None:
        before = self._origin.get(name)
        if before != epoch:
            if before is not None:
                self._epochs[before] -= 1
            self._origin[name] = epoch
            self._epochs[epoch] += 1
        self._index.add(name)

    def count(self, pane: int, reports: Reports) -> None:
        """Add the reports counted in an open pane."""
        delta = self._scratch
        self._mechanism.absorb(delta, reports)
        places = np.flatnonzero(delta)
        added = delta[places]
        delta[places] = 0
        ends = np.searchsorted(places, self._ends)
        for chunk in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
            part = slice(ends[chunk - 1] if chunk else 0, ends[chunk])
            self._array(pane, chunk)[places[part] - chunk * self._chunk] += added[part]
            self._touch(Name("count", pane, chunk))
        total = self._totals.get(pane, Totals())
        self._totals[pane] = Totals(
            total.n + len(reports), total.late, total.sum + int(added.sum())
        )
        self._touch(Name("n", pane))

    def _array(self, pane: int, chunk: int) -> NDArray[np.int64]:
        chunks = self._chunks.setdefault(pane, {})
        if chunk not in chunks:
            length = min(self._chunk, len(self._scratch) - chunk * self._chunk)
            stored = self._stored.get(pane, {}).pop(chunk, None)
            chunks[chunk] = (
                np.zeros(length, dtype=np.int64) if stored is None else decode_chunk(stored, length)
            )
        return chunks[chunk]

    def _touch(self, name: Name) -> None:
        self._dirty.add(name)
        self._index.add(name)

    def late(self, pane: int, count: int) -> None:
        """Add late reports to a closed pane's totals."""
        total = self._totals.get(pane, Totals())
        self._totals[pane] = total._replace(late=total.late + count)
        self._touch(Name("n", pane))

    def final(self, window: int, content: bytes) -> None:
        """Add the final of a window."""
        self._finals[window] = content
        self._touch(Name("final", window))

    def finals(self, first: int, end: int) -> list[tuple[int, bytes]]:
        """Return the finals held of the windows in `[first, end)`, in order."""
        return sorted((w, content) for w, content in self._finals.items() if first <= w < end)

    def forget_finals(self, published: int) -> None:
        """Drop the contents of the windows below `published`; their cells stay."""
        for window in [w for w in self._finals if w < published]:
            del self._finals[window]

    def expire(self, pane: int) -> int:
        """Drop all panes below this one; returns how many counted reports they held."""
        gone = 0
        for name in self._index.pop_below(pane):
            epoch = self._origin.pop(name, None)
            if epoch is not None:
                self._epochs[epoch] -= 1
            self._dirty.discard(name)
            if name.kind == "n":
                gone += self._totals.pop(name.number).n
            elif name.kind == "count":
                self._chunks.pop(name.number, None)
                self._stored.pop(name.number, None)
            else:
                self._finals.pop(name.number, None)
        return gone

    def flush(self, closed: int) -> list[tuple[Name, bytes]]:
        """Return the cells touched since the last flush, in order; from now on they are ours.

        The counts of panes below `closed` are dropped: they never change any more.
        """
        cells = [(name, self._encode(name)) for name in sorted(self._dirty)]
        for name in self._dirty:
            self._adopt(name, self._epoch)
        self._dirty.clear()
        for held in (self._chunks, self._stored):
            for pane in [pane for pane in held if pane < closed]:
                del held[pane]
        return cells

    def _encode(self, name: Name) -> bytes:
        if name.kind == "count":
            return encode_chunk(self._chunks[name.number][name.chunk])
        if name.kind == "n":
            return encode_totals(self._totals[name.number])
        return encode_final(self._finals[name.number])

    def lineage(self, before: Mapping[int, int], seq: int) -> dict[int, int]:
        """Return the lineage of our head with this seq, after the base's (rule 3)."""
        live = {epoch for epoch, cells in self._epochs.items() if cells > 0}
        self._epochs = Counter({epoch: self._epochs[epoch] for epoch in live})
        return {epoch: before[epoch] for epoch in live - {self._epoch}} | {self._epoch: seq}
