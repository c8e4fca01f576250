"""A reader of one partition's changelog: what its records mean, at the end of the log.

Rule 5. A reader evaluates its records only when it has reached the log's end (the high watermark of
its last fetch): in the middle, compaction can show a head that never won. In between it goes on
showing what it saw at the end before.

Rules 2 and 3. Of the heads with one seq the first in the log wins, and the winner of the largest
seq is the state. A cell is valid if its seq is not above what the head's lineage names for its
epoch; of the valid cells of one name the one with the largest seq is the value. Cells of panes
below the head's `expired` are no part of the state.

Rule 9. What can never again be part of the state is dead: owners delete it. Evaluation costs what
was read since the last one, not what the state holds: a cell with a seq above the head's waits
undecided, and once the head has passed it, it is live or dead for good.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ldpstream.agents.cells import Totals, chunk_sum, decode_totals
from ldpstream.agents.context import Context
from ldpstream.agents.panes import PaneIndex
from ldpstream.agents.records import (
    HEAD,
    Head,
    Key,
    Name,
    RecordError,
    decode_head,
    decode_key,
    state_prefix,
)


class CellRecord(NamedTuple):
    """A cell as the log holds it; `ldpstream.agents.cells` decodes the value."""

    key: bytes
    name: Name
    epoch: int
    seq: int
    value: bytes


class HeadRecord(NamedTuple):
    """A head as the log holds it, and where."""

    key: bytes
    epoch: int
    seq: int
    offset: int
    value: bytes


class Tail:
    """The state of one partition of a collection, as its changelog tells it.

    `head` is None until the end of the log has been reached for the first time; an empty log gives
    the default `Head`. `cells` are the live cells by name. Both change only in `read`.
    """

    def __init__(self, context: Context, partition: int) -> None:
        self.partition = partition
        self.head: Head | None = None
        self._prefix = state_prefix(context)
        self._cells: dict[Name, CellRecord] = {}
        self._index = PaneIndex(context.window)
        self._winner: HeadRecord | None = None
        # Every key in the log up to the last evaluation; None: a head, or dead.
        self._store: dict[bytes, CellRecord | None] = {}
        self._dead: dict[bytes, None] = {}
        self._undecided: dict[int, dict[bytes, CellRecord]] = {}
        # Read since: (offset, value), or None for a deletion of a key in the store.
        self._staged: dict[bytes, tuple[int, bytes] | None] = {}
        self._sums: dict[int, int] = {}
        self._n = 0
        self._broken: RecordError | None = None

    @property
    def broken(self) -> RecordError | None:
        """What could not be read, after which nothing that the tail shows can be trusted."""
        return self._broken

    @property
    def cells(self) -> Mapping[Name, CellRecord]:
        """The live cells, by name; nothing before the end of the log has been reached."""
        return self._cells

    def panes(self, first: int, end: int) -> list[int]:
        """Return the panes in `[first, end)` that may have live cells, in order."""
        return self._index.between(first, end)

    def all_panes(self) -> list[int]:
        """Return all panes that may have live cells, in order."""
        return sorted(self._index)

    def names(self, pane: int) -> Collection[Name]:
        """Return the names of a pane's live cells, finals with their window's first pane."""
        return self._index.names(pane)

    def totals(self, pane: int) -> Totals:
        """Return a pane's totals; zeros where it has none."""
        record = self._cells.get(Name("n", pane))
        return Totals() if record is None else decode_totals(record.value)

    def dead(self) -> list[bytes]:
        """Return the keys to delete: lost, superseded or expired, and not yet seen deleted.

        Deleting one twice, late or never does no harm.
        """
        return list(self._dead)

    def read(
        self, records: Sequence[tuple[int, bytes, bytes | None]], *, position: int, end: int
    ) -> bool:
        """Take in the records of a fetch: `(offset, key, value or None)`, offsets ascending.

        `position` is the offset after them and `end` the high watermark of the fetch. Returns
        whether the end was reached and the records were evaluated.

        Raises:
            RecordError: for a record of an unknown format, or a pane that does not add up; and
                again at every later call, since nothing after it can be trusted.
        """
        if self._broken is not None:
            raise self._broken
        for offset, key, value in records:
            self._stage(offset, key, value)
        if position < end:
            return False
        if self._staged or self.head is None:
            try:
                self._evaluate()
            except RecordError as error:
                self._broken = error
                raise
        return True

    def _stage(self, offset: int, key: bytes, value: bytes | None) -> None:
        """Keep a record until the end of the log; of one key's records the first counts."""
        if value is None:
            if key in self._store:
                self._staged[key] = None
            else:
                self._staged.pop(key, None)
        elif self._staged.get(key) is None and (key in self._staged or key not in self._store):
            self._staged[key] = (offset, value)

    def _evaluate(self) -> None:
        touched: set[int] = set()
        heads = []
        for data, staged in self._staged.items():
            if data in self._store:
                self._forget(data, touched)
            if staged is None:
                continue
            key = decode_key(self._prefix, data)
            if key is None:
                continue
            if key.name == HEAD:
                heads.append(HeadRecord(data, key.epoch, key.seq, *staged))
            else:
                cell = CellRecord(data, *key, staged[1])
                self._store[data] = cell
                self._undecided.setdefault(key.seq, {})[data] = cell
        self._staged = {}
        head = self._elect(heads)
        for seq in [seq for seq in self._undecided if seq <= head.seq]:
            for cell in self._undecided.pop(seq).values():
                self._decide(cell, head, touched)
        if self.head is None or head.expired != self.head.expired:
            for name in list(self._index.pop_below(head.expired)):
                self._bury(self._remove(name, touched).key)
        self.head = head
        self._check(touched)

    def _elect(self, heads: list[HeadRecord]) -> Head:
        """Return the winning head of those read and the one before; the others are dead."""
        before = self._winner
        for head in heads:
            self._store[head.key] = None
            loser: HeadRecord | None = head
            if self._winner is None or self._beats(head, self._winner):
                loser, self._winner = self._winner, head
            if loser is not None:
                self._bury(loser.key)
        if self._winner is None:
            return Head()
        if self._winner is before and self.head is not None:
            return self.head
        winner = self._winner
        return decode_head(Key(HEAD, winner.epoch, winner.seq), winner.value)

    def _beats(self, head: HeadRecord, other: HeadRecord) -> bool:
        return (head.seq, -head.offset) > (other.seq, -other.offset)

    def _decide(self, cell: CellRecord, head: Head, touched: set[int]) -> None:
        """Make a cell that the head has passed live or dead."""
        live = self._cells.get(cell.name)
        if (
            not self._valid(cell, head)
            or self._index.pane(cell.name) < head.expired
            or (live is not None and live.seq > cell.seq)
        ):
            self._bury(cell.key)
            return
        if live is not None:
            self._bury(self._remove(cell.name, touched).key)
        self._cells[cell.name] = cell
        self._index.add(cell.name)
        self._weigh(cell, 1, touched)

    def _valid(self, cell: CellRecord, head: Head) -> bool:
        return cell.seq <= head.lineage.get(cell.epoch, 0)

    def _remove(self, name: Name, touched: set[int]) -> CellRecord:
        """Take a live cell out of the state."""
        cell = self._cells.pop(name)
        self._index.discard(name)
        self._weigh(cell, -1, touched)
        return cell

    def _bury(self, key: bytes) -> None:
        """Drop a dead record's value and keep its key, until its deletion is read."""
        self._store[key] = None
        self._dead[key] = None

    def _forget(self, key: bytes, touched: set[int]) -> None:
        """Drop a deleted record."""
        self._dead.pop(key, None)
        if self._winner is not None and self._winner.key == key:
            self._winner = None
        cell = self._store.pop(key)
        if cell is None:
            return
        if self._undecided.get(cell.seq, {}).pop(key, None) is None:
            self._remove(cell.name, touched)

    def _weigh(self, cell: CellRecord, sign: int, touched: set[int]) -> None:
        """Keep the sums that the totals must agree with."""
        pane = cell.name.number
        if cell.name.kind == "count":
            self._sums[pane] = self._sums.get(pane, 0) + sign * chunk_sum(cell.value)
            touched.add(pane)
        elif cell.name.kind == "n":
            self._n += sign * decode_totals(cell.value).n
            touched.add(pane)

    def _check(self, touched: set[int]) -> None:
        """Compare every touched pane's chunks with its total, and all panes with the head."""
        for pane in touched:
            total, chunks = self.totals(pane).sum, self._sums.get(pane, 0)
            if chunks != total:
                raise RecordError(
                    f"changelog of partition {self.partition}: the chunks of pane {pane} add up "
                    f"to {chunks} and its total says {total}"
                )
            if not chunks:
                self._sums.pop(pane, None)
        if self.head is not None and self.head.n - self.head.gone != self._n:
            raise RecordError(
                f"changelog of partition {self.partition}: its panes hold {self._n} reports and "
                f"its head says {self.head.n - self.head.gone}"
            )
