"""Named post-processing: estimates made into distributions.

Projections are biased and their results carry no bounds; they are for pictures and for errors such
as the total variation, and always a choice of the user.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def project_simplex(values: Floats, *, total: float = 1.0) -> Floats:
    """Return the nearest vector (Euclidean) of non-negative entries that sum to `total`.

    float64 `(k,)` -> `(k,)`; NaN if any entry is. Held, Wolfe, Crowder 1974.

    >>> project_simplex(np.array([0.75, 0.5, -0.25])).tolist()
    [0.625, 0.375, 0.0]

    Raises:
        ValueError: where the total is negative.
    """
    return project_blocks(values, np.zeros(values.size, dtype=np.int64), np.array([total]))


def project_blocks(values: Floats, groups: Integers, totals: Floats) -> Floats:
    """Return the nearest vector of non-negative entries whose sum over each group is its total.

    `values` float64 `(k,)`, `groups` int64 `(k,)` numbering each value's group from 0, `totals`
    float64 `(groups,)` >= 0, exactly known among respondents (`groups.known_totals`). All NaN if
    any value or total is.

    Raises:
        ValueError: where a total is negative or the shapes do not agree.
    """
    if groups.shape != values.shape or (groups.size and groups.max() >= totals.size):
        raise ValueError("groups: expected one group for each value and one total for each group")
    if (totals < 0.0).any():
        raise ValueError("totals: expected numbers >= 0")
    if np.isnan(values).any() or np.isnan(totals).any():
        return np.full_like(values, np.nan)
    order = np.lexsort((-values, groups))
    sizes = np.bincount(groups, minlength=totals.size)
    starts = np.cumsum(sizes) - sizes
    group = groups[order]
    # Sorting within groups; the running sums restart at each, entry by entry of the rank.
    rank = np.arange(values.size) - starts[group] + 1
    running = np.cumsum(values[order])
    before = np.concatenate([[0.0], running])[starts[group]]
    threshold = (running - before - totals[group]) / rank
    kept = np.bincount(group, values[order] > threshold, totals.size).astype(np.int64)
    last = starts[group] + np.maximum(kept[group], 1) - 1
    out = np.empty_like(values)
    out[order] = np.maximum(values[order] - threshold[last], 0.0)
    return out
