"""Read one partition's changelog and evaluate its records at the end of the log.

Rule 5. A reader evaluates records only when it has reached the log's end (the high watermark of its
last fetch), because in the middle of the log compaction can show a head that never won. In between
it keeps showing the state of the last evaluation.

Rules 2 and 3. Of the heads with one seq the first in the log wins, and the winner of the largest
seq is the state. A cell is valid if its seq is not above the seq that the head's lineage names for
its epoch. Of the valid cells of one name, the one with the largest seq is the value. Cells of panes
below the head's `expired`, tokens of closed panes and counts that partition 0 stores are not part
of the state.

Rule 9. A record that can never again be part of the state is dead, and owners delete it. An
evaluation costs what was read since the last one, not what the state holds: a cell with a seq above
the head's waits undecided, and once the head has passed it, it is live or dead for good.

Every pane has a total in addition to its chunks. At every head these must agree, all panes must
agree with the head, the chunks of a release with its sum and, with `one_report`, the tokens of
every open pane with its number of reports. Anything that does not add up is torn, and the reader
fails instead of guessing (`PaneSums.check`).
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from heapq import heappop, heappush
from typing import Final, NamedTuple

from ldpstream.agents.state.cell_encoding import VERSION_BYTE, Totals
from ldpstream.agents.state.cell_kinds import KINDS, PaneSums
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.encoding import (
    decode_head,
    decode_key,
    split_state,
    state_prefix,
)
from ldpstream.agents.state.records import (
    HEAD,
    CellRecord,
    Head,
    HeadRecord,
    Key,
    Name,
    RecordError,
)
from ldpstream.agents.state.windows import NEVER, WindowIdentity, WindowSpec

_NOTHING: Final = Totals()
_NO_HEAD: Final = Head()
_FEW_NAMES: Final = 8
"""Up to this many names of a pane are a tuple: most panes have two or three."""


class Firsts(NamedTuple):
    """The first pane of each lifetime whose cells have not left the state; NEVER: all are in it.

    Cells leave with their pane: `tokens` when it closes, `releases` when it is in a part, `late`
    when it expires, and all others (`kept`) when it expires or partition 0 stores its counts.
    """

    kept: int = NEVER
    tokens: int = NEVER
    releases: int = NEVER
    late: int = NEVER


class PaneIndex:
    """The names of cells by pane, in an index for each lifetime; a final is in its first pane."""

    def __init__(self, window: WindowSpec) -> None:
        self._places = {
            kind: (Firsts._fields.index(row.lifetime), window.hop_panes if row.by_window else 1)
            for kind, row in KINDS.items()
        }
        # Tuples and dictionaries are ordered, so every process iterates in the same order.
        self._names: tuple[dict[int, tuple[Name, ...] | dict[Name, None]], ...] = ({}, {}, {}, {})
        self._order: tuple[list[int], ...] = ([], [], [], [])

    def _place(self, name: Name) -> tuple[int, int]:
        """Return the lifetime and the pane of a name."""
        lifetime, panes = self._places[name.kind]
        return lifetime, name.number * panes

    def add(self, name: Name) -> None:
        """Add a name; adding it again changes nothing."""
        lifetime, pane = self._place(name)
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
        lifetime, pane = self._place(name)
        panes = self._names[lifetime]
        names = panes.get(pane, ())
        if isinstance(names, dict):
            names.pop(name, None)
        elif name in names:
            panes[pane] = tuple(other for other in names if other != name)

    def names(self, pane: int, kind: str) -> list[Name]:
        """Return the names of one kind that a pane has; finals belong to their first pane."""
        names = self._names[self._places[kind][0]].get(pane, ())
        return [name for name in names if name.kind == kind]

    def between(self, first: int, end: int, *kinds: str) -> list[int]:
        """Return the panes in `[first, end)` that may have names of these kinds, in order."""
        numbers: set[int] = set()
        for lifetime in {self._places[kind][0] for kind in kinds}:
            panes = self._names[lifetime]
            few = end - first < len(panes)
            numbers |= panes.keys() & range(first, end) if few else panes.keys()
        return sorted(pane for pane in numbers if first <= pane < end)

    def holds(self, name: Name, firsts: Firsts) -> bool:
        """Return whether a cell has not left the state."""
        lifetime, pane = self._place(name)
        return pane >= firsts[lifetime]

    def pop_gone(self, firsts: Firsts) -> list[Name]:
        """Remove and return the names that have left."""
        gone: list[Name] = []
        for panes, numbers, first in zip(self._names, self._order, firsts, strict=True):
            while numbers and numbers[0] < first:
                gone += panes.pop(heappop(numbers))
        return gone


class Evaluation:
    """What the changelog of one partition has decided, and the values of its live cells.

    What it shows changes only in `read`. `head` is None, and nothing else is shown, until the end
    of the log has been reached for the first time; an empty log gives the default `Head`. `broken`
    is the error after which nothing of that can be trusted, None if there was none.
    """

    def __init__(self, context: Context, partition: int) -> None:
        self.partition = partition
        self._context = context
        self._prefix = state_prefix(context)
        self._one_report = context.spec.one_report is not None
        self.head: Head | None = None
        self.broken: RecordError | None = None
        self._live = LiveCells(self._context.window, self.partition)
        self._dead: dict[bytes, None] = {}
        # As of the last evaluation.
        self._last: Head | None = None
        self._winner: HeadRecord | None = None
        # Every key in the log up to the last evaluation; None: a head, or dead.
        self._keys: dict[bytes, CellRecord | None] = {}
        # What has left the state with the last evaluation.
        self._firsts: Firsts | None = None
        # Epoch and seq of the last cell read.
        self._numbers = 0, 0
        self._undecided: dict[int, dict[bytes, CellRecord]] = {}
        # Read since then: (offset, value), or None for the deletion of a known key.
        self._staged: dict[bytes, tuple[int, bytes] | None] = {}
        self.others = OtherStates(self._context)

    def read(
        self, records: Sequence[tuple[int, bytes, bytes | None]], *, position: int, end: int
    ) -> bool:
        """Take in the records of a fetch: `(offset, key, value or None)`, offsets ascending.

        `position` is the offset after them and `end` the high watermark of the fetch. Returns
        whether the end was reached and the records were evaluated.

        Raises:
            RecordError: for a record of an unknown format, or a pane that does not add up. Every
            later call raises it again, since nothing after it can be trusted.
        """
        if self.broken is not None:
            raise self.broken
        # 1. Records are held back until the end of the log; the first record of a key counts.
        for offset, key, value in records:
            if not key.startswith(self._prefix) and key.startswith(VERSION_BYTE):
                self.others.add(key, value, since=self.head is not None)
                continue
            is_known = key in self._keys or key in self._staged
            if value is None and is_known:
                self._staged[key] = None
            elif value is not None and (not is_known or self._staged.get(key, value) is None):
                self._staged[key] = offset, value
        if position < end:
            return False
        # 2. There they are evaluated together.
        if self._staged or self.head is None:
            try:
                self._evaluate()
            except RecordError as error:
                self.broken = error
                raise
        return True

    def _evaluate(self) -> None:
        # 1. Deletions take effect; cells wait for the head that decides about them.
        staged, self._staged = self._staged, {}
        heads = []
        for data, read in staged.items():
            if data in self._keys:
                self._forget(data)
            if read is None:
                continue
            key = decode_key(self._prefix, data)
            assert key is not None
            offset, value = read
            if key.name == HEAD:
                heads.append(HeadRecord(data, key.epoch, key.seq, offset, value))
            else:
                cell = self._keys[data] = self._cell(data, key, value)
                self._undecided.setdefault(key.seq, {})[data] = cell
        # 2. The winner of the largest seq decides which cells are live.
        head = self._elect(heads)
        firsts = self._live.firsts(head)
        for seq in [seq for seq in self._undecided if seq <= head.seq]:
            for cell in self._undecided.pop(seq).values():
                self._decide(cell, head, firsts)
        if firsts != self._firsts:
            for cell in self._live.pop_gone(firsts):
                self._bury(cell.key)
            self._firsts = firsts
        # 3. What is live adds up, or nothing of it is shown.
        self._live.sums.check(head, one_report=self._one_report)
        self.head = self._last = head

    def _forget(self, key: bytes) -> None:
        self._dead.pop(key, None)
        if self._winner is not None and self._winner.key == key:
            self._winner = None
        cell = self._keys.pop(key)
        if cell is None:
            return
        if self._undecided.get(cell.seq, {}).pop(key, None) is None:
            self._live.remove(cell.name)

    def _cell(self, data: bytes, key: Key, value: bytes) -> CellRecord:
        """Return a cell, sharing its numbers with the previous one: most are of the same flush."""
        epoch, seq = self._numbers
        epoch = epoch if epoch == key.epoch else key.epoch
        seq = seq if seq == key.seq else key.seq
        self._numbers = epoch, seq
        return CellRecord(data, key.name, epoch, seq, value)

    def _elect(self, heads: list[HeadRecord]) -> Head:
        """Return the winner among the heads read and the previous one; the others are dead."""
        before = self._winner
        for head in heads:
            self._keys[head.key] = None
            winner = self._winner
            if winner is None:
                self._winner = head
            elif (head.seq, -head.offset) > (winner.seq, -winner.offset):
                self._winner = head
                self._bury(winner.key)
            else:
                self._bury(head.key)
        if self._winner is None:
            return Head()
        if self._winner is before and self._last is not None:
            return self._last
        _, epoch, seq, _, value = self._winner
        return decode_head(Key(HEAD, epoch, seq), value)

    def _decide(self, cell: CellRecord, head: Head, firsts: Firsts) -> None:
        """Make a cell live or dead, once the head has passed it."""
        live = self._live.by_name.get(cell.name)
        if (
            cell.seq > head.lineage.get(cell.epoch, -1)
            or not self._live.index.holds(cell.name, firsts)
            or (live is not None and live.seq > cell.seq)
        ):
            self._bury(cell.key)
            return
        if live is not None:
            self._bury(self._live.remove(cell.name).key)
        self._live.add(cell)

    def _bury(self, key: bytes) -> None:
        """Drop a dead record's value and keep its key until its deletion has been read."""
        self._keys[key] = self._dead[key] = None

    @property
    def cells(self) -> Mapping[Name, CellRecord]:
        """The live cells, by name; empty until the end of the log has been reached."""
        return {} if self.head is None else self._live.by_name

    def value(self, name: Name) -> bytes:
        """Return the whole value of a live cell."""
        return self._live.by_name[name].value

    def panes(self, first: int, end: int) -> list[int]:
        """Return the panes in `[first, end)` that may have totals, in order."""
        return [] if self.head is None else self._live.index.between(first, end, "n", "late")

    def totals(self, pane: int) -> Totals:
        """Return a pane's totals; zeros if it has none."""
        totals = self._live.sums.totals
        record = totals.get(Name("n", pane)) or totals.get(Name("late", pane))
        return record or _NOTHING

    def chunks(self, pane: int, kind: str = "count") -> list[tuple[int, bytes]]:
        """Return the chunks of a pane's cells of this kind, as `(number, value)`."""
        return [(name.chunk, self.value(name)) for name in self._live.index.names(pane, kind)]


class LiveCells:
    """Live cells, by name and, in `index`, by pane; `size_bytes` is the length of their values."""

    def __init__(self, window: WindowSpec, partition: int) -> None:
        self._partition = partition
        self.by_name: dict[Name, CellRecord] = {}
        self.index = PaneIndex(window)
        self.sums = PaneSums(partition)
        self.size_bytes = 0

    def firsts(self, head: Head) -> Firsts:
        """Return which cells are part of the state with this head.

        Tokens are while their pane is open, releases and reserves while it is in no part, and
        counts while partition 0 does not store them.
        """
        handed_over = NEVER if self._partition == 0 else head.gathered
        return Firsts(
            kept=max(head.expired, handed_over),
            tokens=head.closed,
            releases=max(head.expired, head.grouped, handed_over),
            late=head.expired,
        )

    def add(self, cell: CellRecord) -> None:
        """Add a cell; its name must not be present."""
        self.by_name[cell.name] = cell
        self.index.add(cell.name)
        self._merge(cell, 1)

    def remove(self, name: Name) -> CellRecord:
        """Remove and return a cell."""
        self.index.discard(name)
        return self._drop(name)

    def pop_gone(self, firsts: Firsts) -> list[CellRecord]:
        """Remove and return the cells that are not part of the state any more."""
        return [self._drop(name) for name in self.index.pop_gone(firsts)]

    def _drop(self, name: Name) -> CellRecord:
        cell = self.by_name.pop(name)
        self._merge(cell, -1)
        return cell

    def _merge(self, cell: CellRecord, sign: int) -> None:
        self.size_bytes += sign * len(cell.value)
        KINDS[cell.name.kind].merge(self.sums, cell, sign)


class OtherStates:
    """The winning heads of all other states in a log, by their key prefix.

    A collection whose spec was changed continues in a state of its own, and the previous state
    stays in the topic. If the earlier spec is named in `accept`, the previous state's head says at
    which offset it handed over. A state without such an offset was left behind: nobody counts its
    reports or closes its windows.

    They are correct once the log's end has been reached (rule 5).
    """

    def __init__(self, context: Context) -> None:
        specs = context.spec, *context.accept
        self._accepted = {spec.fingerprint for spec in specs}
        self._fingerprint = context.spec.fingerprint
        self._windows = context.window.identity
        self._heads: dict[bytes, Head] = {}
        self._conflicting: dict[WindowIdentity, int] = {}

    def add(self, key: bytes, value: bytes | None, *, since: bool) -> None:
        """Add a record of another state, in the log's order; unreadable ones are ignored.

        Records that arrive `since` the log's end was first reached come from a later configuration,
        which includes this state, or from a worker that still has another one.
        """
        try:
            state, fingerprint, windows = split_state(key)
            key_here = decode_key(state, key)
            if value is None or key_here is None or key_here.name != HEAD:
                return
            if not since and key_here.seq > self._heads.get(state, _NO_HEAD).seq:
                self._heads[state] = decode_head(key_here, value)
        except RecordError:
            return
        if since and fingerprint == self._fingerprint and windows != self._windows:
            self._conflicting[windows] = key_here.seq

    def conflicts(self) -> Mapping[WindowIdentity, int]:
        """Return the last seq, by windows, of states of our spec with other windows.

        Only states that have advanced since the log's end was first reached: the rest are history.
        """
        return self._conflicting

    def windows(self) -> AbstractSet[WindowIdentity]:
        """Return the other windows that our spec has been counted into, now or earlier."""
        states = [split_state(state) for state in self._heads]
        identities = {
            windows for _, fingerprint, windows in states if fingerprint == self._fingerprint
        }
        return (identities | self._conflicting.keys()) - {self._windows}

    def left_behind(self) -> Sequence[bytes]:
        """Return the fingerprints of specs, neither ours nor accepted, that never handed over."""
        states = {
            split_state(state)[1] for state, head in self._heads.items() if head.cutover == NEVER
        }
        return sorted(states - self._accepted)
