"""Rule 6: what a new owner goes on from.

Every load begins with a fresh random epoch, from the tail's state and at its head's next offset:
never from the committed offset, never from the memory of an earlier epoch.

Partition 0's head says how many partitions finals wait for (rule 8). The owner of a new one waits
until it reads itself included, and starts with all panes of decided windows closed.
"""

from dataclasses import replace

from ldpstream.agents.partition.handover import Beside, hand_over
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.windows import WindowSpec


def loadable(context: Context, partition: int, first: Head, beside: Beside) -> bool:
    """Return whether a partition can be loaded yet; `first` is partition 0's head.

    A new one cannot before that head includes it, nor any before all accepted states have said
    where they hand over.
    """
    included = partition == 0 or partition < first.partitions
    return included and (context.accepted or beside.handed_over)


def starting_head(
    context: Context, head: Head, first: Head, beside: Beside, *, source: bytes
) -> Head:
    """Return the head that a new owner continues `head` with.

    `source` is the id of the source topic, empty where the broker has none.
    """
    decided = max(context.window.closing(first.final), first.grouped)
    begun = close_decided(context.window, head, decided)
    return replace(hand_over(context, begun, beside), source=source or head.source)


def close_decided(window: WindowSpec, head: Head, closed: int) -> Head:
    """Return a head with all panes below `closed` closed: none may count into them."""
    if closed <= head.closed:
        return head
    clock = max(head.clock, closed * window.pane_ms + window.grace_ms)
    return replace(head, closed=closed, clock=clock)
