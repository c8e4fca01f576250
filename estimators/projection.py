"""The nearest distribution to estimates, in which each disclosed group keeps its total.

Projections are biased, and have no bounds of their own: documents show those of the unbiased
estimate beside them. They serve pictures and errors such as the total variation. Of ordered values
in a tree they are the default: there what the coarse levels know well limits the noise of the fine
ones, one level after the other, so that ranges have less error too.
"""

from typing import Final

import numpy as np

from ldpstream.estimators.queries import DisclosedGroups, all_in_one
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic

_PART: Final = 1 << 17
"""Number of values processed at a time."""


def project_simplex(values: Floats) -> Floats:
    """Return the nearest vector (Euclidean) of non-negative entries that sum to 1.

    float64 `(k,)` -> `(k,)`; NaN if any entry is. Held, Wolfe, Crowder 1974.

    >>> project_simplex(np.array([0.75, 0.5, -0.25])).tolist()
    [0.625, 0.375, 0.0]
    """
    return project_blocks(values, all_in_one(values.size), np.ones(1))


def project_blocks(values: Floats, groups: Integers, totals: Floats) -> Floats:
    """Return the nearest vector of non-negative entries whose sum over each group is its total.

    `values` is float64 `(k,)`; `groups`, int64 `(k,)`, numbers each value's group from 0; `totals`,
    float64 `(groups,)` >= 0, are known exactly among respondents (`known_totals`). The
    result is all NaN if any value or total is.

    Raises:
        ValueError: if a total is negative or the shapes disagree.
    """
    if groups.shape != values.shape or (groups.size and groups.max() >= totals.size):
        raise ValueError("groups: expected one group for each value and one total for each group")
    if (totals < 0.0).any():
        raise ValueError("totals: expected numbers >= 0")
    if np.isnan(values).any() or np.isnan(totals).any():
        return np.full_like(values, np.nan)
    ranking = None if (groups[1:] >= groups[:-1]).all() else np.argsort(groups, kind="stable")
    sizes = np.bincount(groups, minlength=totals.size)
    ends = np.cumsum(sizes)
    out = np.empty_like(values)
    first, before = 0, 0.0
    while first < totals.size:
        start = int(ends[first] - sizes[first])
        last = max(first + 1, int(np.searchsorted(ends, start + _PART, side="right")))
        place = slice(start, int(ends[last - 1]))
        at = place if ranking is None else ranking[place]
        if last == first + 1:
            out[at], before = _project_one(values[at], float(totals[first]), before)
        else:
            chosen = slice(first, last)
            out[at], before = _project_some(values[at], sizes[chosen], totals[chosen], before)
        first = last
    return out


def project_down(shares: Floats, coordinates: Integers, groups: Integers, totals: Floats) -> Floats:
    """Return shares >= 0, each node's children summing to the node, from the groups down.

    `shares` are estimates of all values, float64 `(k,)`, whose sums estimate the nodes without
    bias. `coordinates` are the places of each value in its group, int64 `(dimensions, k)`; on each
    level nodes are half as wide in every dimension as on the level above. `groups`, int64 `(k,)`,
    and the exact `totals` are as in `project_blocks`.

    >>> line = np.arange(4)[None], np.zeros(4, dtype=np.int64), np.ones(1)
    >>> project_down(np.array([0.625, -0.125, 0.25, 0.25]), *line).tolist()
    [0.5, 0.0, 0.25, 0.25]
    """
    parents, above = groups, totals
    for halvings in reversed(range(int(coordinates.max(initial=0)).bit_length())):
        # One number for each node: at most as many as groups times values.
        keys = groups
        for places in coordinates >> halvings:
            keys = keys * (int(places.max()) + 1) + places
        _, first, nodes = np.unique(keys, return_index=True, return_inverse=True)
        sums = np.bincount(nodes, shares).astype(np.float64)
        above = project_blocks(sums, parents[first], above)
        parents = nodes
    return above[parents]


def _project_one(values: Floats, total: float, before: float) -> tuple[Floats, float]:
    """Return the projection of one group, and the running sum after it, which was `before`."""
    ordered = -values
    ordered.sort()
    np.negative(ordered, out=ordered)
    positive, sums = 0, [before]
    for first in range(0, ordered.size, _PART):
        piece = ordered[first : first + _PART]
        running = _running(piece, sums[-1])
        positive += int(np.count_nonzero(piece > _thresholds(running, before, total, first)))
        sums.append(float(running[-1]))
    if not values.size:
        return values, before
    number, place = divmod(max(positive, 1) - 1, _PART)
    piece = ordered[number * _PART : (number + 1) * _PART]
    thresholds = _thresholds(_running(piece, sums[number]), before, total, number * _PART)
    out = np.subtract(values, thresholds[place], out=ordered)
    return np.maximum(out, 0.0, out=out), sums[-1]


def _running(values: Floats, before: float) -> Floats:
    """Return the running sums of values, continued from `before` in a fixed order."""
    return np.cumsum(np.concatenate([[before], values]))[1:]


def _thresholds(running: Floats, before: float, total: float, first: int) -> Floats:
    """Return the thresholds for `first + 1` and more kept entries."""
    thresholds: Floats = (running - before - total) / np.arange(first + 1, first + running.size + 1)
    return thresholds


def _project_some(
    values: Floats, sizes: Integers, totals: Floats, before: float
) -> tuple[Floats, float]:
    """Do the same for several groups at once, given their sizes and totals, `(groups,)`."""
    group = np.repeat(np.arange(sizes.size), sizes)
    ranking = np.lexsort((-values, group))
    starts = np.cumsum(sizes) - sizes
    # Sort within groups; the running sums restart at each group.
    rank = np.arange(values.size) - starts[group] + 1
    running = np.concatenate([[before], _running(values[ranking], before)])
    threshold = (running[1:] - running[starts[group]] - totals[group]) / rank
    positive = np.bincount(group, values[ranking] > threshold, totals.size).astype(np.int64)
    last = starts[group] + np.maximum(positive[group], 1) - 1
    out = np.empty_like(values)
    out[ranking] = np.maximum(values[ranking] - threshold[last], 0.0)
    return out, float(running[-1])


def known_totals(mechanism: Mechanism, statistic: Statistic, n: int) -> tuple[Integers, Floats]:
    """Return the group of each value, `(k,)`, and each group's share of respondents, `(count,)`.

    The shares are exact. Without disclosed groups there is one group with share 1. NaN if n = 0.
    """
    groups = DisclosedGroups.of(mechanism)
    reports = mechanism.decoder.group_reports(statistic)
    return groups.of_place, reports / n if n else np.full(groups.count, np.nan)
