"""What the source's retention deleted unread: which panes may lack it, and how many messages.

If the offsets `[a, b)` are gone, their reports may have belonged to any pane between the first that
was open at `a` and the latest that a message before the first remaining record could have been in.
The head keeps such *gaps* as long as their panes, and every document about an affected pane reports
them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ldpstream.agents.state.windows import NEVER

GAPS_LIMIT: Final = 8
"""The most gaps in a head; with more, the two nearest are merged."""
LISTED_PANES: Final = 1_000
"""Only the first panes of a gap, this many, get documents if nothing else is left of them."""


class Gap(NamedTuple):
    """Panes `first` to `last`, both included, lack up to `offsets` messages of the source."""

    first: int
    last: int
    offsets: int

    def meets(self, first: int, end: int) -> bool:
        """Return whether any of the panes `[first, end)` may lack something."""
        return self.first < end and first <= self.last

    def panes(self, first: int, end: int) -> range:
        """Return the panes of `[first, end)` that may have lost everything, at most `LISTED_PANES`.

        Empty if nothing had been counted before the gap: then no window is known to have begun.
        """
        if self.first == NEVER:
            return range(0)
        return range(max(self.first, first), min(self.first + LISTED_PANES, self.last + 1, end))


@dataclass(frozen=True)
class Lost:
    """What documents report: at most `offsets` messages are missing, of these partitions."""

    offsets: int = 0
    partitions: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        """Return whether anything may be missing."""
        return bool(self.partitions)


NOTHING_LOST: Final = Lost()


def add_gap(gaps: Sequence[Gap], gap: Gap) -> tuple[Gap, ...]:
    """Return the gaps with one more, in order; merges touching ones and the nearest of too many."""
    found = sorted([*gaps, gap])
    while len(found) > GAPS_LIMIT:
        at = min(range(len(found) - 1), key=lambda i: found[i + 1].first - found[i].last)
        left, right = found[at], found[at + 1]
        merged = Gap(left.first, max(left.last, right.last), left.offsets + right.offsets)
        found[at : at + 2] = [merged]
    return tuple(found)


def end_gap(gaps: Sequence[Gap], gap: Gap, last: int) -> tuple[Gap, ...]:
    """Return the gaps after `gap`, which keeps its first pane, was found to end at pane `last`."""
    return tuple(one._replace(last=max(one.first, last)) if one == gap else one for one in gaps)


def lost(gaps_by_partition: Iterable[Sequence[Gap]], first: int, end: int) -> Lost:
    """Return what the panes `[first, end)` may lack, given every partition's gaps in order."""
    offsets = [
        sum(gap.offsets for gap in gaps if gap.meets(first, end)) for gaps in gaps_by_partition
    ]
    return Lost(sum(offsets), tuple(p for p, missing in enumerate(offsets) if missing))
