"""Index the names of cells by pane, so that dropping a pane costs only as much as it has."""

from collections.abc import Collection
from heapq import heappop, heappush
from typing import Final, NamedTuple

from ldpstream.agents.state.records import Kind, Name
from ldpstream.agents.state.windows import NEVER, WindowSpec

_FEW: Final = 8
"""Up to this many names of a pane are a tuple: most panes have two or three."""
_KEPT: Final = 0
_LIFETIMES: Final[dict[Kind, int]] = {"token": 1, "release": 2, "open": 2, "late": 3}


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
            panes[pane] = more if len(more) <= _FEW else dict.fromkeys(more)

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
