"""Half-widths of confidence intervals, by name."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ldpstream.estimators.options import Method

Floats = NDArray[np.float64]


def error_level(confidence: float, method: Method, family: int) -> float:
    """Return the error allowed to each query so that a family holds together with `confidence`.

    Sidak's correction, `1 - (1 - delta)^(1/m)`, holds for jointly normal estimates of any
    correlation (Sidak 1967) and is used with `normal` only; otherwise Bonferroni's, `delta/m`.

    >>> error_level(0.95, "bernstein", 10)
    0.005...
    """
    error = 1.0 - confidence
    if method == "normal":
        return -math.expm1(math.log1p(-error) / family)
    return error / family


def normal_half_width(standard_error: Floats, level: float) -> Floats:
    """Return z times the standard error: asymptotic, two-sided, error `level` in (0, 1)."""
    return standard_error * float(-ndtri(level / 2.0))


def bernstein_half_width(sample_variance: Floats, spread: Floats, n: int, level: float) -> Floats:
    """Return the empirical Bernstein half-width, valid at every n >= 2; NaN below.

    `sqrt(2 V L/n) + 7 R L/(3 (n - 1))`, `L = log(4/level)`: Maurer and Pontil 2009, Theorem 4, on
    both sides (hence 4 where they have 2). V is the sample variance of the decoded reports, with
    `n - 1` below, and R the length of the interval that they lie in. It holds for independent
    reports that are not identically distributed too, so for both estimands.
    """
    if n < 2:
        return np.full_like(sample_variance, np.nan)
    scale = math.log(4.0 / level)
    return np.sqrt(2.0 * sample_variance * scale / n) + 7.0 * spread * scale / (3.0 * (n - 1))
