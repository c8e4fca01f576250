"""Variances of estimates from the same statistic: docs/theory.md section 0."""

from typing import Final

import numpy as np

from ldpstream.estimators.bounds.options import Estimand
from ldpstream.estimators.queries.sums import Sums
from ldpstream.mechanisms.base.arrays import Floats

_ROUNDING: Final = 1e-14
"""Reports without noise, one of n unlike the others, have more of their mean square up to 10^14."""


def sample_variance(sums: Sums, n: int) -> Floats:
    """Return the sample variance of the decoded reports, float64 `(q,)`; NaN where n < 2."""
    if n < 2:
        return np.full_like(sums.total, np.nan)
    centred = (sums.squares - sums.total * (sums.total / n)) / (n - 1)
    return np.maximum(centred, 0.0)


def plug_in(sums: Sums, n: int, estimand: Estimand) -> Floats:
    """Return the unbiased plug-in variance, before any clamp; n >= 1.

    Population: `(mean(h^2) - w_hat^2)/(n - 1)`. Respondents: `(mean(h^2) - [estimate of w^2])/n`.
    """
    if estimand == "population":
        return sample_variance(sums, n) / n
    return (sums.squares - sums.offset) / n**2


def variance(sums: Sums, n: int, estimand: Estimand) -> Floats:
    """Return the plug-in variance kept within what the channel can produce; NaN where undefined.

    Where groups are disclosed their shares are known, so the respondents' variance is clamped to
    `[sum_g P_g min_x v_x, sum_g P_g max_x v_x]/n`, and no data are left out by the clamp: an empty
    block is exactly 0. Elsewhere `stand_in` takes the place of a plug-in at or below the channel's
    least noise.

    The population's variance has a part from sampling too: with groups it is kept above the noise
    alone, and where the reports show no variance at all (a block that nobody reported) the
    influence of one report stands in for the standard error, because such a block's share is
    small but not known to be 0. For the same reason no share's error is below one respondent of n:
    at large epsilon a value that nobody reported has hardly any noise.
    """
    raw = plug_in(sums, n, estimand)
    floor, ceiling = sums.floor / n**2, sums.ceiling / n**2
    if not sums.disclosed:
        kept = np.where(raw <= floor, stand_in(sums, n), raw)
    elif estimand == "respondents":
        kept = np.clip(raw, floor, ceiling)
    else:
        kept = np.maximum(raw, floor)
    if estimand == "respondents":
        return kept
    rounding = _ROUNDING * np.maximum(sums.squares, 0.0) / n**2
    one = np.minimum(sums.spread, 1.0) if sums.indicators else 0.0
    least = np.where(kept <= rounding, sums.spread, one)
    return np.maximum(kept, (least / n) ** 2)


def stand_in(sums: Sums, n: int) -> Floats:
    """Return the variance where the plug-in is at or below the channel's least noise: `(q,)`.

    The worst noise, `max_x v_x/n`, where such a plug-in says little: where the least noise is 0, or
    n so small that an estimate of 0 agrees with far more. With a slope b of the variance in the
    share, the most that it agrees with, within two of its standard errors, solves
    `V = floor + 2 b sqrt(V)`; up to 2.5 times the floor, the floor stands, as it does in blocks.

    The theory names the worst noise for both. But users of a single value may have it while almost
    all hold others: under `randomized-response` on one block of 40 values (eps = 0.5, 5,000
    reports) 95% bounds with it covered 0.98, with the least 0.96.
    """
    floor, ceiling = sums.floor / n**2, sums.ceiling / n**2
    slope = sums.slope / n
    most = (slope + np.hypot(slope, np.sqrt(floor))) ** 2
    return np.where(most <= 2.5 * floor, floor, ceiling)
