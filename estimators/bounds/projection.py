"""Post-processing that turns estimates into distributions: projections, and shares of a power law.

Both are biased, and their results have no bounds. They serve pictures and errors such as the total
variation, and are applied only at the user's request.
"""

from itertools import product
from typing import Final

import numpy as np

from ldpstream.estimators.queries.queries import all_in_one
from ldpstream.mechanisms.base.arrays import Floats, Integers

_PART: Final = 1 << 17
"""Number of values processed at a time."""
CORRELATED: Final = ("l1-geometric", "l1-bits", "matrix", "lip")
"""Mechanisms with correlated estimates or two values, whose separate means err alike."""
_FAR: Final = 12.0
"""In standard errors; above it, the mean is the estimate minus alpha/t."""
_GRID: Final = np.geomspace(0.1, _FAR + 8.0, 240)
_SEEN: Final = np.linspace(-_FAR, _FAR, 481)
_ALPHAS: Final = np.arange(0.0, 3.01, 0.25)
_ZEROS: Final = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98, 0.995)
_STEP: Final = 1 << 16
"""Number of values pulled towards a power law at a time."""


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
    float64 `(groups,)` >= 0, are known exactly among respondents (`queries.known_totals`). The
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
    order = None if (groups[1:] >= groups[:-1]).all() else np.argsort(groups, kind="stable")
    sizes = np.bincount(groups, minlength=totals.size)
    ends = np.cumsum(sizes)
    out = np.empty_like(values)
    first, before = 0, 0.0
    while first < totals.size:
        start = int(ends[first] - sizes[first])
        last = max(first + 1, int(np.searchsorted(ends, start + _PART, side="right")))
        place = slice(start, int(ends[last - 1]))
        at = place if order is None else order[place]
        if last == first + 1:
            out[at], before = _project_one(values[at], float(totals[first]), before)
        else:
            chosen = slice(first, last)
            out[at], before = _project_some(values[at], sizes[chosen], totals[chosen], before)
        first = last
    return out


def _project_one(values: Floats, total: float, before: float) -> tuple[Floats, float]:
    """Return the projection of one group, and the running sum after it, which was `before`."""
    ordered = -values
    ordered.sort()
    np.negative(ordered, out=ordered)
    kept, sums = 0, [before]
    for first in range(0, ordered.size, _PART):
        part = ordered[first : first + _PART]
        running = _running(part, sums[-1])
        kept += int(np.count_nonzero(part > _thresholds(running, before, total, first)))
        sums.append(float(running[-1]))
    if not values.size:
        return values, before
    number, place = divmod(max(kept, 1) - 1, _PART)
    part = ordered[number * _PART : (number + 1) * _PART]
    thresholds = _thresholds(_running(part, sums[number]), before, total, number * _PART)
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
    order = np.lexsort((-values, group))
    starts = np.cumsum(sizes) - sizes
    # Sort within groups; the running sums restart at each group.
    rank = np.arange(values.size) - starts[group] + 1
    running = np.concatenate([[before], _running(values[order], before)])
    threshold = (running[1:] - running[starts[group]] - totals[group]) / rank
    kept = np.bincount(group, values[order] > threshold, totals.size).astype(np.int64)
    last = starts[group] + np.maximum(kept[group], 1) - 1
    out = np.empty_like(values)
    out[order] = np.maximum(values[order] - threshold[last], 0.0)
    return out, float(running[-1])


def shrink_to_power_law(values: Floats, errors: Floats) -> Floats:
    """Return the means of shares given their estimates, float64 `(k,)`; they do not sum to 1.

    Pulls shares towards a power law for the least total variation, as PowerNS of Wang,
    Lopuhaa-Zwakenberg, Li, Skoric, Li 2020, "Locally Differentially Private Frequency Estimation
    with Consistency"; a projection then makes the sum 1. The prior is fitted to all estimates.
    `errors` are the standard errors of the estimates, `(k,)`; a value with the error 0 stays. Under
    the prior a share is either 0 or has a density `~ u^-alpha` from 0.1 standard errors up to 1,
    since less cannot be observed. The fraction of zeros and alpha are the likeliest of fixed lists.
    """
    noisy = np.flatnonzero((errors > 0.0) & np.isfinite(values))
    out = values.copy()
    if not noisy.size:
        return out
    most = 1.0 / float(np.median(errors[noisy]))
    near = np.exp(-0.5 * (_SEEN[:, None] - _GRID) ** 2) / np.sqrt(2.0 * np.pi)
    none = np.exp(-0.5 * _SEEN**2) / np.sqrt(2.0 * np.pi)
    counts, tail, far = np.zeros(_SEEN.size), 0.0, 0
    for start in range(0, noisy.size, _STEP):
        at = noisy[start : start + _STEP]
        seen = values[at] / errors[at]
        high = seen > _FAR
        tail, far = tail + float(np.log(seen[high]).sum()), far + int(high.sum())
        places = np.rint((np.maximum(seen[~high], -_FAR) + _FAR) / (2.0 * _FAR) * (_SEEN.size - 1))
        counts += np.bincount(places.astype(np.int64), minlength=_SEEN.size)
    best, alpha, means = -np.inf, 0.0, _SEEN
    for power, zeros in product(_ALPHAS.tolist(), _ZEROS):
        # The grid is even in the logarithm, so that a density u^-alpha has masses u^(1 - alpha).
        masses = _GRID ** (1.0 - power)
        masses *= (1.0 - zeros) * np.log(_GRID[1] / _GRID[0]) / _integral(power, most)
        density = zeros * none + near @ masses
        above = tail * -power + far * np.log((1.0 - zeros) / _integral(power, most))
        fit = float(counts @ np.log(np.maximum(density, 1e-300))) + above
        if fit > best:
            best, alpha, means = fit, power, (near @ (masses * _GRID)) / np.maximum(density, 1e-300)
    for start in range(0, noisy.size, _STEP):
        at = noisy[start : start + _STEP]
        seen = values[at] / errors[at]
        pulled = np.interp(seen, _SEEN, means)
        pulled = np.where(seen > _FAR, seen - alpha / np.maximum(seen, _FAR), pulled)
        out[at] = pulled * errors[at]
    return out


def _integral(power: float, most: float) -> float:
    """Return the integral of `u^-power` from the least of the grid up to `most`."""
    least, end = float(_GRID[0]), max(most, 2.0 * float(_GRID[0]))
    if power == 1.0:
        return float(np.log(end / least))
    return float((end ** (1.0 - power) - least ** (1.0 - power)) / (1.0 - power))
