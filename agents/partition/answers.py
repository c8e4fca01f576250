"""What an answer about a span may disclose: with `minimum` above 1, a sum of parts and releases.

Closed panes are grouped into *parts*, and an answer has all reports of a part or none. Parts do not
overlap, each holds at least `minimum` reports, and none ever changes, so no combination of answers
isolates fewer reports.

1. The owner of partition 0 groups the panes that are closed in every partition's winning head, in
   order: a part ends with the first pane at which the reports since the last part reach the
   minimum (`store_parts`). The panes after the last part are *pending*. Empty panes belong to no
   part.
2. An answer covers the smallest union of parts that contains the span, so it may cover a wider span
   than the one requested. Panes in no part yet contribute what has been released of them
   (`ldpstream.agents.partition.releases`), unless the answer is final: a final answer is withheld
   if the span has pending panes.
3. Each partition drops expired panes by its own clock. A part is dropped as a whole, with the first
   of its panes that any partition has dropped; panes still pending then never appear in an answer.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ldpstream.agents.partition.owned import OwnedCells
from ldpstream.agents.state.context import Context, WindowTotals
from ldpstream.agents.state.panes import Firsts, Part, Parts
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.view import (
    BehindError,
    Snapshot,
    WindowInfo,
    add_up,
    check_between,
    counted,
    lost_between,
    snapshot,
)


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
    for part in make_parts(context.minimum, sorted(reports_by_pane(replicas, first, end).items())):
        cells.add_part(part)
        grouped = part.end
    if grouped == work.grouped:
        return work
    cells.drop(Firsts(releases=grouped))
    return replace(work, grouped=grouped)


def make_parts(minimum: int, reports: Sequence[tuple[int, int]]) -> Iterator[Part]:
    """Yield the parts of the closed panes with reports: `(pane, number of reports)` in order."""
    first, n = None, 0
    for pane, more in reports:
        first, n = pane if first is None else first, n + more
        if n >= minimum:
            yield Part(first, pane + 1, n)
            first, n = None, 0


def answer(
    context: Context, replicas: Sequence[Replica], start_ms: int, end_ms: int, *, final: bool
) -> Snapshot:
    """Return what may be disclosed about `[start_ms, end_ms)` at this moment.

    All replicas must have reached their log's end. `final` says that all panes of the span are
    closed in every partition.

    Raises:
        ValueError: if the span is empty, or begins or ends within a pane.
        BehindError: if a replica is behind another one.
    """
    if context.minimum <= 1:
        return snapshot(context, replicas, start_ms, end_ms)
    found = _panes(context, start_ms, end_ms)
    return _answer(
        context, replicas, replicas[0].parts.touching(found.start, found.stop), found, final
    )


def final_totals(
    context: Context, replicas: Sequence[Replica], parts: Parts, start_ms: int, end_ms: int
) -> WindowTotals:
    """Return the totals of a window's final, from the parts that end no later than the window."""
    if context.minimum <= 1:
        return add_up(context, snapshot(context, replicas, start_ms, end_ms))
    found = _panes(context, start_ms, end_ms)
    ended = [p for p in parts.touching(found.start, found.stop) if p.end <= found.stop]
    return add_up(context, _answer(context, replicas, ended, found, final=True))


def told_of(context: Context, replicas: Sequence[Replica], window: WindowInfo) -> Hashable:
    """Return a value that changes whenever the answer about an open window may change."""
    seen = window.n, window.late
    if context.minimum <= 1:
        return seen
    panes = _panes(context, window.start_ms, window.end_ms)
    parts = tuple(replicas[0].parts.touching(panes.start, panes.stop))
    released = tuple((p, one.n) for p, one in replicas[0].released(panes.start, panes.stop))
    # The number of all reports is disclosed only if there is nothing else to disclose.
    return (parts, released, window.late) if parts or released else seen


def first_kept(context: Context, replicas: Sequence[Replica]) -> int:
    """Return the first pane from which on all data is complete; all replicas have a head."""
    first = expired(replicas)
    if context.minimum > 1:
        for part in replicas[0].parts.touching(first, first + 1):
            if part.first < first:
                return part.end
    return first


def expired(replicas: Iterable[Replica]) -> int:
    """Return the first pane that no partition has dropped; at least one replica has a head."""
    return max(replica.head.expired for replica in replicas if replica.head is not None)


def reports_by_pane(replicas: Sequence[Replica], first: int, end: int) -> Counter[int]:
    """Return by pane the reports that all partitions have counted in the panes `[first, end)`.

    Raises:
        BehindError: if a replica is behind another one.
    """
    own = check_between(replicas, first, end)
    return counted(replicas[:1], first, end) + counted(replicas[1:], max(first, own), end)


def _panes(context: Context, start_ms: int, end_ms: int) -> range:
    pane_ms = context.window.pane_ms
    if end_ms <= start_ms or start_ms % pane_ms or end_ms % pane_ms:
        raise ValueError(f"expected a span of whole panes of {pane_ms} ms")
    return range(start_ms // pane_ms, end_ms // pane_ms)


def _answer(
    context: Context, replicas: Sequence[Replica], parts: Sequence[Part], asked: range, final: bool
) -> Snapshot:
    """Return the sum of parts, each of which has panes in `asked`, and of releases."""
    pane_ms = context.window.pane_ms
    first, end = asked.start, asked.stop
    if parts:
        first, end = min(first, parts[0].first), max(end, parts[-1].end)
    by_pane = reports_by_pane(replicas, asked.start, asked.stop)
    gone = first < expired(replicas)
    chunks: list[tuple[int, bytes]] = []
    part_ends = []
    n = 0
    whole = final or not context.tells_of_open
    if not gone and not (final and _pending(by_pane, parts)):
        for part in parts:
            found = snapshot(context, replicas, part.first * pane_ms, part.end * pane_ms)
            if found.n != part.n:
                raise BehindError
            n += part.n
            chunks += found.chunks
            part_ends.append(len(chunks))
        for pane, release in () if whole else replicas[0].released(asked.start, asked.stop):
            n += release.n
            chunks += replicas[0].released_chunks(pane)
    if not n:
        first, end = asked.start, asked.stop
    window = asked.start * pane_ms, asked.stop * pane_ms
    return Snapshot(
        start_ms=first * pane_ms,
        end_ms=end * pane_ms,
        chunks=tuple(chunks),
        part_ends=tuple(part_ends),
        n=n or by_pane.total(),
        late=sum(
            replica.totals(pane).late for replica in replicas for pane in replica.panes(first, end)
        ),
        rejected=sum(
            sum(replica.head.rejected.values()) for replica in replicas if replica.head is not None
        ),
        withheld=not n,
        lost=lost_between(replicas, first, end),
        window=None if (first, end) == (asked.start, asked.stop) else window,
    )


def _pending(by_pane: Mapping[int, int], parts: Sequence[Part]) -> bool:
    """Return whether a pane with reports is in none of the parts, both in order."""
    ends = [part.end for part in parts]
    for pane in by_pane:
        at = bisect_right(ends, pane)
        if at == len(parts) or pane < parts[at].first:
            return True
    return False
