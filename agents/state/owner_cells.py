"""The cells of a partition in its owner's memory: only those that it may still change.

- Counts of a closed pane never change, so only those of open panes are held (`Counts`).
- Totals of all panes are held, because late reports still change them; for panes handed over to
  partition 0 only the number of late reports.
- Tokens of open panes are in `ldpstream.agents.state.tokens`; the head that closes a pane drops its
  tokens.
- Parts are held, and of panes that are in no part the releases, without their statistics, and the
  reserves.
- For all other live cells only the epoch is held, for the lineage.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.state.context import Context
from ldpstream.agents.state.disclosure_groups import (
    DisclosureGroup,
    DisclosureGroups,
    ReleasedPane,
    decode_release,
    encode_release,
)
from ldpstream.agents.state.encoding import (
    Totals,
    decode_chunk,
    decode_final,
    decode_late,
    decode_totals,
    encode_chunk,
    encode_few,
    encode_final,
    encode_late,
    encode_totals,
)
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.reserves import Reserves
from ldpstream.agents.state.tokens import Numbers, Tokens
from ldpstream.agents.state.windows import NEVER, Firsts, Kind, Name, PaneIndex
from ldpstream.mechanisms.interface.mechanism import Reports

CELLS_LIMIT: Final = 20_000


class OwnedCells:
    """The cells of a partition in its owner's memory, loaded from its replica and a head.

    In partition 0, `parts` are all unexpired parts by attribute, and `released` has the releases of
    panes in no part. Elsewhere, the counts of panes below `handed_over` are partition 0's.
    """

    def __init__(
        self,
        context: Context,
        epoch: int,
        head: Head,
        replica: Replica,
        *,
        handed_over: int = NEVER,
    ) -> None:
        self._mechanism = context.spec.mechanism
        self._epoch = epoch
        self._closed = head.closed  # tokens and counts of lower panes are not held
        self._origin: dict[Name, int] = {}
        self._epochs: Counter[int] = Counter()
        self._index = PaneIndex(context.window)
        self.parts = [DisclosureGroups() for _ in self._mechanism.slices]
        self.released: dict[int, ReleasedPane] = {}
        # Panes below it, all closed, are in parts or have too few reports for one.
        self.examined = NEVER
        # Chunks of releases and of gathered panes that the next flush writes.
        self._encoded: dict[Name, bytes] = {}
        self._handed_over = handed_over
        self._late: dict[int, int] = {}
        self._reserves: Reserves | None = None
        if context.keeps_reserves:
            self._reserves = Reserves(self._mechanism, context.minimum)
        self._totals: dict[int, Totals] = {}
        self._counts = Counts(self._mechanism.statistic_size, context.chunk)
        self._finals: dict[int, bytes] = {}
        self._dirty: set[Name] = set()
        self._scratch = self._mechanism.empty()
        # The chunks of tokens and reserves by pane.
        chunks: dict[Kind, dict[int, dict[int, bytes]]] = {"token": {}, "reserve": {}}
        for name, cell in replica.cells.items():
            self._adopt(name, cell.epoch)
            self._index.add(name)
            if name.kind in chunks:
                chunks[name.kind].setdefault(name.number, {})[name.chunk] = replica.value(name)
            else:
                self._load(name, head, replica)
        self.tokens = Tokens(chunks["token"], context.token_chunk)
        if self._reserves is not None:
            for pane, stored in chunks["reserve"].items():
                self._reserves.load(pane, stored)

    def _load(self, name: Name, head: Head, replica: Replica) -> None:
        """Load what is held of a cell that is not one of several chunks of reports."""
        value = replica.value
        if name.kind == "n":
            self._totals[name.number] = decode_totals(value(name))
        elif name.kind == "late":
            self._late[name.number] = decode_late(value(name))
        elif name.kind == "count" and name.number >= head.closed:
            self._counts.load(name.number, name.chunk, value(name))
        elif name.kind == "final" and name.number >= head.published:
            self._finals[name.number] = decode_final(value(name))
        elif name.kind == "part":
            self.parts[name.chunk].load(name.number, value(name))
        elif name.kind == "release":
            self.released[name.number] = decode_release(value(name))

    @property
    def full(self) -> bool:
        """Whether the next flush already has so many cells that it should come before any more."""
        return len(self._dirty) >= CELLS_LIMIT

    @property
    def finals_bytes(self) -> int:
        """The size of the finals whose contents are held."""
        return sum(map(len, self._finals.values()))

    @property
    def encoded_bytes(self) -> int:
        """The size of the chunks that the next flush writes as they are."""
        return sum(map(len, self._encoded.values()))

    def _adopt(self, name: Name, epoch: int) -> None:
        before = self._origin.get(name)
        if before != epoch:
            if before is not None:
                self._epochs[before] -= 1
            self._origin[name] = epoch
            self._epochs[epoch] += 1

    def _disown(self, name: Name) -> None:
        """Remove a cell from the state, whoever wrote it."""
        epoch = self._origin.pop(name, None)
        if epoch is not None:
            self._epochs[epoch] -= 1
        self._dirty.discard(name)

    def count(self, pane: int, reports: Reports) -> None:
        """Add the reports counted in an open pane, also to its reserve if it takes any."""
        few = self._mechanism.sparse_counts(reports)
        if few is not None:
            added = sum(count for _, count in few)
            chunks: Iterable[int] = self._counts.add_few(pane, few)
        else:
            self._mechanism.accumulate(self._scratch, reports)
            places = np.flatnonzero(self._scratch)
            counts = self._scratch[places]
            self._scratch[places] = 0
            added, chunks = int(counts.sum()), self._counts.add(pane, places, counts)
        for chunk in chunks:
            self._touch(Name("count", pane, chunk))
        total = self._totals.get(pane, Totals())
        self._totals[pane] = Totals(total.n + len(reports), total.late, total.sum + added)
        self._touch(Name("n", pane))
        if self._reserves is not None:
            for chunk in self._reserves.add(pane, reports):
                self._touch(Name("reserve", pane, chunk))

    def count_tokens(self, pane: int, tokens: Numbers) -> None:
        """Add the tokens of the reports counted in an open pane."""
        for chunk in self.tokens.add(pane, tokens):
            self._touch(Name("token", pane, chunk))

    def late(self, pane: int, count: int) -> None:
        """Add late reports to a closed pane's totals."""
        if pane < self._handed_over:
            self._late[pane] = self._late.get(pane, 0) + count
            self._touch(Name("late", pane))
            return
        total = self._totals.get(pane, Totals())
        self._totals[pane] = total._replace(late=total.late + count)
        self._touch(Name("n", pane))

    def _touch(self, name: Name) -> None:
        if name not in self._dirty:
            self._dirty.add(name)
            self._index.add(name)

    def final(self, window: int, content: bytes) -> None:
        """Add the final of a window."""
        self._finals[window] = content
        self._touch(Name("final", window))

    def finals(self, first: int, end: int) -> list[tuple[int, bytes]]:
        """Return the finals held for the windows in `[first, end)`, in order."""
        return sorted((w, content) for w, content in self._finals.items() if first <= w < end)

    def forget_finals(self, published: int) -> None:
        """Drop the contents of the windows below `published`; their cells stay."""
        self._finals = {w: content for w, content in self._finals.items() if w >= published}

    def add_part(self, part: DisclosureGroup, attribute: int = 0) -> None:
        """Add a part, which is written with the next flush."""
        self.parts[attribute].add(part)
        self._touch(Name("part", part.end - 1, attribute))

    def release(self, pane: int, release: ReleasedPane, chunks: Mapping[int, bytes]) -> None:
        """Replace a pane's release, given its changed chunks."""
        self.released[pane] = release
        self._touch(Name("release", pane))
        self._put("open", pane, chunks)

    def gather(self, pane: int, *, n: int, total: int, chunks: Mapping[int, bytes]) -> int:
        """Store the counts of a pane over all partitions; return how many reports it gains.

        `n` are all its reports, `total` the sum of their statistic and `chunks` its values, by
        number. Late reports remain those of this partition.
        """
        before = self._totals.get(pane, Totals())
        self._totals[pane] = Totals(n, before.late, total)
        self._touch(Name("n", pane))
        self._put("count", pane, chunks)
        return n - before.n

    def _put(self, kind: Kind, pane: int, chunks: Mapping[int, bytes]) -> None:
        for number, value in chunks.items():
            name = Name(kind, pane, number)
            self._encoded[name] = value
            self._touch(name)

    def hand_over(self, pane: int) -> int:
        """Drop the counts of panes below this one, except late ones; return how many they had."""
        self._handed_over = pane
        return self.drop(Firsts(kept=pane, releases=pane), keep_late=True)

    def drop(self, firsts: Firsts, *, keep_late: bool = False) -> int:
        """Drop what is no longer part of the state; return how many counted reports that had.

        With `keep_late` the numbers of late reports become cells of their own.
        """
        gone = 0
        for name in self._index.pop_gone(firsts):
            self._disown(name)
            self._encoded.pop(name, None)
            if name.kind == "n":
                totals = self._totals.pop(name.number)
                gone += totals.n
                if keep_late and totals.late:
                    self._late[name.number] = totals.late
                    self._touch(Name("late", name.number))
            elif name.kind in ("release", "open"):
                self.released.pop(name.number, None)
            elif name.kind == "reserve":
                if self._reserves is not None:
                    self._reserves.drop(name.number)
            elif name.kind == "count":
                self._counts.drop(name.number)
            elif name.kind == "late":
                self._late.pop(name.number)
            elif name.kind == "part":
                self.parts[name.chunk].discard(name.number + 1)
            else:
                self._finals.pop(name.number, None)
        return gone

    def flush(
        self, closed: int, before: Mapping[int, int], seq: int
    ) -> tuple[list[tuple[Name, bytes]], dict[int, int]]:
        """Return the cells touched since the last flush, in order, and mark them as ours.

        Also returns the lineage of our head with this seq, given that of the base (rule 3). The
        counts of panes below `closed` are dropped from memory, since they never change again; their
        tokens are not part of the state from this flush on.
        """
        if closed > self._closed and (gone := self._index.pop_gone(Firsts(tokens=closed))):
            for name in gone:
                self._disown(name)
            self.tokens.drop_below(closed)
        cells = [(name, self._encode(name)) for name in sorted(self._dirty)]
        for name in self._dirty:
            self._adopt(name, self._epoch)
        if panes := {name.number for name in self._dirty if name.kind == "token"}:
            self.tokens.flushed(panes)
        self._dirty.clear()
        self._encoded.clear()
        if closed > self._closed:
            self._counts.drop_below(closed)
            self._closed = closed
        self._epochs = +self._epochs
        lineage = {epoch: before[epoch] for epoch in self._epochs if epoch != self._epoch}
        return cells, lineage | {self._epoch: seq}

    def _encode(self, name: Name) -> bytes:
        if name in self._encoded:
            return self._encoded[name]
        if name.kind == "count":
            return self._counts.value(name.number, name.chunk)
        if name.kind == "n":
            return encode_totals(self._totals[name.number])
        if name.kind == "token":
            return self.tokens.value(name.number, name.chunk)
        if name.kind == "part":
            return self.parts[name.chunk].value(name.number)
        if name.kind == "release":
            return encode_release(self.released[name.number])
        if name.kind == "late":
            return encode_late(self._late[name.number])
        if name.kind == "reserve":
            assert self._reserves is not None, "only these are touched"
            return self._reserves.value(name.number, name.chunk)
        return encode_final(self._finals[name.number])


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
            held = chunks.setdefault(number, {})
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
