"""Index the names of cells by pane, so that expiring a pane costs only what the pane holds."""

from collections.abc import Collection, Iterator
from heapq import heappop, heappush
from typing import Final

from ldpstream.agents.state.records import Name
from ldpstream.agents.state.windows import WindowSpec

_FEW: Final = 8
"""Up to this many names of a pane are a tuple: most panes have two or three."""


class PaneIndex:
    """The names of cells by pane; a final belongs to its window's first pane."""

    def __init__(self, window: WindowSpec) -> None:
        self._window = window
        # Tuples and dictionaries are ordered, so every process iterates in the same order.
        self._names: dict[int, tuple[Name, ...] | dict[Name, None]] = {}
        self._order: list[int] = []

    def pane(self, name: Name) -> int:
        """Return the pane that a cell expires with."""
        return self._window.first_pane(name.number) if name.kind == "final" else name.number

    def add(self, name: Name) -> None:
        """Add a name; adding it again changes nothing."""
        pane = self.pane(name)
        names = self._names.get(pane)
        if names is None:
            self._names[pane] = (name,)
            heappush(self._order, pane)
        elif isinstance(names, dict):
            names[name] = None
        elif name not in names:
            more = (*names, name)
            self._names[pane] = more if len(more) <= _FEW else dict.fromkeys(more)

    def discard(self, name: Name) -> None:
        """Remove a name if present."""
        pane = self.pane(name)
        names = self._names.get(pane, ())
        if isinstance(names, dict):
            names.pop(name, None)
        elif name in names:
            self._names[pane] = tuple(other for other in names if other != name)

    def names(self, pane: int) -> Collection[Name]:
        """Return the names of a pane."""
        return self._names.get(pane, ())

    def between(self, first: int, end: int) -> list[int]:
        """Return the panes in `[first, end)` that may have names, in order."""
        if end - first < len(self._names):
            return [pane for pane in range(first, end) if pane in self._names]
        return sorted(pane for pane in self._names if first <= pane < end)

    def pop_below(self, pane: int) -> Iterator[Name]:
        """Remove and yield the names of all panes below this one, in order of panes."""
        while self._order and self._order[0] < pane:
            yield from self._names.pop(heappop(self._order))

    def __iter__(self) -> Iterator[int]:
        """Iterate over the panes that may have names, in any order."""
        return iter(self._names)
