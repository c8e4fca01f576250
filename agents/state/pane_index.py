"""The names of a partition's cells by pane, and when they leave the state.

`Firsts` has the first pane of each lifetime whose cells are still part of the state; the kind of a
cell determines its lifetime (`ldpstream.agents.state.cell_kinds`).
"""

from heapq import heappop, heappush
from typing import Final, NamedTuple

from ldpstream.agents.state.cell_kinds import KINDS
from ldpstream.agents.state.records import Name
from ldpstream.agents.state.windows import NEVER, WindowSpec


class Firsts(NamedTuple):
    """The first pane of each lifetime whose cells have not left the state; NEVER: all are in it.

    Cells leave with their pane: `tokens` when it closes, `releases` when it is in a part, `late`
    when it expires, and all others (`kept`) when it expires or partition 0 stores its counts.
    """

    kept: int = NEVER
    tokens: int = NEVER
    releases: int = NEVER
    late: int = NEVER


_FEW_NAMES: Final = 8
"""Up to this many names of a pane are a tuple: most panes have two or three."""


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
