"""Documents with merged blocks (`ldpstream.agents.state.blocks`): what they may show.

The totals are masked already: merged blocks have one common number of reports, spread evenly over
their values. A number about a part of them would mean nothing, and is null: that of a value in
these blocks, of a range or linear query that cuts them, and of all quantiles, which need every
prefix.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from ldpstream.agents.document.model import MergedBlocks
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers

LISTED: Final = 1_000
"""The most runs of blocks that a document lists."""


def whole_sets(hidden: Bools, sets: Sequence[Integers]) -> Bools:
    """Return which sets of values, given by index, contain all hidden values or none."""
    number = int(hidden.sum())
    return np.array([int(hidden[values].sum()) in (0, number) for values in sets], dtype=np.bool_)


def whole_queries(hidden: Bools, weights: Floats) -> Bools:
    """Return which linear queries `(q, k)` give all hidden values one weight."""
    inside = weights[:, hidden]
    whole: Bools = (inside == inside[:, :1]).all(axis=1)
    return whole


def merged_blocks(merged: Bools, count: int) -> MergedBlocks:
    """Return the document's field `merged`, for blocks `(blocks,)` with this many reports."""
    edges = np.flatnonzero(np.diff(merged, prepend=False, append=False))
    runs = np.stack([edges[::2], edges[1::2] - 1], axis=1)
    return MergedBlocks(blocks=int(merged.sum()), runs=runs[:LISTED].tolist(), count=count)
