"""Add a classified batch to the cells and the head of a partition's owner."""

from collections import Counter
from dataclasses import replace

from ldpstream.agents.partition.classify import Classified
from ldpstream.agents.partition.owned import OwnedCells
from ldpstream.agents.state.records import Head


def count(cells: OwnedCells, work: Head, classified: Classified) -> Head:
    """Count a batch into the cells; return the head with the new watermark and numbers."""
    n = late = 0
    for pane, reports in classified.counted(classified.reports):
        cells.count(pane, reports)
        n += len(reports)
    if classified.tokens is not None:
        for pane, tokens in classified.counted(classified.tokens):
            cells.count_tokens(pane, tokens)
    for pane, few in classified.late().items():
        late += few
        # An expired pane has no totals any more: its late reports count only in the head.
        if pane >= work.expired:
            cells.late(pane, few)
    return replace(
        work,
        clock=classified.clock,
        n=work.n + n,
        late=work.late + late,
        rejected=dict(Counter(work.rejected) + Counter(classified.rejected())),
    )
