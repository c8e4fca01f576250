"""What a document says where blocks are merged (`ldpstream.agents.state.blocks`), and what not.

Its totals are masked before: of merged blocks they hold one number of reports, spread here over
their values evenly. A number that would take it apart means nothing and is null: of a value in
these blocks, of a range or a linear query that cuts them, and of all quantiles, which need every
prefix.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.document.model import MergedBlocks
from ldpstream.agents.state.context import WindowTotals
from ldpstream.mechanisms.wire.spec import CollectionSpec

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LISTED: Final = 1_000
"""Most runs of blocks that a document names."""


def hidden_values(spec: CollectionSpec, merged: Bools) -> Bools:
    """Return which values are in merged blocks, bool `(k,)`."""
    groups = spec.mechanism.decoder().groups()
    assert groups is not None, "only what discloses blocks merges them"
    return merged[groups]


def whole_sets(hidden: Bools, sets: Sequence[Integers]) -> Bools:
    """Return which sets of values, given by index, hold all hidden values or none."""
    number = int(hidden.sum())
    return np.array([int(hidden[values].sum()) in (0, number) for values in sets], dtype=np.bool_)


def whole_queries(hidden: Bools, weights: Floats) -> Bools:
    """Return which linear queries `(q, k)` give all hidden values one weight."""
    inside = weights[:, hidden]
    whole: Bools = (inside == inside[:, :1]).all(axis=1)
    return whole


def merged_blocks(spec: CollectionSpec, totals: WindowTotals, merged: Bools) -> MergedBlocks:
    """Return the document's field `merged`."""
    edges = np.flatnonzero(np.diff(merged, prepend=False, append=False))
    runs = np.stack([edges[::2], edges[1::2] - 1], axis=1)
    return MergedBlocks(
        blocks=int(merged.sum()),
        runs=runs[:LISTED].tolist(),
        count=merged_reports(spec, totals),
    )


def merged_reports(spec: CollectionSpec, totals: WindowTotals) -> int:
    """Return the number of reports of merged blocks."""
    reports = spec.mechanism.decoder().group_reports(totals.statistic)
    return int(reports[totals.merged].sum())
