"""The kinds of cells: what readers add up of each, and what the owner of a partition holds of it.

`KINDS` has them all. For example a pane's totals, kind `n`: readers compare them with the pane's
chunks, and owners hold those of all panes, because late reports still change them. A new kind
needs its row here, and the place that changes its cells.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from ldpstream.agents.state.cell_encoding import (
    Totals,
    chunk_sum,
    decode_final,
    decode_late,
    decode_totals,
    encode_final,
    encode_late,
    encode_totals,
)
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.counts import Counts
from ldpstream.agents.state.disclosure_groups import (
    DisclosureGroups,
    ReleasedPane,
    decode_release,
    encode_release,
    released_sum,
)
from ldpstream.agents.state.records import CellRecord, Head, Name, RecordError
from ldpstream.agents.state.reserves import Reserves
from ldpstream.agents.state.tokens import Tokens, token_count

Read = Callable[[Name], bytes]
"""Returns the stored value of a live cell."""
_NOTHING: Final = Totals()


class PaneSums:
    """What a reader adds up of one partition's live cells, to compare it with what they say.

    `totals` has those of each pane under the name of its cell: `n`, or `late` if its counts are
    handed over.
    """

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self.n = 0
        self.totals: dict[Name, Totals] = {}
        self.counts: Counter[int] = Counter()
        self.tokens: Counter[int] = Counter()
        # The sum of each release's chunks, less the one that the release states.
        self.released: Counter[int] = Counter()
        # By attribute of records; other values have one.
        self.parts: defaultdict[int, DisclosureGroups] = defaultdict(DisclosureGroups)
        # Panes whose counts, and whose releases, have changed since they were last checked.
        self.changed: set[int] = set()
        self.changed_releases: set[int] = set()

    def set_totals(self, name: Name, totals: Totals, sign: int) -> None:
        """Set the totals of a pane's cell, or remove them (`sign` -1)."""
        if sign > 0:
            self.totals[name] = totals
        else:
            self.totals.pop(name, None)

    def check(self, head: Head, *, one_report: bool) -> None:
        """Compare every changed pane's chunks with its total, and all panes with the head.

        With `one_report` an open pane has as many tokens as reports.
        """
        for pane in self.changed:
            n, _, total = self.totals.get(Name("n", pane), _NOTHING)
            chunks, tokens = self.counts[pane], self.tokens[pane]
            if chunks != total:
                raise self._torn(
                    f"the chunks of pane {pane} add up to {chunks} but its total says {total}"
                )
            if one_report and pane >= head.closed and tokens != n:
                raise self._torn(f"pane {pane} has {tokens} tokens but its total says {n} reports")
            if not chunks:
                del self.counts[pane]
            if not tokens:
                del self.tokens[pane]
        self.changed.clear()
        for pane in self.changed_releases:
            if self.released[pane]:
                raise self._torn(
                    f"the released chunks of pane {pane} do not add up to the sum in its release"
                )
            del self.released[pane]
        self.changed_releases.clear()
        if head.n - head.gone != self.n:
            raise self._torn(
                f"its panes hold {self.n} reports but its head says {head.n - head.gone}"
            )

    def _torn(self, problem: str) -> RecordError:
        return RecordError(f"changelog of partition {self._partition}: {problem}")


class CellValues:
    """The values of a partition's cells that its owner holds: those that it may still change.

    Of panes handed over to partition 0, these are only the numbers of `late` reports. In partition
    0, `parts` are all unexpired parts by attribute, and `released` has the releases, without their
    statistics, of panes in no part.
    """

    def __init__(self, context: Context, head: Head) -> None:
        mechanism = context.spec.mechanism
        # No counts and tokens of lower panes are held, and no finals of lower windows are loaded.
        self.closed, self.published = head.closed, head.published
        self.totals: dict[int, Totals] = {}
        self.late: dict[int, int] = {}
        self.counts = Counts(mechanism.statistic_size, context.chunk)
        self.finals: dict[int, bytes] = {}
        self.parts = [DisclosureGroups() for _ in mechanism.slices]
        self.released: dict[int, ReleasedPane] = {}
        self.tokens = Tokens(context.token_chunk)
        self.reserves: Reserves | None = None
        if context.keeps_reserves:
            self.reserves = Reserves(mechanism, context.minimum)
        # Chunks of releases and of gathered panes that the next flush writes as they are.
        self.encoded: dict[Name, bytes] = {}
        # The chunks of tokens and of reserves by pane, while cells are loaded.
        self.token_chunks: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
        self.reserve_chunks: defaultdict[int, dict[int, bytes]] = defaultdict(dict)

    def join_chunks(self) -> None:
        """Load the tokens and reserves of panes of which all chunks are known."""
        for pane, chunks in self.token_chunks.items():
            self.tokens.load(pane, chunks)
        if self.reserves is not None:
            for pane, chunks in self.reserve_chunks.items():
                self.reserves.load(pane, chunks)
        self.token_chunks.clear()
        self.reserve_chunks.clear()

    def flushed(self, closed: int) -> None:
        """Forget what has been written and does not change again, as the panes below `closed`."""
        self.encoded.clear()
        self.tokens.flushed()
        if closed > self.closed:
            self.counts.drop_below(closed)
            self.closed = closed


class CellKind:
    """What is done with cells of one kind; by default, no more than keeping them in the log.

    `lifetime` is the field of `evaluation.Firsts` with which they leave the state. Their number is
    a pane, or with `by_window` a window.
    """

    lifetime: ClassVar[str] = "kept"
    by_window: ClassVar[bool] = False

    def merge(self, sums: PaneSums, cell: CellRecord, sign: int) -> None:
        """Add a cell that became live (`sign` 1) to a reader's sums, or take it off them (-1)."""

    def load(self, values: CellValues, name: Name, read: Read) -> None:
        """Load what an owner holds of a cell; `read` returns its stored value."""

    def encode(self, values: CellValues, name: Name) -> bytes:
        """Return the value to store of a cell that its owner has changed."""
        return values.encoded[name]

    def drop(self, values: CellValues, name: Name) -> Totals | None:
        """Drop a cell's value, if it is held; return the totals that go with it, if any."""


class _CountCells(CellKind):
    """Chunks of a pane's statistic. Those of a closed pane never change, so none are held."""

    def merge(self, sums: PaneSums, cell: CellRecord, sign: int) -> None:
        sums.counts[cell.name.number] += sign * chunk_sum(cell.value)
        sums.changed.add(cell.name.number)

    def load(self, values: CellValues, name: Name, read: Read) -> None:
        if name.number >= values.closed:
            values.counts.load(name.number, name.chunk, read(name))

    def encode(self, values: CellValues, name: Name) -> bytes:
        merged = values.encoded.get(name)
        return values.counts.value(name.number, name.chunk) if merged is None else merged

    def drop(self, values: CellValues, name: Name) -> None:
        values.counts.drop(name.number)


class _TotalsCells(CellKind):
    """A pane's totals. All are held, because late reports still change them."""

    def merge(self, sums: PaneSums, cell: CellRecord, sign: int) -> None:
        totals = decode_totals(cell.value)
        sums.set_totals(cell.name, totals, sign)
        sums.n += sign * totals.n
        sums.changed.add(cell.name.number)

    def load(self, values: CellValues, name: Name, read: Read) -> None:
        values.totals[name.number] = decode_totals(read(name))

    def encode(self, values: CellValues, name: Name) -> bytes:
        return encode_totals(values.totals[name.number])

    def drop(self, values: CellValues, name: Name) -> Totals:
        return values.totals.pop(name.number)


class _LateCells(CellKind):
    """How many reports came late for a pane whose counts partition 0 stores."""

    lifetime = "late"

    def merge(self, sums: PaneSums, cell: CellRecord, sign: int) -> None:
        sums.set_totals(cell.name, Totals(late=decode_late(cell.value)), sign)

    def load(self, values: CellValues, name: Name, read: Read) -> None:
        values.late[name.number] = decode_late(read(name))

    def encode(self, values: CellValues, name: Name) -> bytes:
        return encode_late(values.late[name.number])

    def drop(self, values: CellValues, name: Name) -> None:
        values.late.pop(name.number)


class _TokenCells(CellKind):
    """Chunks of the tokens counted in an open pane."""

    lifetime = "tokens"

    def merge(self, sums: PaneSums, cell: CellRecord, sign: int) -> None:
        sums.tokens[cell.name.number] += sign * token_count(cell.value)
        sums.changed.add(cell.name.number)

    def load(self, values: CellValues, name: Name, read: Read) -> None:
        values.token_chunks[name.number][name.chunk] = read(name)

    def encode(self, values: CellValues, name: Name) -> bytes:
        return values.tokens.value(name.number, name.chunk)

    def drop(self, values: CellValues, name: Name) -> None:
        values.tokens.drop(name.number)


class _FinalCells(CellKind):
    """The contents of windows' finals, held until they are published."""

    by_window = True

    def load(self, values: CellValues, name: Name, read: Read) -> None:
        if name.number >= values.published:
            values.finals[name.number] = decode_final(read(name))

    def encode(self, values: CellValues, name: Name) -> bytes:
        return encode_final(values.finals[name.number])

    def drop(self, values: CellValues, name: Name) -> None:
        values.finals.pop(name.number, None)


class _PartCells(CellKind):
    """Panes of which answers hold all or none, for records by attribute."""

    def merge(self, sums: PaneSums, cell: CellRecord, sign: int) -> None:
        groups = sums.parts[cell.name.chunk]
        if sign > 0:
            groups.load(cell.name.number, cell.value)
        else:
            groups.discard(cell.name.number + 1)

    def load(self, values: CellValues, name: Name, read: Read) -> None:
        values.parts[name.chunk].load(name.number, read(name))

    def encode(self, values: CellValues, name: Name) -> bytes:
        return values.parts[name.chunk].value(name.number)

    def drop(self, values: CellValues, name: Name) -> None:
        values.parts[name.chunk].discard(name.number + 1)


class _ReleaseCells(CellKind):
    """What answers may hold of a pane that is in no group yet."""

    lifetime = "releases"

    def merge(self, sums: PaneSums, cell: CellRecord, sign: int) -> None:
        sums.released[cell.name.number] -= sign * released_sum(cell.value)
        sums.changed_releases.add(cell.name.number)

    def load(self, values: CellValues, name: Name, read: Read) -> None:
        values.released[name.number] = decode_release(read(name))

    def encode(self, values: CellValues, name: Name) -> bytes:
        return encode_release(values.released[name.number])

    def drop(self, values: CellValues, name: Name) -> None:
        values.released.pop(name.number, None)


class _OpenCells(CellKind):
    """Chunks of a release's statistic, which are written as they are."""

    lifetime = "releases"

    def merge(self, sums: PaneSums, cell: CellRecord, sign: int) -> None:
        sums.released[cell.name.number] += sign * chunk_sum(cell.value)
        sums.changed_releases.add(cell.name.number)


class _ReserveCells(CellKind):
    """Chunks of the reports that answers about an open pane may leave out."""

    lifetime = "releases"

    def load(self, values: CellValues, name: Name, read: Read) -> None:
        values.reserve_chunks[name.number][name.chunk] = read(name)

    def encode(self, values: CellValues, name: Name) -> bytes:
        assert values.reserves is not None, "only these are changed"
        return values.reserves.value(name.number, name.chunk)

    def drop(self, values: CellValues, name: Name) -> None:
        if values.reserves is not None:
            values.reserves.drop(name.number)


KINDS: Final[Mapping[str, CellKind]] = {
    "count": _CountCells(),
    "n": _TotalsCells(),
    "final": _FinalCells(),
    "token": _TokenCells(),
    "part": _PartCells(),
    "release": _ReleaseCells(),
    "open": _OpenCells(),
    "late": _LateCells(),
    "reserve": _ReserveCells(),
}
"""Every kind of record but the head, in the order of their numbers in keys, which begin at 1."""
