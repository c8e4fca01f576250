"""The numbers of a document's entries; undefined ones are null.

So are those about a part of merged blocks (`ldpstream.agents.state.blocks`), where they would mean
nothing: the totals are masked already, and merged blocks have one common number of reports, spread
evenly over their values. They are those of a value in these blocks, of a range or linear query that
cuts them, and of all quantiles, which need every prefix.
"""

import math
from collections.abc import Sequence
from typing import Final, TypedDict, cast

import numpy as np

from ldpstream.agents.document.entries import Number
from ldpstream.agents.document.model import MergedBlocks
from ldpstream.estimators.bounds.bounded import Estimate, forged_reports
from ldpstream.estimators.bounds.options import Form
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers

LISTED: Final = 1_000
"""The most runs of merged blocks that a document lists."""


class Numbers(TypedDict):
    """The columns of one entry."""

    share: Number
    count: Number
    se: Number
    low: Number
    high: Number
    influence: Number
    forged: int | None
    bound: Form | None


_NOTHING: Final = cast("Numbers", dict.fromkeys(Numbers.__annotations__))


def numbers(
    estimate: Estimate, n: int, projected: Floats | None, shown: Bools | None = None
) -> list[Numbers]:
    """Return each entry's numbers; a projected share has bounds, but no error of its own.

    `shown`, bool `(q,)`, says which entries have numbers; by default all have.
    """
    shares = estimate.value if projected is None else projected
    arrays = (shares, shares * n, estimate.se, estimate.low, estimate.high, estimate.influence)
    together = np.stack(arrays)
    found = together.astype(object)
    found[~np.isfinite(together)] = None
    columns = found.tolist()
    forms = [form or None for form in estimate.form.tolist()]
    forged = [int(m) if math.isfinite(m) else None for m in forged_reports(estimate).tolist()]
    if projected is not None:
        columns[2] = columns[5] = [None] * estimate.value.size
        forged = [None] * estimate.value.size
    rows = [
        Numbers(share=s, count=c, se=e, low=low, high=high, influence=i, forged=m, bound=b)
        for s, c, e, low, high, i, m, b in zip(*columns, forged, forms, strict=True)
    ]
    for place in [] if shown is None else np.flatnonzero(~shown).tolist():
        rows[place] = _NOTHING
    return rows


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
