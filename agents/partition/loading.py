"""Rule 6: the state from which a new owner continues.

Every load starts with a new random epoch, from the replica's state and at its head's next offset:
never from the committed offset, never from the memory of an earlier epoch.

Partition 0's head says how many partitions finals wait for (rule 8). The owner of an added
partition waits until that number includes it, and starts with all panes of decided windows, and
all gathered ones, closed.
"""

from dataclasses import replace

from ldpstream.agents.partition.cutover import SiblingHeads, cut_over
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.windows import WindowSpec


def loadable(context: Context, partition: int, first: Head, siblings: SiblingHeads) -> bool:
    """Return whether a partition can be loaded yet; `first` is partition 0's head.

    An added partition cannot before that head includes it, and none can before all accepted states
    have recorded where they hand over.
    """
    included = partition == 0 or partition < first.partitions
    return included and (context.accepted or siblings.all_cut_over)


def starting_head(
    context: Context, head: Head, first: Head, siblings: SiblingHeads, *, source: bytes
) -> Head:
    """Return the head that a new owner continues from, given the stored `head`.

    `source` is the id of the source topic, empty if the broker has none.
    """
    decided = max(context.window.closing(first.final), first.grouped, first.gathered)
    begun = close_decided(context.window, head, decided)
    return replace(cut_over(context, begun, siblings), source=source or head.source)


def close_decided(window: WindowSpec, head: Head, closed: int) -> Head:
    """Return a head with all panes below `closed` closed, so that nothing counts into them."""
    if closed <= head.closed:
        return head
    clock = max(head.clock, closed * window.pane_ms + window.grace_ms)
    return replace(head, closed=closed, clock=clock)
