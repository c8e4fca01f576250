"""Rule 8: how windows become final, their finals are published, and their panes expire.

1. A window is final when all its panes are closed in every partition's winning head, since nothing
   counted later can fall into it. The owner of partition 0 decides this from the winning heads and
   live cells of all partitions. Panes are grouped into parts first, by the same heads: a final
   contains only parts that end no later than its window, so that it is the same whenever it is
   decided.
2. Each final is stored as a cell. A window without reports gets none, unless retention may have
   deleted its reports.
3. It is published once the head that stores it has won.
4. The following head records this. After a takeover in between it is published again, with the
   same content.
5. A pane expires after the retention, once all windows that contain it are published.

By the same heads, partition 0 first gathers the counts of closed panes, which the others hand over
(rule 13, see `ldpstream.agents.state.view`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ldpstream.agents.partition.answers import expired, final_totals, store_parts
from ldpstream.agents.partition.owned import OwnedCells
from ldpstream.agents.state.cells import sum_chunks
from ldpstream.agents.state.context import GATHERS, Context
from ldpstream.agents.state.panes import Firsts, Parts
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.view import BehindError, behind, counted, lost_panes, windows_with

_FINALS_BYTES: Final = 4 << 20
"""Finals stay in memory until they are published: above this size no more are decided."""
_GATHERED_BYTES: Final = 4 << 20
"""Gathered counts stay in memory until they are flushed: above this size no more are gathered."""


@dataclass(frozen=True)
class Publication:
    """A final to publish; times are epoch ms."""

    window_start_ms: int
    window_end_ms: int
    content: bytes


def store_finals(
    context: Context,
    cells: OwnedCells,
    work: Head,
    replicas: Sequence[Replica],
    heads: Sequence[Head],
) -> Head:
    """Add to partition 0's cells what follows from all heads; return the head including it.

    `replicas` and `heads` are those of all partitions that this worker knows.
    """
    partitions = max(work.partitions, len(heads))
    work = replace(work, partitions=partitions)
    if len(heads) < partitions or behind(replicas):
        return work
    # 1. Partition 0 takes over the counts of panes that all partitions have closed.
    closed = min(head.closed for head in heads)
    if closed > work.gathered and partitions > 1 and work.format >= GATHERS:
        # Without gathered panes, other partitions drop panes by their own clock: those panes are
        # incomplete.
        oldest = expired(replicas)
        if oldest > work.expired:
            work = expire(cells, work, oldest)
        work = gather(context, cells, work, replicas, closed)
    # 2. Panes become parts; an answer has all reports of a part or none.
    if context.minimum > 1:
        work = store_parts(context, cells, work, replicas, closed)
    # 3. Windows become final.
    end = context.window.final(closed)
    if end <= work.final or cells.finals_bytes >= _FINALS_BYTES:
        return work
    final, contents = _decide(context, replicas, work.final, end, cells.parts)
    for window, content in contents:
        cells.final(window, content)
    # Windows without finals need not be published.
    nothing = work.published == work.final and not contents
    return replace(work, final=final, published=final if nothing else work.published)


def gather(
    context: Context,
    cells: OwnedCells,
    work: Head,
    replicas: Sequence[Replica],
    end: int,
) -> Head:
    """Add to partition 0's cells the counts of the panes below `end`; return the head with them.

    `replicas` are those of all partitions, whose winning heads have closed these panes.
    """
    first, gone = max(work.gathered, work.expired), work.gone
    for place, pane in enumerate(sorted(counted(replicas[1:], first, end))):
        if place == context.finals_a_step or cells.full or cells.encoded_bytes >= _GATHERED_BYTES:
            end = pane
            break
        gone -= _gather_pane(context, cells, replicas, pane)
    return replace(work, gathered=end, gone=gone)


def _gather_pane(
    context: Context, cells: OwnedCells, replicas: Sequence[Replica], pane: int
) -> int:
    """Add up a pane; return how many reports partition 0 takes over from the others."""
    chunks: dict[int, list[bytes]] = {}
    for replica in replicas:
        for name in replica.names(pane):
            if name.kind == "count":
                chunks.setdefault(name.chunk, []).append(replica.cells[name].value)
    totals = [replica.totals(pane) for replica in replicas]
    return cells.gather(
        pane,
        n=sum(one.n for one in totals),
        total=sum(one.sum for one in totals),
        chunks={
            number: sum_chunks(values, context.chunk_length(number))
            for number, values in chunks.items()
        },
    )


def hand_over(cells: OwnedCells, work: Head, gathered: int) -> Head:
    """Drop from the cells of another partition what partition 0 has gathered; return the head."""
    gone = work.gone + cells.hand_over(gathered)
    return replace(work, gathered=gathered, gone=gone)


def _decide(
    context: Context, replicas: Sequence[Replica], final: int, end: int, parts: Parts
) -> tuple[int, list[tuple[int, bytes]]]:
    """Decide windows in `[final, end)`, at most `context.finals_a_step` of them with reports.

    Returns the first window not decided, and the new finals' contents by window. `replicas` are
    those of all partitions that finals wait for, all of which have closed the panes of these
    windows. `parts` must be complete for them.
    """
    window = context.window
    first, last = window.first_pane(final), window.closing(end)
    panes = counted(replicas, first, last).keys() | lost_panes(replicas, first, last)
    contents: list[tuple[int, bytes]] = []
    for number in windows_with(window, sorted(panes), first=final):
        if number >= end:
            break
        if len(contents) == context.finals_a_step:
            return number, contents
        try:
            totals = final_totals(context, replicas, parts, *window.span(number))
        except BehindError:
            # A changelog reader that has started over is catching up.
            return number, contents
        contents.append((number, context.make_final(totals)))
    return end, contents


def expire(cells: OwnedCells, work: Head, first: int) -> Head:
    """Drop the panes below `first` from the cells; return the head including that."""
    gone = work.gone + cells.drop(Firsts(kept=first, releases=first, late=first))
    gaps = tuple(gap for gap in work.gaps if gap.last >= first)
    return replace(work, expired=first, gone=gone, gaps=gaps)
