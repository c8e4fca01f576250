"""Group closed panes into parts; an answer has all reports of a part or none.

With `minimum` above 1 every answer is a sum of parts (and of what has been released of open panes,
see `agents/partition/releases.py`). Parts do not overlap, each holds at least `minimum` reports,
and none ever changes, so no combination of answers isolates fewer reports.

The owner of partition 0 groups the panes that are closed in every partition's winning head, in
order: a part ends with the first pane at which the reports since the last part reach the minimum.
The panes after the last part are *pending*, and in no answer yet. Empty panes belong to no part.

Each partition drops expired panes by its own clock. A part is dropped as a whole, with the first of
its panes that any partition has dropped; panes still pending then never appear in an answer.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ldpstream.agents.partition.owned import OwnedCells
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.gathered import check_between, counted
from ldpstream.agents.state.panes import Firsts
from ldpstream.agents.state.parts import Part
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica


def group(minimum: int, reports: Sequence[tuple[int, int]]) -> Iterator[Part]:
    """Yield the parts of the closed panes with reports: `(pane, number of reports)` in order."""
    first, n = None, 0
    for pane, more in reports:
        first, n = pane if first is None else first, n + more
        if n >= minimum:
            yield Part(first, pane + 1, n)
            first, n = None, 0


def reports_by_pane(replicas: Sequence[Replica], first: int, end: int) -> Counter[int]:
    """Return by pane the reports that all partitions have counted in the panes `[first, end)`.

    Raises:
        BehindError: if a replica is behind another one.
    """
    own = check_between(replicas, first, end)
    return counted(replicas[:1], first, end) + counted(replicas[1:], max(first, own), end)


def expired(replicas: Iterable[Replica]) -> int:
    """Return the first pane that no partition has dropped; at least one replica has a head."""
    return max(replica.head.expired for replica in replicas if replica.head is not None)


def store_parts(
    context: Context,
    cells: OwnedCells,
    work: Head,
    replicas: Sequence[Replica],
    end: int,
) -> Head:
    """Add to partition 0's cells the parts that are complete; return the head including them.

    `replicas` are those of all partitions, whose winning heads have closed the panes below `end`.
    """
    first = max(work.grouped, expired(replicas))
    if end <= first:
        return work
    grouped = work.grouped
    for part in group(context.minimum, sorted(reports_by_pane(replicas, first, end).items())):
        cells.add_part(part)
        grouped = part.end
    if grouped == work.grouped:
        return work
    cells.drop(Firsts(releases=grouped))
    return replace(work, grouped=grouped)
