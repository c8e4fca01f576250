"""The Bayesian estimate of a `lip` collection, from priors and reports.

`E[X_i | Y_i]` is the estimate with the least mean squared error; its sum over the reports follows
from their counts. It is only as right as the priors: see `calibration`, and `estimate` for shares
that need no prior.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpstream.estimators.bounds.anytime import bennett_exponent, tail_half_width
from ldpstream.estimators.bounds.options import SHARPEST, CredibleMethod
from ldpstream.estimators.bounds.two_valued import quantile
from ldpstream.estimators.estimate import check_counts
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.interface.mechanism import Statistic

_NEXT_TO_1: Final = math.nextafter(1.0, 0.0)


@dataclass(frozen=True)
class SharePosterior:
    """The posterior of the share of value 1 among n respondents; all NaN if n = 0.

    `value` is its mean and `se` its standard deviation with the representative prior of each level.
    `low` and `high` are credible bounds that hold for *every* choice of priors within the reports'
    levels, and are wider by what the levels leave open.
    """

    value: float
    se: float
    low: float
    high: float


def posteriors(mechanism: Lip, priors: Floats) -> Floats:
    """Return `P(X = 1 | y)` of every report: priors float64 `(levels,)` -> `(levels, 2)`.

    `levels` counts pairs of a prior's level and a budget.
    """
    likely = mechanism.decoder.channel
    with_zero, with_one = (1.0 - priors)[:, None] * likely[:, 0], priors[:, None] * likely[:, 1]
    return np.asarray(with_one / (with_one + with_zero))


def estimate_mmse(
    mechanism: Lip,
    statistic: Statistic,
    n: int,
    *,
    confidence: float = 0.95,
    method: CredibleMethod = "normal",
    sharpest: int = SHARPEST,
) -> SharePosterior:
    """Estimate the share of value 1 among the respondents by `sum_i E[X_i | Y_i] / n`.

    Given the reports, the X_i are independent with variance `a_i (1 - a_i)`. `normal` bounds the
    sum by the normal approximation. `bernstein` uses Bernstein's inequality for independent bits,
    `sqrt(2 V L) + L/3` with `L = log(2/delta)`, and is valid at every n. `anytime` is valid at all
    n at once: a mixture of Bennett's bounds for these bits, narrowest at `sharpest` reports.
    """
    check_counts(mechanism, statistic, n)
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence: expected a number in (0, 1), got {confidence!r}")
    if n == 0:
        nan = math.nan
        return SharePosterior(nan, nan, nan, nan)
    counts = statistic.reshape(-1, 2)
    budgets = len(mechanism.epsilons)
    edges = np.array(mechanism.prior.edges)
    middle, least, largest = (
        posteriors(mechanism, np.repeat(priors, budgets))
        for priors in (np.array(mechanism.prior.representatives), edges[:-1], edges[1:])
    )
    mean = float((counts * middle).sum())
    variance = float((counts * middle * (1.0 - middle)).sum())
    # Over a level, a (1 - a) is largest where a is closest to 1/2.
    # A float of 1 may stand for less; moving toward 1/2 is safe.
    nearest = np.minimum(np.clip(0.5, least, largest), _NEXT_TO_1)
    bits = nearest * (1.0 - nearest)
    widest = float((counts * bits).sum())
    if method == "anytime":
        most, off, best = np.array([[widest], [1.0], [sharpest * bits.max()]])
        level = 1.0 - confidence
        half_width = n * float(tail_half_width(bennett_exponent, most, off, best, n, level)[0])
    else:
        half_width = _half_width(widest, 1.0 - confidence, method)
    low = float((counts * least).sum()) - half_width
    high = float((counts * largest).sum()) + half_width
    return SharePosterior(
        value=mean / n,
        se=math.sqrt(variance) / n,
        low=max(low, 0.0) / n,
        high=min(high, float(n)) / n,
    )


def _half_width(variance: float, delta: float, method: CredibleMethod) -> float:
    if method == "normal":
        return quantile(delta) * math.sqrt(variance)
    scale = math.log(2.0 / delta)
    return math.sqrt(2.0 * variance * scale) + scale / 3.0
