"""Bounds on the error of a cumulative distribution before any report: docs/theory.md section 6.

With the confidence, all prefixes of n reports err by at most d simultaneously, whatever the shares.
This survives isotonic regression, which does not increase the largest error. So any quantile x
found in them, however it is searched for and however many are asked for, errs by at most d: p is
within d of `(sigma(x - 1), sigma(x)]`.
"""

import math

import numpy as np

from ldpstream.estimators.bounds.methods import bernstein_worst_half_width, hoeffding_half_width
from ldpstream.estimators.bounds.options import Estimand, Options
from ldpstream.estimators.quantiles.prefixes import Prefixes
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


def respondents_needed(
    prefixes: Prefixes,
    error: float,
    *,
    confidence: float = 0.95,
    estimand: Estimand = "respondents",
) -> int:
    """Return the least n for which no prefix errs by more: the inverse of `prefix_half_widths`.

    It is 1 if no prefix can err.

    Raises:
        ValueError: if the error is not a finite number above 0, or an option is out of range.
    """
    _check_error(error)
    options = Options(confidence=confidence, estimand=estimand)
    spread, variance, level = _worst(prefixes, options)
    scale = math.log(2.0 / level)
    # In 1/sqrt(n) Hoeffding's half-width is linear, Bernstein's a quadratic: both have inverses.
    linear, square = np.sqrt(2.0 * variance * scale), spread * scale / 3.0
    bernstein = ((linear + np.sqrt(linear**2 + 4.0 * square * error)) / (2.0 * error)) ** 2
    hoeffding = spread**2 * scale / (2.0 * error**2)
    needed = math.ceil(float(np.minimum(hoeffding, bernstein).max(initial=1.0)))

    def holds(n: int) -> bool:
        widths = prefix_half_widths(prefixes, n, confidence=confidence, estimand=estimand)
        return bool((widths <= error).all())

    # The closed form may be off by one through rounding.
    if needed > 1 and holds(needed - 1):
        return needed - 1
    return needed if holds(needed) else needed + 1


def _worst(prefixes: Prefixes, options: Options) -> tuple[Floats, Floats, float]:
    """Return R and V of each prefix, float64 `(m,)`, and the error level of each."""
    spread, variance = prefixes.spread, prefixes.prepared.worst_noise
    if options.estimand == "population":
        variance = np.where(spread > 0.0, variance + 0.25, variance)  # Popoviciu, for an indicator
    family = max(1, int((spread > 0.0).sum()))
    return spread, variance, (1.0 - options.confidence) / family


def _check_error(error: float) -> None:
    if not 0.0 < error < math.inf:
        raise ValueError(f"error: expected a finite number above 0, got {error!r}")
