"""Rule 13, the writing side: partition 0 gathers closed panes, the others hand them over."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ldpstream.agents.partition.owned import OwnedCells
from ldpstream.agents.state.cells import sum_chunks
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.gathered import counted
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica

GATHERED_BYTES: Final = 4 << 20
"""Gathered counts stay in memory until they are flushed: above this size no more are gathered."""


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
        if place == context.finals_a_step or cells.full or cells.encoded_bytes >= GATHERED_BYTES:
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
