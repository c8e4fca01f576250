"""Rule 13: a closed pane is stored once, by partition 0, whatever the number of partitions.

1. Once a pane is closed in every partition's winning head, its counts never change. The owner of
   partition 0 adds them up, and its next head *gathers* the pane: it stores the sums as its own
   cells, and `gathered` says up to which pane. Until this head wins, and if it never does, nothing
   has happened; afterwards every reader takes the counts of these panes from partition 0 alone.
2. The owner of another partition *hands over* a pane once it reads such a winning head:
   its own next head names the same `gathered`, and from that head on its counts of the pane are
   dead. Whoever takes over from it, or from the owner of partition 0, continues from winning heads.
3. How many reports came late stays with the partition that counted them, in cells of their own,
   since that number still grows.
4. A reader that sees a pane handed over, but not gathered yet, is behind with partition 0 and
   answers nothing about it (`BehindError`), and no owner decides or loads anything.
5. The owner of an added partition starts with all gathered panes closed (rule 6).

With a single partition nothing is gathered: what it counts is stored once anyway.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import NEVER


class BehindError(RuntimeError):
    """A replica has not yet read what another one refers to; retry in a moment."""


def missing(replicas: Sequence[Replica]) -> range:
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
    lacking = missing(replicas)
    if lacking and first < lacking.stop and lacking.start < end:
        raise BehindError
    return lacking.start


def counted(replicas: Iterable[Replica], first: int, end: int) -> Counter[int]:
    """Return, by pane of `[first, end)`, how many reports these replicas show, if any."""
    found: Counter[int] = Counter()
    for replica in replicas:
        for pane in replica.panes(first, end):
            if n := replica.totals(pane).n:
                found[pane] += n
    return found
