"""Parts by pane. An answer holds all of a part or none (`ldpstream.agents.partition.grouping`)."""

from bisect import bisect_left, bisect_right
from typing import NamedTuple


class Part(NamedTuple):
    """The panes `[first, end)` and their number of reports over all partitions."""

    first: int
    end: int
    n: int


class Parts:
    """A set of parts that do not overlap."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._parts: dict[int, Part] = {}

    def add(self, part: Part) -> None:
        """Add a part, which must overlap no other."""
        if part.end not in self._parts:
            self._ends.insert(bisect_left(self._ends, part.end), part.end)
        self._parts[part.end] = part

    def discard(self, end: int) -> None:
        """Remove the part that ends there, if any."""
        if self._parts.pop(end, None) is not None:
            del self._ends[bisect_left(self._ends, end)]

    def touching(self, first: int, end: int) -> list[Part]:
        """Return the parts that share panes with `[first, end)`, in order."""
        found = []
        for at in range(bisect_right(self._ends, first), len(self._ends)):
            part = self._parts[self._ends[at]]
            if part.first >= end:
                break
            found.append(part)
        return found
