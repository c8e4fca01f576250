"""The head from which an owner continues: after a load, or after lost messages.

Rule 6. Every load starts with a new random epoch, from the replica's state and at its head's next
offset: never from the committed offset, never from the memory of an earlier epoch. The new owner
changes the stored head in two ways, which take effect when its first flush wins
(`starting_head`):

1. All panes of decided windows, and all gathered ones, are closed. Partition 0's head says how
   many partitions finals wait for (rule 8); the owner of an added partition waits until that number
   includes it, and by then windows may have been decided without it.
2. If specs share a source, the head says which state decides messages of no spec. Every state of a
   collection counts the frames of its own spec; any other message (unreadable, or of an unknown
   spec) is rejected, counted and copied by exactly one of them. A state that becomes an accepted
   one writes the offset at which it *hands over* into its head. From that offset on the
   collection's own state decides, and it does not load before. An owner that still has the earlier
   configuration cannot continue to decide: its heads lose, and the state that it loads instead
   contains the offset. To go back, a state that has handed over must accept the other spec.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ldpstream.agents.state.batch import NO_END, Arrivals, Decided
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica, behind
from ldpstream.agents.state.windows import NEVER, Gap, WindowSpec, add_gap, end_gap

_LEAST_SKEW_LIMIT_MS: Final = 1_000
_MOST_SKEW_LIMIT_MS: Final = 5_000


@dataclass(frozen=True)
class OtherHeads:
    """The heads of a collection's other states in the same partition, if specs share a source.

    `own` is the head of the collection's own state, None for that state itself; `accepted` are the
    heads of the specs that it accepts.
    """

    own: Head | None = None
    accepted: Sequence[Head] = ()


ALONE: Final = OtherHeads()


def included(replicas: Sequence[Replica]) -> int:
    """Return the number of partitions that partition 0's head includes; 0 until it is read."""
    head = replicas[0].head
    return 0 if head is None else max(1, head.partitions)


def loadable(
    context: Context, partition: int, replicas: Sequence[Replica], other_heads: OtherHeads
) -> Head | None:
    """Return the stored head of a partition, or None if it cannot be loaded yet.

    It can be loaded once its replica and partition 0's have reached their logs' ends, neither is
    behind the other (or, for partition 0, behind any), partition 0's head includes it (if it was
    added), and all accepted states have recorded where they hand over.
    """
    # Only partition 0 needs all: a collection with thousands of partitions loads each of them.
    needed = (replicas[0], replicas[partition]) if partition else replicas
    if partition >= included(replicas) or behind(needed):
        return None
    all_cut_over = all(head.cutover != NEVER for head in other_heads.accepted)
    return replicas[partition].head if context.accepted or all_cut_over else None


def starting_head(
    context: Context,
    head: Head,
    replicas: Sequence[Replica],
    other_heads: OtherHeads,
    *,
    source: bytes,
) -> Head:
    """Return the head that a new owner continues from, given the stored `head`.

    `source` is the id of the source topic, empty if the broker has none.
    """
    first = replicas[0].head
    assert first is not None, "a partition is loadable after partition 0's log has been read"
    # 1. Nothing counts into panes of which partition 0 has already taken all there is.
    closed = max(context.window.closing(first.final), first.grouped, first.gathered)
    begun = _close_below(context.window, head, closed)
    # 2. Another state may decide part of the source.
    begun = _cut_over(context, begun, other_heads)
    return replace(begun, source=source or head.source)


def _close_below(window: WindowSpec, head: Head, closed: int) -> Head:
    if closed <= head.closed:
        return head
    clock = max(head.clock, window.start(closed) + window.grace_ms)
    return replace(head, closed=closed, clock=clock)


def _cut_over(context: Context, head: Head, other_heads: OtherHeads) -> Head:
    if not context.accepted:
        # The collection's own state takes back what it had left to others.
        return replace(head, cutover=NEVER) if context.accept else head
    if head.cutover != NEVER:
        return head
    # A state that has read further does not go back for messages left to it.
    reached = head.next if other_heads.own is None else max(head.next, other_heads.own.next)
    return replace(head, cutover=reached)


def decided_offsets(head: Head, other_heads: OtherHeads) -> Decided:
    """Return the offsets that a state decides; `head` is the result of `starting_head`."""
    end = NO_END if head.cutover == NEVER else head.cutover
    before = [other.cutover for other in other_heads.accepted if other.cutover < end]
    return Decided(max([0, *before]), end)


def skip_deleted(
    context: Context, work: Head, offset: int, decided: Decided, *, now_ms: int
) -> tuple[Head, int]:
    """Return the head past messages that retention deleted unread, and how many are lost.

    It continues at `offset`, at least `next`. Messages before those that this state `decided`
    belong to another state.

    All panes to which lost messages may have belonged are marked: those not closed yet, up to the
    latest time that the broker may have accepted by now (allowing for this clock being behind the
    broker's), or up to the arrival of the next message (`bound_gap`).
    """
    missing = max(0, offset - max(work.next, decided.first))
    if not missing:
        return (replace(work, next=offset) if offset > work.next else work), 0
    window = context.window
    latest_ms = now_ms + skew_limit_ms(window.grace_ms) + window.future_ms
    gap = Gap(work.closed, max(work.closed, window.pane(latest_ms)), missing)
    gaps = add_gap(work.gaps, gap)
    return replace(work, next=offset, lost=work.lost + missing, gaps=gaps), missing


def bound_gap(context: Context, work: Head, gap: Gap, arrived: Arrivals, *, now_ms: int) -> Head:
    """Return the head whose gap before some messages ends at the arrival of the first of them.

    If that is later than now, this clock is behind the broker's, perhaps by more than tolerated:
    then the message determines how long the gap is.
    """
    window = context.window
    first_ms = int(np.atleast_1d(arrived.clock_ms)[0])
    last = window.pane(first_ms + window.future_ms)
    last = last if first_ms > now_ms else min(last, gap.last)
    return replace(work, gaps=end_gap(work.gaps, gap, last))


def skew_limit_ms(grace_ms: int) -> int:
    """Return the tolerated clock error for a collection with this grace."""
    return max(_LEAST_SKEW_LIMIT_MS, min(_MOST_SKEW_LIMIT_MS, grace_ms // 2))
