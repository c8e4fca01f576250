"""How far a cumulative distribution errs at most, before any report: docs/theory.md section 6.

All prefixes of n reports err by at most d at once, with the confidence, whatever the shares are.
Made monotone they still do: isotonic regression keeps the largest error. So a quantile found in
them, however it is searched for and however many are asked for, errs by at most d: p is no further
than d from `(sigma(x - 1), sigma(x)]`.
"""

import math

import numpy as np

from ldpstream.estimators.bounds.intervals import (
    bernstein_worst_half_width,
    hoeffding_half_width,
)
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
    """Return what each prefix of n reports errs by at most, all at once: float64 `(m,)`.

    The smaller of Hoeffding's and Bernstein's half-widths, by a union over the prefixes that can
    err: with `R = max h - min h` and V the worst variance of a decoded report,
    `R sqrt(log(2 m/delta)/(2 n))` and `sqrt(2 V L/n) + R L/(3 n)`, `L = log(2 m/delta)`. Both are
    known beforehand, so choosing the smaller costs nothing. [ML] Theorem 4 assumes `R = c`, which
    `l1-bits` has; the geometric prefix has `R = (1 + a^2)/(1 - a)^2 > c`, most of it rarely
    reached, and there Bernstein's is the smaller.

    Raises:
        ValueError: where n < 1, or an option is impossible.
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

    1 where no prefix can err.

    Raises:
        ValueError: where the error is no finite number above 0, or an option is impossible.
    """
    _check_error(error)
    options = Options(confidence=confidence, estimand=estimand)
    spread, variance, level = _worst(prefixes, options)
    scale = math.log(2.0 / level)
    # Each is a quadratic in 1/sqrt(n): e = (R sqrt(scale/2))/sqrt(n), and Bernstein's.
    linear, square = np.sqrt(2.0 * variance * scale), spread * scale / 3.0
    bernstein = ((linear + np.sqrt(linear**2 + 4.0 * square * error)) / (2.0 * error)) ** 2
    hoeffding = spread**2 * scale / (2.0 * error**2)
    needed = math.ceil(float(np.minimum(hoeffding, bernstein).max(initial=1.0)))

    def holds(n: int) -> bool:
        widths = prefix_half_widths(prefixes, n, confidence=confidence, estimand=estimand)
        return bool((widths <= error).all())

    # The closed form is exact but for rounding.
    if needed > 1 and holds(needed - 1):
        return needed - 1
    return needed if holds(needed) else needed + 1


def _worst(prefixes: Prefixes, options: Options) -> tuple[Floats, Floats, float]:
    """Return R and V of each prefix, float64 `(m,)`, and the error level of each."""
    spread, variance = prefixes.spread, prefixes.prepared.worst_noise
    if options.estimand == "population":
        variance = np.where(spread > 0.0, variance + 0.25, variance)  # Popoviciu, of an indicator
    family = max(1, int((spread > 0.0).sum()))
    return spread, variance, (1.0 - options.confidence) / family


def _check_error(error: float) -> None:
    if not 0.0 < error < math.inf:
        raise ValueError(f"error: expected a finite number above 0, got {error!r}")
