"""A smooth curve of high likelihood, for display: biased, but without the maximum's spikes.

Expectation maximisation (Dempster, Laird, Rubin 1977) from uniform shares, stopped at the first
shares that the reports do not contradict: `2 (L* - L(p)) <= z^2`. Each of its quantiles therefore
lies within the profile's bounds of the same confidence.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpstream.estimators.bounds.two_valued import quantile
from ldpstream.estimators.likelihood.line import Line
from ldpstream.estimators.likelihood.solver import Fit, maximise
from ldpstream.mechanisms.base.arrays import Floats

_STEPS: Final = 3_000
_HALVINGS: Final = 40


@dataclass(frozen=True)
class Curve:
    """Shares, float64 `(k,)`, >= 0, that sum to 1; NaN without reports.

    `deviance` bounds twice the distance of their log-likelihood from the largest; NaN likewise.
    """

    shares: Floats
    deviance: float


def curve(line: Line, confidence: float, *, best: Fit | None = None) -> Curve:
    """Return the curve for a confidence in (0, 1); `best` is the maximum, if it is known."""
    if line.n == 0.0:
        return Curve(np.full(line.size, np.nan), float("nan"))
    top = maximise(line) if best is None else best
    most = quantile(1.0 - confidence) ** 2
    # Shares of the outputs, so that a step multiplies by the gradient.
    shares = np.full(line.size, 1.0 / line.size)
    for _ in range(_STEPS):
        u = line.mix(shares)
        deviance = 2.0 * (top.bound - line.value(u))
        if deviance <= most:
            return Curve(shares, max(deviance, 0.0))
        shares = shares * (line.gradient(u) / line.n)
        shares /= shares.sum()
    return _between(line, shares, top, most)


def _between(line: Line, shares: Floats, top: Fit, most: float) -> Curve:
    """Return the first mixture of shares with the best ones that is close enough."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        part = (low + high) / 2.0
        mixed = (1.0 - part) * shares + part * top.shares
        near = 2.0 * (top.bound - line.value(line.mix(mixed))) <= most
        low, high = (low, part) if near else (part, high)
    mixed = (1.0 - high) * shares + high * top.shares
    return Curve(mixed, max(2.0 * (top.bound - line.value(line.mix(mixed))), 0.0))
