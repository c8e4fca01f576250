"""Shares pulled towards a power law, then projected: few values hold most, and many are near 0.

Like projections they are biased, have no bounds, and are computed only at the user's request.
"""

from itertools import product
from typing import Final, Unpack

import numpy as np

from ldpstream.estimators.bounds.options import OptionKeywords
from ldpstream.estimators.estimate import estimate_values
from ldpstream.estimators.projection import known_totals, project_blocks
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic

_PART: Final = 1 << 15
"""Number of values whose bounds are computed at a time."""
_FAR: Final = 12.0
"""In standard errors; above it, the mean is the estimate minus alpha/t."""
_GRID: Final = np.geomspace(0.1, _FAR + 8.0, 240)
_SEEN: Final = np.linspace(-_FAR, _FAR, 481)
_ALPHAS: Final = np.arange(0.0, 3.01, 0.25)
_ZEROS: Final = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98, 0.995)
_STEP: Final = 1 << 16
"""Number of values pulled towards a power law at a time."""


def project_power(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    shares: Floats,
    **options: Unpack[OptionKeywords],
) -> Floats:
    """Return shares pulled towards a power law, `(k,)`, >= 0, that keep each disclosed total.

    `shares` are the estimates. `options` (`estimand`, `sampling`) determine their standard errors,
    which are computed in parts, since bounds of all values take much memory.
    """
    if not n:
        return np.full_like(shares, np.nan)
    keywords: OptionKeywords = {**options, "method": "normal", "simultaneous": False}
    decoded, errors = shares * n, np.empty_like(shares)
    for start in range(0, shares.size, _PART):
        values = np.arange(start, min(start + _PART, shares.size))
        estimate = estimate_values(
            mechanism, statistic, n, values=values, decoded=decoded, **keywords
        )
        errors[values] = estimate.se
    means = shrink_to_power_law(shares, errors)
    return project_blocks(means, *known_totals(mechanism, statistic, n))


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
        scores = values[at] / errors[at]
        high = scores > _FAR
        tail, far = tail + float(np.log(scores[high]).sum()), far + int(high.sum())
        places = np.rint(
            (np.maximum(scores[~high], -_FAR) + _FAR) / (2.0 * _FAR) * (_SEEN.size - 1)
        )
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
        scores = values[at] / errors[at]
        pulled = np.interp(scores, _SEEN, means)
        pulled = np.where(scores > _FAR, scores - alpha / np.maximum(scores, _FAR), pulled)
        out[at] = pulled * errors[at]
    return out


def _integral(power: float, most: float) -> float:
    """Return the integral of `u^-power` from the least of the grid up to `most`."""
    least, end = float(_GRID[0]), max(most, 2.0 * float(_GRID[0]))
    if power == 1.0:
        return float(np.log(end / least))
    return float((end ** (1.0 - power) - least ** (1.0 - power)) / (1.0 - power))
