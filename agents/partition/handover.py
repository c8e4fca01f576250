"""Which state decides messages that are no frames of its own spec, where specs share a source.

Every state of a collection counts the frames of its own spec. All other messages, unreadable ones
and those of unknown specs, are decided by one of the states: rejected, counted and copied once. A
state that becomes an accepted one writes the offset at which it *hands over* into its head; from
there on the collection's own state decides, which waits for that before it loads. So an owner that
still works by the earlier configuration cannot go on deciding: its heads lose, and the state that
it loads instead says what it leaves. To go back, a state that has handed over has to accept the
other one.

Frames of the specs themselves never depend on this: each is counted by its own state.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ldpstream.agents.state.context import Context
from ldpstream.agents.state.packed import Record
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.windows import NEVER

_NO_END: Final = 1 << 62


@dataclass(frozen=True)
class Beside:
    """The heads of a collection's other states in the same partition.

    `own` is that of the collection's own state, None for that state itself; `accepted` are those of
    the specs that it accepts.
    """

    own: Head | None = None
    accepted: Sequence[Head] = ()

    @property
    def handed_over(self) -> bool:
        """Whether all accepted states have said where they hand over."""
        return all(head.handover != NEVER for head in self.accepted)


ALONE: Final = Beside()


@dataclass(frozen=True)
class Decided:
    """The offsets `[first, end)` at which a state decides messages of other specs too."""

    first: int = 0
    end: int = _NO_END

    def places(self, records: Sequence[Record]) -> range | None:
        """Return the places of records, offsets ascending, within; None where it is all of them."""
        if not records:
            return None
        least, largest = records[0][0], records[-1][0]
        if self.first <= least and largest < self.end:
            return None
        if largest < self.first or self.end <= least:
            return range(0)
        offsets = [offset for offset, _ in records]
        return range(bisect_left(offsets, self.first), bisect_left(offsets, self.end))


def hand_over(context: Context, head: Head, beside: Beside) -> Head:
    """Return the head that a state goes on from, with where it hands over."""
    if not context.accepted:
        # One that accepts others takes back what it had left to them.
        return replace(head, handover=NEVER) if context.accept else head
    if head.handover != NEVER:
        return head
    # A state that has read further will not go back for what is left to it.
    reached = head.next if beside.own is None else max(head.next, beside.own.next)
    return replace(head, handover=reached)


def decided(head: Head, beside: Beside) -> Decided:
    """Return what a state decides; `head` is what `hand_over` returned."""
    end = _NO_END if head.handover == NEVER else head.handover
    before = [other.handover for other in beside.accepted if other.handover < end]
    return Decided(max([0, *before]), end)
