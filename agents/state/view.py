"""Add up all partitions' replicas to the exact totals of any span of whole panes.

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
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from ldpstream.agents.state.blocks import add_parts
from ldpstream.agents.state.cells import add_chunks
from ldpstream.agents.state.context import Context, WindowTotals
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import NEVER, NOTHING_LOST, Lost, WindowSpec, lost
from ldpstream.mechanisms.interface.mechanism import Statistic


class BehindError(RuntimeError):
    """A replica has not yet read what another one refers to; retry in a moment."""


@dataclass(frozen=True)
class WindowInfo:
    """A window that has reports, counted or late, or that may have lost all of them.

    `start_ms` and `end_ms` are epoch ms.
    """

    start_ms: int
    end_ms: int
    n: int
    late: int
    final: bool
    published: bool
    lost: Lost = NOTHING_LOST


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a span held at one moment, not yet added up: cheap to take, and immutable.

    `chunks` are `(number, value)` of the chunks of all panes and partitions. The chunks of the i-th
    part end at `part_ends[i]`. The other fields are as in `WindowTotals`.
    """

    start_ms: int
    end_ms: int
    chunks: tuple[tuple[int, bytes], ...]
    n: int
    late: int
    rejected: int
    withheld: bool = False
    window: tuple[int, int] | None = None
    lost: Lost = NOTHING_LOST
    part_ends: tuple[int, ...] = ()


def snapshot(context: Context, replicas: Sequence[Replica], start_ms: int, end_ms: int) -> Snapshot:
    """Return what `[start_ms, end_ms)` holds over all partitions; `add_up` may run in any thread.

    Expired panes count as empty.

    Raises:
        ValueError: if the span is empty, or begins or ends within a pane.
        BehindError: if a replica is behind another one.
    """
    pane_ms = context.window.pane_ms
    if end_ms <= start_ms or start_ms % pane_ms or end_ms % pane_ms:
        raise ValueError(f"expected a span of whole panes of {pane_ms} ms")
    first, end = start_ms // pane_ms, end_ms // pane_ms
    own = check_between(replicas, first, end)
    chunks: list[tuple[int, bytes]] = []
    n = late = rejected = 0
    for replica in replicas:
        if replica.head is not None:
            rejected += sum(replica.head.rejected.values())
        for pane in replica.panes(first, end):
            pane_totals = replica.totals(pane)
            late += pane_totals.late
            if replica.partition and pane < own:
                continue
            n += pane_totals.n
            chunks += replica.chunks(pane)
    gone = lost_between(replicas, first, end)
    return Snapshot(start_ms, end_ms, tuple(chunks), n, late, rejected, lost=gone)


def add_up(context: Context, taken: Snapshot) -> WindowTotals:
    """Return the totals of a snapshot, with small blocks merged if `minimum_block` is set."""
    merged = None
    if context.minimum_block > 1:
        ends = taken.part_ends or (len(taken.chunks),)
        parts = (taken.chunks[first:end] for first, end in pairwise((0, *ends)))
        statistics = (_statistic(context, part) for part in parts)
        statistic, merged = add_parts(context.spec, context.minimum_block, statistics)
    else:
        statistic = _statistic(context, taken.chunks)
    span = taken.start_ms, taken.end_ms
    return WindowTotals(
        *(*span, statistic, taken.n, taken.late, taken.rejected),
        withheld=taken.withheld,
        window=taken.window,
        lost=taken.lost,
        merged=merged,
    )


def _statistic(context: Context, chunks: Sequence[tuple[int, bytes]]) -> Statistic:
    statistic = np.zeros(context.spec.mechanism.statistic_size, dtype=np.int64)
    add_chunks(statistic, chunks, context.chunk)
    return statistic


def totals(
    context: Context, replicas: Sequence[Replica], start_ms: int, end_ms: int
) -> WindowTotals:
    """Return the totals of `[start_ms, end_ms)` over all partitions: `add_up` of `snapshot`."""
    return add_up(context, snapshot(context, replicas, start_ms, end_ms))


def windows(context: Context, replicas: Sequence[Replica]) -> list[WindowInfo]:
    """Return all unexpired windows with reports, in order.

    A window is `final` once partition 0 has decided it, and `published` once that is recorded.

    Raises:
        BehindError: if a replica is behind another one.
    """
    window = context.window
    own = check_between(replicas, NEVER, -NEVER)
    n_late: dict[int, tuple[int, int]] = {}
    for replica in replicas:
        for pane in replica.all_panes():
            n, late = n_late.get(pane, (0, 0))
            pane_totals = replica.totals(pane)
            more = 0 if replica.partition and pane < own else pane_totals.n
            if more or pane_totals.late:
                n_late[pane] = n + more, late + pane_totals.late
        closed = NEVER if replica.head is None else replica.head.closed
        for pane in lost_panes((replica,), NEVER, closed):
            n_late.setdefault(pane, (0, 0))
    gaps = [() if replica.head is None else replica.head.gaps for replica in replicas]
    panes = sorted(n_late)
    head = replicas[0].head if replicas else None
    final, published = (NEVER, NEVER) if head is None else (head.final, head.published)
    sums_n = [0, *accumulate(n_late[pane][0] for pane in panes)]
    sums_late = [0, *accumulate(n_late[pane][1] for pane in panes)]
    found, first, end = [], 0, 0
    for number in windows_with(window, panes):
        held = window.panes(number)
        while first < len(panes) and panes[first] < held.start:
            first += 1
        while end < len(panes) and panes[end] < held.stop:
            end += 1
        start_ms, end_ms = window.span(number)
        found.append(
            WindowInfo(
                start_ms,
                end_ms,
                sums_n[end] - sums_n[first],
                sums_late[end] - sums_late[first],
                final=number < final,
                published=number < published,
                lost=lost(gaps, held.start, held.stop),
            )
        )
    return found


def windows_with(window: WindowSpec, panes: Iterable[int], *, first: int = NEVER) -> Iterator[int]:
    """Yield the windows, from `first` on, that contain any of these panes (in order)."""
    for pane in panes:
        holding = window.windows(pane)
        yield from range(max(holding.start, first), holding.stop)
        first = max(first, holding.stop)


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


def lost_between(replicas: Iterable[Replica], first: int, end: int) -> Lost:
    """Return what retention deleted unread that may have belonged to the panes `[first, end)`."""
    return lost(
        (() if replica.head is None else replica.head.gaps for replica in replicas), first, end
    )


def lost_panes(replicas: Iterable[Replica], first: int, end: int) -> set[int]:
    """Return the unexpired panes of `[first, end)` that may have lost messages."""
    return {
        pane
        for replica in replicas
        if replica.head is not None
        for gap in replica.head.gaps
        for pane in gap.panes(max(first, replica.head.expired), end)
    }


def stored_finals(context: Context, replica: Replica, after: int) -> list[int]:
    """Return the windows above `after` that have a stored final, in order; NEVER is below all.

    `replica` is that of partition 0, which keeps them.
    """
    window, final = context.window, NEVER if replica.head is None else replica.head.final
    if final == NEVER:
        return []
    first = NEVER if after == NEVER else window.first_pane(after + 1)
    names = (
        name
        for pane in replica.panes(first, window.first_pane(final))
        for name in replica.names(pane)
    )
    return [name.number for name in names if name.kind == "final" and name.number > after]
