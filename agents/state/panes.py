"""Index the names of cells by pane, so that a pane that leaves the state costs what it holds."""

from collections.abc import Collection
from heapq import heappop, heappush
from typing import Final

from ldpstream.agents.state.records import Kind, Name
from ldpstream.agents.state.windows import NEVER, WindowSpec

_FEW: Final = 8
"""Up to this many names of a pane are a tuple: most panes have two or three."""
_KEPT: Final = 0
_LIFETIMES: Final[dict[Kind, int]] = {"token": 1, "release": 2, "open": 2, "late": 3}


class PaneIndex:
    """The names of cells by pane; a final belongs to its window's first pane.

    Cells leave the state with their pane: tokens when it closes, releases when it is in a part, its
    counts when partition 0 stores them, all others when it expires.
    """

    def __init__(self, window: WindowSpec) -> None:
        self._window = window
        # Tuples and dictionaries are ordered, so every process iterates in the same order.
        self._names: tuple[dict[int, tuple[Name, ...] | dict[Name, None]], ...] = ({}, {}, {}, {})
        self._order: tuple[list[int], ...] = ([], [], [], [])

    def pane(self, name: Name) -> int:
        """Return the pane that a cell leaves with."""
        return self._window.first_pane(name.number) if name.kind == "final" else name.number

    def add(self, name: Name) -> None:
        """Add a name; adding it again changes nothing."""
        lifetime, pane = _LIFETIMES.get(name.kind, _KEPT), name.number
        if name.kind == "final":
            pane = self.pane(name)
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
        panes, pane = self._names[_LIFETIMES.get(name.kind, _KEPT)], self.pane(name)
        names = panes.get(pane, ())
        if isinstance(names, dict):
            names.pop(name, None)
        elif name in names:
            panes[pane] = tuple(other for other in names if other != name)

    def names(self, pane: int, kind: Kind = "n") -> Collection[Name]:
        """Return the names of a pane that leave when those of this kind do."""
        return self._names[_LIFETIMES.get(kind, _KEPT)].get(pane, ())

    def between(self, first: int, end: int, kind: Kind = "n") -> list[int]:
        """Return the panes in `[first, end)` that may have such names, in order."""
        panes = self._names[_LIFETIMES.get(kind, _KEPT)]
        if end - first < len(panes):
            return [pane for pane in range(first, end) if pane in panes]
        return sorted(pane for pane in panes if first <= pane < end)

    def pop_gone(
        self,
        *,
        expired: int = NEVER,
        closed: int = NEVER,
        grouped: int = NEVER,
        gathered: int = NEVER,
    ) -> list[Name]:
        """Remove and return the names that have left, given the first pane that has not.

        `gathered`: the first pane that partition 0 does not store instead.
        """
        gone: list[Name] = []
        firsts = max(expired, gathered), closed, grouped, expired
        for panes, order, first in zip(self._names, self._order, firsts, strict=True):
            while order and order[0] < first:
                gone += panes.pop(heappop(order))
        return gone

    def all_panes(self) -> list[int]:
        """Return the panes that may have totals, or a late count instead, in order."""
        return sorted(self._names[_KEPT].keys() | self._names[_LIFETIMES["late"]].keys())
