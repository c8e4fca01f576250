"""What a tail shows: the state of one partition as of the last time at the end of its log."""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final

from ldpstream.agents.state.cell_store import CellRecord
from ldpstream.agents.state.cells import Release, Totals, decode_release
from ldpstream.agents.state.live import LiveCells
from ldpstream.agents.state.parts import Parts
from ldpstream.agents.state.records import Head, Name
from ldpstream.agents.state.windows import WindowSpec

DEAD_LIMIT: Final = 40_000
"""With so many records to delete nothing more should be counted: each takes memory until it is
deleted, and a flush leaves as many dead as it writes."""


class Shown:
    """The state of one partition.

    `head` is None until the end of the log has been reached for the first time, and nothing else is
    shown before; an empty log gives the default `Head`.
    """

    def __init__(self, window: WindowSpec) -> None:
        self._window = window
        self._show_nothing()

    def _show_nothing(self) -> None:
        """Forget what was shown."""
        self.head: Head | None = None
        self._live = LiveCells(self._window)
        self._dead: dict[bytes, None] = {}

    @property
    def cells(self) -> Mapping[Name, CellRecord]:
        """The live cells, by name; nothing before the end of the log has been reached."""
        return {} if self.head is None else self._live.by_name

    @property
    def size_bytes(self) -> int:
        """The length of the values of all live cells."""
        return 0 if self.head is None else self._live.size_bytes

    def panes(self, first: int, end: int) -> list[int]:
        """Return the panes in `[first, end)` that may have live cells, in order."""
        return [] if self.head is None else self._live.between(first, end)

    def all_panes(self) -> list[int]:
        """Return all panes that may have live cells, in order."""
        return [] if self.head is None else self._live.panes()

    def names(self, pane: int) -> Collection[Name]:
        """Return the names of a pane's live cells, finals with their window's first pane."""
        return self._live.names(pane)

    def totals(self, pane: int) -> Totals:
        """Return a pane's totals; zeros where it has none."""
        return self._live.totals(pane)

    @property
    def parts(self) -> Parts:
        """The parts that have not expired, in partition 0; none before the end of the log."""
        return Parts() if self.head is None else self._live.parts

    def released(self, first: int, end: int) -> list[tuple[int, Release]]:
        """Return what is released of panes in `[first, end)`, in order."""
        found = []
        for pane in [] if self.head is None else self._live.released(first, end):
            cell = self.cells.get(Name("release", pane))
            if cell is not None:
                found.append((pane, decode_release(cell.value)))
        return found

    def released_chunks(self, pane: int) -> list[tuple[int, bytes]]:
        """Return the statistic of what is released of a pane: `(number, value)` of its chunks."""
        names = (name for name in self._live.open_names(pane) if name.kind == "open")
        return [(name.chunk, self.cells[name].value) for name in names]

    @property
    def dead_records(self) -> int:
        """How many keys `dead` returns."""
        return len(self._dead)

    def dead(self, most: int | None = None, but: AbstractSet[bytes] = frozenset()) -> list[bytes]:
        """Return the keys to delete: lost, superseded or expired, and not yet seen deleted.

        At most so many, those dead longest first, and none that is in `but`. Deleting one twice,
        late or never does no harm.
        """
        return list(islice((key for key in self._dead if key not in but), most))

    def still_dead(self, keys: AbstractSet[bytes]) -> set[bytes]:
        """Return those of these keys that are dead and not yet seen deleted."""
        return {key for key in keys if key in self._dead}
