"""Rule 6: the state from which a new owner continues.

Every load starts with a new random epoch, from the replica's state and at its head's next offset:
never from the committed offset, never from the memory of an earlier epoch.

Partition 0's head says how many partitions finals wait for (rule 8). The owner of an added
partition waits until that number includes it, and starts with all panes of decided windows, and
all gathered ones, closed.
"""

from collections.abc import Sequence
from dataclasses import replace

from ldpstream.agents.partition.cutover import SiblingHeads, cut_over
from ldpstream.agents.partition.upgrade import begin_format
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.gathered import missing
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import WindowSpec


def included(replicas: Sequence[Replica]) -> int:
    """Return the number of partitions that partition 0's head includes; 0 until it is read."""
    head = replicas[0].head
    return 0 if head is None else max(1, head.partitions)


def loadable(
    context: Context, partition: int, replicas: Sequence[Replica], siblings: SiblingHeads
) -> Head | None:
    """Return the stored head of a partition, or None if it cannot be loaded yet.

    It can be loaded once its replica and partition 0's have reached their logs' ends, none is
    behind another, partition 0's head includes it (if it was added), and all accepted states have
    recorded where they hand over.
    """
    if partition >= included(replicas) or missing(replicas):
        return None
    stored = replicas[partition].head
    return stored if context.accepted or siblings.all_cut_over else None


def starting_head(
    context: Context,
    head: Head,
    replicas: Sequence[Replica],
    siblings: SiblingHeads,
    *,
    source: bytes,
) -> Head:
    """Return the head that a new owner continues from, given the stored `head`.

    `source` is the id of the source topic, empty if the broker has none.
    """
    first = replicas[0].head
    assert first is not None, "a partition is loadable after partition 0's log has been read"
    decided = max(context.window.closing(first.final), first.grouped, first.gathered)
    begun = close_decided(context.window, head, decided)
    begun = begin_format(context, cut_over(context, begun, siblings), replicas)
    return replace(begun, source=source or head.source)


def close_decided(window: WindowSpec, head: Head, closed: int) -> Head:
    """Return a head with all panes below `closed` closed, so that nothing counts into them."""
    if closed <= head.closed:
        return head
    clock = max(head.clock, closed * window.pane_ms + window.grace_ms)
    return replace(head, closed=closed, clock=clock)
