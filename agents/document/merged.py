"""What a document says where blocks are merged (`ldpstream.agents.state.blocks`), and what not.

Its totals are masked before: of merged blocks they hold one number of reports, spread here over
their values evenly. A number that would take it apart means nothing and is null: of a value in
these blocks, of a range or a linear query that cuts them, and of all quantiles, which need every
prefix.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from ldpstream.agents.document.model import MergedBlocks
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers

LISTED: Final = 1_000
"""Most runs of blocks that a document names."""


def whole_sets(hidden: Bools, sets: Sequence[Integers]) -> Bools:
    """Return which sets of values, given by index, hold all hidden values or none."""
    number = int(hidden.sum())
    return np.array([int(hidden[values].sum()) in (0, number) for values in sets], dtype=np.bool_)


def whole_queries(hidden: Bools, weights: Floats) -> Bools:
    """Return which linear queries `(q, k)` give all hidden values one weight."""
    inside = weights[:, hidden]
    whole: Bools = (inside == inside[:, :1]).all(axis=1)
    return whole


def merged_blocks(merged: Bools, count: int) -> MergedBlocks:
    """Return the document's field `merged`, of blocks `(blocks,)` that hold this many reports."""
    edges = np.flatnonzero(np.diff(merged, prepend=False, append=False))
    runs = np.stack([edges[::2], edges[1::2] - 1], axis=1)
    return MergedBlocks(blocks=int(merged.sum()), runs=runs[:LISTED].tolist(), count=count)
