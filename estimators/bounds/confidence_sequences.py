"""Bounds that hold at every number of reports at once: docs/theory.md, anytime-valid bounds.

All need sums over the reports so far only, not their order. Arrays are float64 of shape `(q,)`,
one entry a query; `level` in (0, 1) is the probability that a bound fails at any moment.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SCALES: Final = 4.0 ** -np.arange(8.0)
_FINER: Final = np.arange(1.0, 8.0) ** -2
_PARTS: Final = np.append(1.0, _FINER / _FINER.sum()) / 2.0
"""Of `mixture_half_width`: what `sharpest` is multiplied with, and the weights; their sum is 1."""
_STEPS: Final = 6
_TILTS: Final = 2.0 ** -np.arange(9.0)
"""Of `mean_ceiling`: the smallest is best where the sum is a million times a report's bound."""
_STAKES: Final = 2.0 ** -np.arange(1.0, 15.0)
"""Of `self_normalised`: the smallest is best after some hundred million reports."""


def mixture_half_width(variance: Floats, sharpest: Floats, n: int, level: float) -> Floats:
    """Return the normal mixture's half-width for the mean of n reports.

    `variance` bounds the sum of the reports' variances so far, `sharpest >= 0` is the sum at which
    the bound is sharpest; it must not depend on the reports. Waudby-Smith, Arbour, Sinha, Kennedy,
    Ramdas 2021, Theorem 2.2 and its appendix on r: with `variance = n V`, `sharpest = n* V` and one
    scale, `sqrt(V) sqrt(2 (n r + 1)/(n^2 r) log(sqrt(n r + 1)/level))`,
    `r = (log(1 - 2 log level) - 2 log level)/n*`. We differ twice. It is written in the sum itself,
    which holds where reports differ in variance too. And half of the level is kept for scales of
    `sharpest` divided by 4, 16, ...: this costs 2% where the bound is sharpest, and a query with a
    hundredth of the variance expected gets bounds half as wide.

    Asymptotic; exact where `variance` bounds sub-Gaussian variances (Robbins 1970; for reports
    within an interval of length R, Hoeffding's `R^2/4`).
    """
    target = -math.log(level)
    # Any constant is valid; this one is the sharpest, but 0 where the level is 1.
    r = max(math.log1p(2.0 * target) + 2.0 * target, 0.1)
    unit = _SCALES[:, None] * np.where(sharpest > 0.0, sharpest, 1.0) / r
    start = np.log(_PARTS)[:, None] - np.log1p(variance / unit) / 2.0
    slope = 0.5 / (variance + unit)
    # Each scale alone bounds the square of the sum. Newton's steps on the convex logarithm of all
    # together stay above its root, so that the bound holds after any number of them.
    square = ((target - start) / slope).min(axis=0)
    for _ in range(_STEPS):
        terms = start + slope * square
        most = terms.max(axis=0)
        parts = np.exp(terms - most)
        whole = parts.sum(axis=0)
        square -= (most + np.log(whole) - target) * whole / (parts * slope).sum(axis=0)
    return np.where(variance > 0.0, np.sqrt(square) / n, 0.0)


def mean_ceiling(total: Floats, largest: Floats, level: float) -> Floats:
    """Return what the sum of the means of reports in `[0, largest]` is below, given their sum.

    Exact at all numbers of reports at once, for independent reports of any distributions: since
    `exp(-a x/B) <= 1 - (1 - e^-a) x/B` on `[0, B]`, the process
    `exp((1 - e^-a) sum_i E x_i/B - a sum_i x_i/B)` is a supermartingale of mean 1, and stays below
    `1/level` (Ville). The least of nine a, each with a ninth of the level.
    """
    scale = math.log(_TILTS.size / level)
    bounds = [(tilt * total + largest * scale) / -math.expm1(-tilt) for tilt in _TILTS.tolist()]
    return np.asarray(np.min(bounds, axis=0))


def self_normalised(
    deviations: Floats,
    room: Floats,
    reach: Floats,
    sharpest: Floats,
    n: int,
    level: float,
) -> Floats:
    """Return how far a mean lies below the average of n independent reports at most.

    `deviations` is the reports' mean squared distance from their average, `room` the most that a
    report lies below the true mean, `reach` how far the true mean can be below the average (more
    is never returned), and `sharpest` the reports' variance times the number of them at which the
    bound is sharpest: it must not depend on the reports.

    Exact at every n, for identically distributed reports: `exp(a x - psi(a) x^2) <= 1 + a x` for
    `x >= -1` and `psi(a) = -log(1 - a) - a` (Fan, Grama, Liu 2015), so with `x = (h - theta)/room`
    around the true mean theta the product over the reports is a supermartingale of mean 1 for each
    a. It needs the sums of h and h^2 only, because it is centred at the candidate theta itself,
    not at a prediction of it. The best of the a in `2^-1 .. 2^-14`, each with a part of the level:
    most for that which is best at `sharpest`.
    """
    guess = math.log(6.0 / level)
    with np.errstate(divide="ignore"):
        ideal = room * np.sqrt(2.0 * guess / np.where(sharpest > 0.0, sharpest, 1.0))
        place = np.clip(np.rint(-np.log2(ideal)), 1, _STAKES.size) - 1.0
    away = np.abs(np.arange(_STAKES.size)[:, None] - place)
    parts = 1.0 / ((away + 1.0) * (away + 2.0))
    scale = np.log(parts.sum(axis=0) / (level * parts))
    stakes = _STAKES[:, None]
    psi = -np.log1p(-stakes) - stakes
    # theta is refused where psi d^2 - a room d + psi deviations + scale room^2/n <= 0.
    half = stakes * room / (2.0 * psi)
    square = half**2 - deviations - scale * room**2 / (n * psi)
    root = np.sqrt(np.maximum(square, 0.0))
    refused = (square > 0.0) & (half + root >= reach)
    return np.asarray(np.minimum(np.where(refused, half - root, reach).min(axis=0), reach))
