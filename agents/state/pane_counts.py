"""How many reports the panes of a span have over all partitions, and whether all of them are shown.

A pane that partition 0 has gathered is counted there alone, every other one in each partition
(rule 13 in `ldpstream.agents.state.view`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import NEVER, MissingMessages, missing_messages


class BehindError(RuntimeError):
    """A replica has not yet read what another one refers to; retry in a moment."""


def expired(replicas: Iterable[Replica]) -> int:
    """Return the first pane that no partition has dropped; at least one replica has a head."""
    return max(replica.head.expired for replica in replicas if replica.head is not None)


def behind(replicas: Sequence[Replica]) -> range:
    """Return the panes that were handed over to partition 0, but are not shown by it yet.

    The range begins with the first pane of which every partition shows its own counts; those of the
    panes below are partition 0's.
    """
    head = replicas[0].head if replicas else None
    first = NEVER if head is None else head.gathered
    shown = [replica.head.gathered for replica in replicas if replica.head is not None]
    return range(first, max([first, *shown]))


def check_between(replicas: Sequence[Replica], first: int, end: int) -> int:
    """Check that all counts of the panes `[first, end)` are shown.

    Returns the first pane of which every partition shows its own counts.

    Raises:
        BehindError: if partition 0's replica is behind another one.
    """
    unread = behind(replicas)
    if unread and first < unread.stop and unread.start < end:
        raise BehindError
    return unread.start


def counted(replicas: Iterable[Replica], first: int, end: int) -> Counter[int]:
    """Return, by pane of `[first, end)`, how many reports these replicas show, if any."""
    found: Counter[int] = Counter()
    for replica in replicas:
        for pane in replica.panes(first, end):
            if n := replica.totals(pane).n:
                found[pane] += n
    return found


def reports_by_pane(replicas: Sequence[Replica], first: int, end: int) -> Counter[int]:
    """Return by pane the reports that all partitions have counted in the panes `[first, end)`.

    Raises:
        BehindError: if a replica is behind another one.
    """
    own = check_between(replicas, first, end)
    return counted(replicas[:1], first, end) + counted(replicas[1:], max(first, own), end)


def missing_between(replicas: Iterable[Replica], first: int, end: int) -> MissingMessages:
    """Return what retention deleted unread that may have belonged to the panes `[first, end)`."""
    return missing_messages(
        (() if replica.head is None else replica.head.gaps for replica in replicas), first, end
    )


def incomplete_panes(replicas: Iterable[Replica], first: int, end: int) -> set[int]:
    """Return the unexpired panes of `[first, end)` that may have lost messages."""
    return {
        pane
        for replica in replicas
        if replica.head is not None
        for gap in replica.head.gaps
        for pane in gap.panes(max(first, replica.head.expired), end)
    }
