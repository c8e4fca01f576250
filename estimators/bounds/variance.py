"""Variances of estimates, computed from the same statistic (docs/theory.md section 0)."""

from typing import Final

import numpy as np

from ldpstream.estimators.bounds.options import Estimand
from ldpstream.estimators.queries.sums import Sums
from ldpstream.mechanisms.base.arrays import Floats

_ROUNDING: Final = 1e-14
"""Relative to the mean square; a single different report among up to 10^14 has more variance."""


def sample_variance(sums: Sums, n: int) -> Floats:
    """Return the sample variance of the decoded reports, float64 `(q,)`; NaN for n < 2."""
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
    """Return the plug-in variance, kept within what the channel can produce; NaN if undefined.

    If groups are disclosed, their shares are known, and the respondents' variance is clamped to
    `[sum_g P_g min_x v_x, sum_g P_g max_x v_x]/n`, which loses nothing: an empty block is exactly
    0. Otherwise `stand_in` replaces a plug-in at or below the channel's least noise.

    The population's variance also has a sampling part: with groups it is kept above the noise
    alone. If the reports show no variance at all (a block that nobody reported), the influence of
    one report replaces the standard error, because such a block's share is small but not known to
    be 0. For the same reason no share's error is below one respondent of n: at large epsilon a
    value that nobody reported has hardly any noise.
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
    """Return the variance to use if the plug-in is at or below the channel's least noise: `(q,)`.

    It is the worst noise, `max_x v_x/n`, if such a plug-in says little: if the least noise is 0, or
    n is so small that an estimate of 0 agrees with much more. With a slope b of the variance in the
    share, the largest variance within two standard errors solves `V = floor + 2 b sqrt(V)`. Up to
    2.5 times the floor, the floor itself is used, as in blocks.

    In theory the worst noise is right in both cases. But it may belong to users of a single value
    while almost all users hold others: under `randomized-response` on one block of 40 values
    (eps = 0.5, 5,000 reports) 95% bounds covered 0.98 with the worst noise and 0.96 with the least.
    """
    floor, ceiling = sums.floor / n**2, sums.ceiling / n**2
    slope = sums.slope / n
    most = (slope + np.hypot(slope, np.sqrt(floor))) ** 2
    return np.where(most <= 2.5 * floor, floor, ceiling)
