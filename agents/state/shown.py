"""The read-only side of a replica: a partition's state when its log was last read to the end.

Every pane has a total in addition to its chunks. At every head these must agree, all panes must
agree with the head, the chunks of a release with its sum and, with `one_report`, the tokens of
every open pane with its number of reports. Anything that does not add up is torn, and the reader
fails instead of guessing (`LiveCells.check`).
"""

from collections import Counter
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final

from ldpstream.agents.state.cell_store import CellRecord
from ldpstream.agents.state.encoding import Totals, chunk_sum, decode_late, decode_totals
from ldpstream.agents.state.parts import (
    Part,
    Parts,
    Release,
    decode_part,
    decode_release,
    released_sum,
)
from ldpstream.agents.state.records import Head, RecordError
from ldpstream.agents.state.tokens import token_count
from ldpstream.agents.state.windows import NEVER, Firsts, Name, PaneIndex, WindowSpec

_NOTHING: Final = Totals()
DEAD_LIMIT: Final = 40_000
"""With this many records to delete, ingesting pauses: each takes memory until it is deleted, and a
flush leaves as many dead records as it writes."""


class Shown:
    """The state of one partition.

    `head` is None, and nothing else is shown, until the end of the log has been reached for the
    first time; an empty log gives the default `Head`.
    """

    def __init__(self, window: WindowSpec, partition: int) -> None:
        self.partition = partition
        self._window = window
        self._show_nothing()

    def _show_nothing(self) -> None:
        """Reset to the state before the first evaluation."""
        self.head: Head | None = None
        self._live = LiveCells(self._window, self.partition)
        self._dead: dict[bytes, None] = {}

    @property
    def cells(self) -> Mapping[Name, CellRecord]:
        """The live cells, by name; empty until the end of the log has been reached."""
        return {} if self.head is None else self._live.by_name

    @property
    def size_bytes(self) -> int:
        """Total length of the values of all live cells."""
        return 0 if self.head is None else self._live.size_bytes

    def panes(self, first: int, end: int) -> list[int]:
        """Return the panes in `[first, end)` that may have totals, in order."""
        return [] if self.head is None else self._live.index.between(first, end, "n", "late")

    def all_panes(self) -> list[int]:
        """Return all panes that may have totals, in order."""
        return self.panes(NEVER, -NEVER)

    def names(self, pane: int) -> Collection[Name]:
        """Return the names of a pane's live cells, finals with their window's first pane."""
        return self._live.index.names(pane)

    def chunks(self, pane: int) -> list[tuple[int, bytes]]:
        """Return the chunks of a pane's statistic, as `(number, value)`."""
        live = self._live
        names = [name for name in live.index.names(pane) if name.kind == "count"]
        return [(name.chunk, live.by_name[name].value) for name in names]

    def totals(self, pane: int) -> Totals:
        """Return a pane's totals; zeros if it has none."""
        totals = self._live.totals
        found = totals.get(Name("n", pane)) or totals.get(Name("late", pane))
        return found or _NOTHING

    @property
    def parts(self) -> Parts:
        """Partition 0's unexpired parts; empty until the end of the log has been reached."""
        return Parts() if self.head is None else self._live.parts

    def released(self, first: int, end: int) -> list[tuple[int, Release]]:
        """Return the releases of panes in `[first, end)`, as `(pane, release)` in order."""
        found = []
        for pane in [] if self.head is None else self._live.index.between(first, end, "release"):
            cell = self.cells.get(Name("release", pane))
            if cell is not None:
                found.append((pane, decode_release(cell.value)))
        return found

    def released_chunks(self, pane: int) -> list[tuple[int, bytes]]:
        """Return the chunks of a release's statistic, as `(number, value)`."""
        names = (name for name in self._live.index.names(pane, "open") if name.kind == "open")
        return [(name.chunk, self.cells[name].value) for name in names]

    @property
    def dead_records(self) -> int:
        """How many keys `dead` returns."""
        return len(self._dead)

    def dead(self, most: int | None = None, but: AbstractSet[bytes] = frozenset()) -> list[bytes]:
        """Return the keys of dead records whose deletion has not been read yet.

        Dead are lost, superseded and expired records.

        Returns at most `most`, those dead longest first, without those in `but`. Deleting a key
        twice, late or never does no harm.
        """
        return list(islice((key for key in self._dead if key not in but), most))

    def still_dead(self, keys: AbstractSet[bytes]) -> set[bytes]:
        """Return those of these keys that are dead and whose deletion has not been read yet."""
        return {key for key in keys if key in self._dead}


class LiveCells:
    """Live cells, by name and, in `index`, by pane; `size_bytes` is the length of their values.

    `totals` has those of each pane under the name of its cell: `n`, or `late` if its counts are
    handed over.
    """

    def __init__(self, window: WindowSpec, partition: int) -> None:
        self._partition = partition
        self.by_name: dict[Name, CellRecord] = {}
        self.index = PaneIndex(window)
        self.parts = Parts()
        self.totals: dict[Name, Totals] = {}
        # Panes whose cells have changed since they were last checked.
        self._touched: set[int] = set()
        self._sums: dict[int, int] = {}
        self._tokens: Counter[int] = Counter()
        self._released: set[int] = set()
        self._open_sums: Counter[int] = Counter()
        self._n = 0
        self.size_bytes = 0

    def firsts(self, head: Head) -> Firsts:
        """Return which cells are part of the state with this head.

        Tokens are while their pane is open, releases while it is in no part, and counts while
        partition 0 does not store them.
        """
        handed_over = NEVER if self._partition == 0 else head.gathered
        return Firsts(
            kept=max(head.expired, handed_over),
            tokens=head.closed,
            releases=max(head.expired, head.grouped),
            late=head.expired,
        )

    def add(self, cell: CellRecord) -> None:
        """Add a cell; its name must not be present."""
        self.by_name[cell.name] = cell
        self.index.add(cell.name)
        self._weigh(cell, 1)

    def remove(self, name: Name) -> CellRecord:
        """Remove and return a cell."""
        self.index.discard(name)
        return self._drop(name)

    def pop_gone(self, firsts: Firsts) -> list[CellRecord]:
        """Remove and return the cells that are not part of the state any more."""
        return [self._drop(name) for name in self.index.pop_gone(firsts)]

    def _drop(self, name: Name) -> CellRecord:
        cell = self.by_name.pop(name)
        self._weigh(cell, -1)
        self.totals.pop(name, None)
        return cell

    def _weigh(self, cell: CellRecord, sign: int) -> None:
        """Update the sums that the totals must agree with."""
        self.size_bytes += sign * cell.size_bytes
        pane = cell.name.number
        if cell.name.kind == "count":
            self._sums[pane] = self._sums.get(pane, 0) + sign * chunk_sum(cell.start)
            self._touched.add(pane)
        elif cell.name.kind == "n":
            totals = decode_totals(cell.start)
            self.totals[cell.name] = totals
            self._n += sign * totals.n
            self._touched.add(pane)
        elif cell.name.kind == "late":
            self.totals[cell.name] = Totals(late=decode_late(cell.start))
        elif cell.name.kind == "token":
            self._tokens[pane] += sign * token_count(cell.held)
            self._touched.add(pane)
        elif cell.name.kind in ("release", "open"):
            of_chunk = cell.name.kind == "open"
            found = chunk_sum(cell.start) if of_chunk else -released_sum(cell.start)
            self._open_sums[pane] += sign * found
            self._released.add(pane)
        elif cell.name.kind == "part" and sign > 0:
            first, n = decode_part(cell.start)
            self.parts.add(Part(first, pane + 1, n))
        elif cell.name.kind == "part":
            self.parts.discard(pane + 1)

    def check(self, head: Head, *, one_report: bool) -> None:
        """Compare every changed pane's chunks with its total, and all panes with the head.

        With `one_report` an open pane has as many tokens as reports.

        Raises:
            RecordError: naming the partition, if they disagree.
        """
        partition = self._partition
        for pane in self._touched:
            n, _, total = self.totals.get(Name("n", pane), _NOTHING)
            chunks = self._sums.get(pane, 0)
            if chunks != total:
                raise RecordError(
                    f"changelog of partition {partition}: the chunks of pane {pane} add up "
                    f"to {chunks} but its total says {total}"
                )
            if not chunks:
                self._sums.pop(pane, None)
            tokens = self._tokens[pane]
            if one_report and pane >= head.closed and tokens != n:
                raise RecordError(
                    f"changelog of partition {partition}: pane {pane} has {tokens} tokens but its "
                    f"total says {n} reports"
                )
            if not tokens:
                del self._tokens[pane]
        self._touched.clear()
        for pane in self._released:
            if self._open_sums[pane]:
                raise RecordError(
                    f"changelog of partition {partition}: the released chunks of pane {pane} do "
                    "not add up to the sum in its release"
                )
            del self._open_sums[pane]
        self._released.clear()
        if head.n - head.gone != self._n:
            raise RecordError(
                f"changelog of partition {partition}: its panes hold {self._n} reports but "
                f"its head says {head.n - head.gone}"
            )
