"""Decide which state handles messages that are not frames of its own spec, if specs share a source.

Every state of a collection counts the frames of its own spec. All other messages (unreadable, or of
unknown specs) are handled by exactly one state: rejected, counted and copied once.

A state that becomes an accepted one writes the offset at which it *hands over* into its head. From
that offset on the collection's own state decides, and it does not load before. An owner that still
has the earlier configuration cannot continue to decide: its heads lose, and the state that it loads
instead contains the offset. To go back, a state that has handed over must accept the other spec.

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
class SiblingHeads:
    """The heads of a collection's other states in the same partition.

    `own` is the head of the collection's own state, None for that state itself; `accepted` are the
    heads of the specs that it accepts.
    """

    own: Head | None = None
    accepted: Sequence[Head] = ()

    @property
    def all_cut_over(self) -> bool:
        """Whether all accepted states have recorded where they hand over."""
        return all(head.cutover != NEVER for head in self.accepted)


ALONE: Final = SiblingHeads()


@dataclass(frozen=True)
class Decided:
    """The offsets `[first, end)` at which a state also decides messages of other specs."""

    first: int = 0
    end: int = _NO_END

    def places(self, records: Sequence[Record]) -> range | None:
        """Return the places of records (offsets ascending) in the range; None if all are in it."""
        if not records:
            return None
        least, largest = records[0][0], records[-1][0]
        if self.first <= least and largest < self.end:
            return None
        if largest < self.first or self.end <= least:
            return range(0)
        offsets = [offset for offset, _ in records]
        return range(bisect_left(offsets, self.first), bisect_left(offsets, self.end))


def cut_over(context: Context, head: Head, siblings: SiblingHeads) -> Head:
    """Return the head that a state continues from, including where it hands over."""
    if not context.accepted:
        # The collection's own state takes back what it had left to others.
        return replace(head, cutover=NEVER) if context.accept else head
    if head.cutover != NEVER:
        return head
    # A state that has read further does not go back for messages left to it.
    reached = head.next if siblings.own is None else max(head.next, siblings.own.next)
    return replace(head, cutover=reached)


def decided(head: Head, siblings: SiblingHeads) -> Decided:
    """Return the offsets that a state decides; `head` is the result of `cut_over`."""
    end = _NO_END if head.cutover == NEVER else head.cutover
    before = [other.cutover for other in siblings.accepted if other.cutover < end]
    return Decided(max([0, *before]), end)
