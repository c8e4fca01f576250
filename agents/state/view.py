"""Answer for any span of whole panes: the exact totals over all partitions that may be disclosed.

Any worker can answer, whichever partitions it owns, because it has replicas of all of them.

Rule 13: a closed pane is stored once, by partition 0, whatever the number of partitions.

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

With `minimum` above 1, closed panes are grouped into *parts*, and an answer has all reports of a
part or none. Parts do not overlap, each holds at least `minimum` reports, and none ever changes, so
no combination of answers isolates fewer reports.

1. The owner of partition 0 groups the panes that are closed in every partition's winning head, in
   order: a part ends with the first pane at which the reports since the last part reach the minimum
   (`store_parts` in `ldpstream.agents.state.closing`). The panes after the last part are
   *pending*. Empty panes belong to no part.
2. An answer covers the smallest union of parts that contains the span, so it may cover a wider span
   than the one requested. Panes in no part yet contribute what has been released of them
   (`ldpstream.agents.state.releases`), unless the answer is final: a final answer is withheld
   if the span has pending panes.
3. Of records, each attribute has parts and releases of its own, and an answer about it is made of
   these. A pane belongs to a part of each attribute once it has reports about any.
4. Each partition drops expired panes by its own clock. A part is dropped as a whole, with the first
   of its panes that any partition has dropped; panes still pending then never appear in an answer.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ldpstream.agents.state.cell_encoding import add_chunks
from ldpstream.agents.state.context import Context, Waiting, WindowTotals
from ldpstream.agents.state.disclosure_groups import (
    DisclosureGroup,
    DisclosureGroups,
    add_parts,
    blocks_of_reports,
)
from ldpstream.agents.state.replica import (
    BehindError,
    Replica,
    check_between,
    expired,
    missing_between,
    reports_by_pane,
)
from ldpstream.agents.state.windows import NEVER, NOTHING_LOST, MissingMessages
from ldpstream.mechanisms.interface.mechanism import Statistic
from ldpstream.mechanisms.wire.spec import CollectionSpec


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a span held at one moment, not yet added up: cheap to take, and immutable.

    `chunks` are `(number, value)` of the chunks of all panes and partitions. The chunks of the i-th
    part end at `part_ends[i]`. Of records with `minimum`, `attributes` has a snapshot for each,
    whose `n` counts the reports about all of them in its span. The other fields are as in
    `WindowTotals`.
    """

    start_ms: int
    end_ms: int
    chunks: tuple[tuple[int, bytes], ...]
    n: int
    late: int
    rejected: int
    withheld: bool = False
    window: tuple[int, int] | None = None
    lost: MissingMessages = NOTHING_LOST
    part_ends: tuple[int, ...] = ()
    waiting: Waiting | None = None
    attributes: "tuple[Snapshot, ...]" = ()


def answer(
    context: Context, replicas: Sequence[Replica], start_ms: int, end_ms: int, *, final: bool
) -> Snapshot:
    """Return what may be disclosed about `[start_ms, end_ms)` at this moment.

    All replicas must have reached their log's end. `final` says that all panes of the span are
    closed in every partition.
    """
    if context.minimum <= 1:
        return snapshot(context, replicas, start_ms, end_ms)
    span = panes_between(context, start_ms, end_ms)
    groups = [replicas[0].parts(attribute) for attribute in range(context.attributes)]
    return _answer(context, replicas, groups, span, final=final)


def final_totals(
    context: Context,
    replicas: Sequence[Replica],
    groups: Sequence[DisclosureGroups],
    start_ms: int,
    end_ms: int,
) -> WindowTotals:
    """Return the totals of a window's final, from the groups that end no later than the window.

    `groups` are those of each attribute.
    """
    if context.minimum <= 1:
        return add_up(context, snapshot(context, replicas, start_ms, end_ms))
    span = panes_between(context, start_ms, end_ms)
    return add_up(context, _answer(context, replicas, groups, span, final=True, published=True))


def snapshot(context: Context, replicas: Sequence[Replica], start_ms: int, end_ms: int) -> Snapshot:
    """Return what `[start_ms, end_ms)` holds over all partitions; `add_up` may run in any thread.

    Expired panes count as empty.
    """
    panes = panes_between(context, start_ms, end_ms)
    first, end = panes.start, panes.stop
    first_counted = check_between(replicas, first, end)
    chunks: list[tuple[int, bytes]] = []
    n = late = rejected = 0
    for replica in replicas:
        if replica.head is not None:
            rejected += sum(replica.head.rejected.values())
        for pane in replica.panes(first, end):
            pane_totals = replica.totals(pane)
            late += pane_totals.late
            if replica.partition and pane < first_counted:
                continue
            n += pane_totals.n
            chunks += replica.chunks(pane)
    gone = missing_between(replicas, first, end)
    return Snapshot(start_ms, end_ms, tuple(chunks), n, late, rejected, lost=gone)


def _answer(
    context: Context,
    replicas: Sequence[Replica],
    groups: Sequence[DisclosureGroups],
    span: range,
    *,
    final: bool,
    published: bool = False,
) -> Snapshot:
    """Return the sum of groups and releases; a `published` one has no group that ends later."""
    by_pane = reports_by_pane(replicas, span.start, span.stop)
    about, released = _Reports(context, replicas), {}
    if not final:
        released = _released(context, replicas[0], span)
    of_each = []
    for attribute, of_attribute in enumerate(groups):
        touching = of_attribute.touching(span.start, span.stop)
        if published:
            touching = [group for group in touching if group.end <= span.stop]
        summed = _sum_parts(context, replicas, attribute, touching, span, final=final)
        since = range(of_attribute.last_end(span.stop), span.stop if published else -NEVER)
        rest = _without(by_pane, touching)
        waiting = about.waiting(attribute, rest, released, since, final=final) if rest else None
        of_each.append(replace(summed, waiting=waiting))
    if len(of_each) == 1:
        return of_each[0]
    whole = _sum_parts(context, replicas, 0, [], span, final=True)
    withheld = all(sums.withheld for sums in of_each)
    return replace(whole, n=by_pane.total(), withheld=withheld, attributes=tuple(of_each))


def _sum_parts(
    context: Context,
    replicas: Sequence[Replica],
    attribute: int,
    groups: Sequence[DisclosureGroup],
    span: range,
    *,
    final: bool,
) -> Snapshot:
    """Return the sum of an attribute's groups, which have panes in `span`, and of its releases."""
    edge = context.window.start
    first, end = span.start, span.stop
    if groups:
        first, end = min(first, groups[0].first), max(end, groups[-1].end)
    by_pane = reports_by_pane(replicas, span.start, span.stop)
    gone = first < expired(replicas)
    chunks: list[tuple[int, bytes]] = []
    part_ends = []
    n = 0
    whole = final or context.hides_open is not None
    if not gone and not (final and _without(by_pane, groups)):
        for group in groups:
            sums = snapshot(context, replicas, edge(group.first), edge(group.end))
            if sums.n != group.n:
                raise BehindError
            n += group.n
            chunks += sums.chunks
            part_ends.append(len(chunks))
        for pane, release in () if whole else replicas[0].released(span.start, span.stop):
            if attribute in release.attributes:
                n += release.n if context.attributes == 1 else sum(release.counted.values())
                chunks += replicas[0].released_chunks(pane)
    if not n:
        first, end = span.start, span.stop
    window = edge(span.start), edge(span.stop)
    return Snapshot(
        start_ms=edge(first),
        end_ms=edge(end),
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
        lost=missing_between(replicas, first, end),
        window=None if (first, end) == (span.start, span.stop) else window,
    )


class _Reports:
    """How many reports about each attribute the panes of one moment have."""

    def __init__(self, context: Context, replicas: Sequence[Replica]) -> None:
        self._context = context
        self._replicas = replicas
        self._numbers: dict[int, Sequence[int]] = {}

    def about(self, pane: int) -> Sequence[int]:
        if pane not in self._numbers:
            self._numbers |= reports_about(self._context, self._replicas, pane, pane + 1)
        return self._numbers[pane]

    def waiting(
        self,
        attribute: int,
        panes: Sequence[int],
        released: Mapping[int, Sequence[int]],
        pending: range,
        *,
        final: bool,
    ) -> Waiting | None:
        """Return what of these panes, which are in no group, is not `released`.

        `pending` are all panes since the last group.
        """
        context, replicas = self._context, self._replicas
        reports = {pane: self.about(pane)[attribute] for pane in panes}
        counted_before = {
            pane: released[pane][attribute] if pane in released else 0 for pane in panes
        }
        n = sum(reports.values()) - sum(counted_before.values())
        if n < 1:
            return None
        closed = min(
            (replica.head.closed for replica in replicas if replica.head is not None), default=NEVER
        )
        still_open = [] if final else [pane for pane in panes if pane >= closed]
        if still_open and context.hides_open is not None:
            return Waiting(n, "closing", because=context.hides_open)
        if still_open:
            more = min(
                counted_before[pane] + 2 * context.minimum - reports[pane] for pane in still_open
            )
            return Waiting(n, "reports", max(0, more))
        first = max(pending.start, expired(replicas))
        since = reports_about(context, replicas, first, pending.stop).values()
        return Waiting(
            n,
            "later",
            max(0, context.minimum - sum(pane_counts[attribute] for pane_counts in since)),
        )


def reports_about(
    context: Context, replicas: Sequence[Replica], first: int, end: int
) -> dict[int, Sequence[int]]:
    """Return the reports about each attribute, by pane of `[first, end)` with reports."""
    numbers = reports_by_pane(replicas, first, end)
    if context.attributes == 1:
        return {pane: (n,) for pane, n in numbers.items()}
    first_counted, counts = check_between(replicas, first, end), context.spec.mechanism.counts
    # Of gathered panes partition 0 has everything.
    chunks = {
        pane: [
            c
            for replica in replicas[: 1 if pane < first_counted else None]
            for c in replica.chunks(pane)
        ]
        for pane in numbers
    }
    return {pane: counts(_statistic(context, some)) for pane, some in chunks.items()}


def _released(context: Context, replica: Replica, panes: range) -> dict[int, Sequence[int]]:
    """Return the numbers of released reports about each attribute, by pane."""
    panes_released = replica.released(panes.start, panes.stop)
    if context.attributes == 1:
        return {pane: (release.n,) for pane, release in panes_released}
    counts, chunks = context.spec.mechanism.counts, replica.released_chunks
    return {pane: counts(_statistic(context, chunks(pane))) for pane, _ in panes_released}


def _without(by_pane: Mapping[int, int], groups: Sequence[DisclosureGroup]) -> list[int]:
    """Return the panes with reports that are in none of the groups, both in order."""
    ends, numbers = [group.end for group in groups], []
    for pane in by_pane:
        at = bisect_right(ends, pane)
        if at == len(groups) or pane < groups[at].first:
            numbers.append(pane)
    return numbers


def add_up(context: Context, snapshot_taken: Snapshot) -> WindowTotals:
    """Return the totals of a snapshot, with small blocks merged if `minimum_block` is set."""
    spec = context.spec
    if not snapshot_taken.attributes:
        return _add_up(context, spec, slice(0, spec.mechanism.statistic_size), snapshot_taken)
    attributes = []
    of_each = zip(
        spec.attributes.values(), spec.mechanism.slices, snapshot_taken.attributes, strict=True
    )
    for own_spec, rows, sums in of_each:
        added = _add_up(context, own_spec, rows, sums)
        if not sums.withheld:
            n = own_spec.mechanism.count(added.statistic)
        else:
            n = 0 if sums.waiting is None else sums.waiting.reports
        attributes.append(replace(added, n=n, among=sums.n))
    whole = _add_up(context, spec, slice(0, 0), snapshot_taken)
    return replace(whole, attributes=tuple(attributes))


def _add_up(
    context: Context, spec: CollectionSpec, rows: slice, snapshot_taken: Snapshot
) -> WindowTotals:
    """Return the totals of a snapshot, of a slice of the statistic, which belongs to `spec`."""
    merged = None
    if context.minimum_block > 1 and blocks_of_reports(spec) is not None:
        ends = snapshot_taken.part_ends or (len(snapshot_taken.chunks),)
        pieces = (snapshot_taken.chunks[first:end] for first, end in pairwise((0, *ends)))
        statistics = (_statistic(context, piece, rows) for piece in pieces)
        statistic, merged = add_parts(spec, context.minimum_block, statistics)
    else:
        statistic = _statistic(context, snapshot_taken.chunks, rows)
    span = snapshot_taken.start_ms, snapshot_taken.end_ms
    return WindowTotals(
        *(*span, statistic, snapshot_taken.n, snapshot_taken.late, snapshot_taken.rejected),
        withheld=snapshot_taken.withheld,
        window=snapshot_taken.window,
        lost=snapshot_taken.lost,
        merged=merged,
        waiting=snapshot_taken.waiting,
    )


def _statistic(
    context: Context, chunks: Iterable[tuple[int, bytes]], rows: slice | None = None
) -> Statistic:
    """Return the sum of chunks, or a slice of it."""
    size, length = context.spec.mechanism.statistic_size, context.chunk
    rows = rows or slice(0, size)
    first = rows.start // length
    statistic = np.zeros(
        max(0, min(size, -(-rows.stop // length) * length) - first * length), np.int64
    )
    last = -(-rows.stop // length)
    add_chunks(
        statistic,
        ((number - first, value) for number, value in chunks if first <= number < last),
        length,
    )
    return statistic[rows.start - first * length : rows.stop - first * length]


def totals(
    context: Context, replicas: Sequence[Replica], start_ms: int, end_ms: int
) -> WindowTotals:
    """Return the totals of `[start_ms, end_ms)` over all partitions: `add_up` of `snapshot`."""
    return add_up(context, snapshot(context, replicas, start_ms, end_ms))


def panes_between(context: Context, start_ms: int, end_ms: int) -> range:
    """Return the panes of `[start_ms, end_ms)`.

    Raises:
        ValueError: if the span is empty, or begins or ends within a pane.
    """
    window = context.window
    first, end = window.edge(start_ms), window.edge(end_ms)
    if end_ms <= start_ms or first is None or end is None:
        raise ValueError(f"expected a span of whole panes of {window.pane_ms} ms")
    return range(first, end)


def first_kept(context: Context, replicas: Sequence[Replica]) -> int:
    """Return the first pane from which on all data is complete; all replicas have a head."""
    first = expired(replicas)
    if context.minimum > 1:
        straddling = (
            group
            for attribute in range(context.attributes)
            for group in replicas[0].parts(attribute).touching(first, first + 1)
            if group.first < first
        )
        return max((group.end for group in straddling), default=first)
    return first
