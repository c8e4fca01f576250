"""The read-only side of a replica: a partition's state when its log was last read to the end."""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final

from ldpstream.agents.state.cell_store import CellRecord
from ldpstream.agents.state.cells import Release, Totals, decode_release
from ldpstream.agents.state.live import NOTHING, LiveCells
from ldpstream.agents.state.parts import Parts
from ldpstream.agents.state.records import Head, Name
from ldpstream.agents.state.windows import NEVER, WindowSpec

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
        return found or NOTHING

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
