"""Names of cells by pane: expiring a pane costs what it holds, not what the state holds."""

from collections.abc import Collection, Iterator
from heapq import heappop, heappush
from typing import Final

from ldpstream.agents.state.records import Name
from ldpstream.agents.state.windows import WindowSpec

_FEW: Final = 8
"""How many names of a pane are held in a tuple: most panes have two or three."""


class PaneIndex:
    """The names of cells by pane; a final belongs to its window's first pane."""

    def __init__(self, window: WindowSpec) -> None:
        self._window = window
        # Tuples and dictionaries keep their order, so that every process does the same.
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
        """Take a name out, if it is there."""
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
        """Take out the names of all panes below this one, the first pane's first."""
        while self._order and self._order[0] < pane:
            yield from self._names.pop(heappop(self._order))

    def __iter__(self) -> Iterator[int]:
        """Iterate over the panes that may have names, in no order."""
        return iter(self._names)
