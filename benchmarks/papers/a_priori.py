"""Bounds on the error of a cumulative distribution before any report: docs/theory.md section 6.

With the confidence, all prefixes of n reports err by at most d simultaneously, whatever the shares.
This survives isotonic regression, which does not increase the largest error. So any quantile x
found in them, however it is searched for and however many are asked for, errs by at most d: p is
within d of `(sigma(x - 1), sigma(x)]`.
"""

import numpy as np

from ldpstream.estimators.bounds.methods import bernstein_worst_half_width, hoeffding_half_width
from ldpstream.estimators.bounds.options import Estimand, Options
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.queries import prepare_queries
from ldpstream.mechanisms.base.arrays import Floats


def prefix_half_widths(
    prefixes: Prefixes,
    n: int,
    *,
    confidence: float = 0.95,
    estimand: Estimand = "respondents",
) -> Floats:
    """Return simultaneous half-widths of all prefixes of n reports, float64 `(m,)`.

    The smaller of Hoeffding's and Bernstein's half-widths, by a union over the prefixes that can
    err: with `R = max h - min h` and V the worst variance of a decoded report,
    `R sqrt(log(2 m/delta)/(2 n))` and `sqrt(2 V L/n) + R L/(3 n)`, `L = log(2 m/delta)`. Both are
    known beforehand, so choosing the smaller costs nothing. [ML] Theorem 4,
    `2 c sqrt(2 log(2 log2(m)/delta)/n)`, assumes `R = c`, which `l1-bits` has; Hoeffding's is less
    for all m up to 2^140 with delta up to 1/2. The geometric prefix has
    `R = (1 + a^2)/(1 - a)^2 > c`, rarely reached, and there Bernstein's is the smaller.

    Raises:
        ValueError: if n < 1, or an option is out of range.
    """
    if n < 1:
        raise ValueError(f"n: expected a number >= 1, got {n}")
    spread, variance, level = _worst(prefixes, Options(confidence=confidence, estimand=estimand))
    return np.minimum(
        hoeffding_half_width(spread, n, level),
        bernstein_worst_half_width(variance, spread, n, level),
    )


def _worst(prefixes: Prefixes, options: Options) -> tuple[Floats, Floats, float]:
    """Return R and V of each prefix, float64 `(m,)`, and the error level of each."""
    spread = prefixes.spread
    upto = ((prefixes.positions <= cut).astype(np.float64) for cut in range(spread.size))
    queries = prepare_queries(prefixes.mechanism).set_queries(upto)
    variance = np.array([query.noise.max() for query in queries])
    if options.estimand == "population":
        variance = np.where(spread > 0.0, variance + 0.25, variance)  # Popoviciu, for an indicator
    family = max(1, int((spread > 0.0).sum()))
    return spread, variance, (1.0 - options.confidence) / family
