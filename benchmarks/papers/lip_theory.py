"""Channels of two values under a prior, and their errors: docs/theory.md section 7.

The optimum that `lip` uses, and what it is compared with. Plain functions of `prior = P(X = 1)` and
`epsilon`, float64, scalars or arrays that broadcast; a channel is `(q0, q1) = (P(Y = 1 | X = 0),
P(Y = 0 | X = 1))`. Errors are those of one user: the sum of N users' errors is N times that.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Flips:
    """The flip probabilities of a channel of two values, float64 of shapes that broadcast."""

    zero: Floats
    one: Floats

    def shape_with(self, prior: Floats) -> tuple[int, ...]:
        """Return the shape of anything computed for these channels at these priors."""
        return np.broadcast_shapes(prior.shape, self.zero.shape, self.one.shape)


def opt_lip(prior: ArrayLike, epsilon: ArrayLike) -> Flips:
    """Return the best channel under eps-LIP at a known prior, epsilon above 0.

    Posteriors at their extremes, `lo = max(e^-eps P, 1 - e^eps (1-P))` and
    `hi = min(e^eps P, 1 - e^-eps (1-P))`, report 1 with probability `l1 = (P - lo)/(hi - lo)`. The
    error is the mean of the concave a(1 - a) over the posterior a, so no other channel, with any
    number of reports, does better. Where [LIP] Theorem 2 keeps the bound this is the same channel.
    """
    p, growth = np.asarray(prior, dtype=np.float64), np.exp(epsilon)
    below, above = _distances(p, epsilon)
    low = np.maximum(p / growth, 1.0 - growth * (1.0 - p))
    beyond = np.maximum((1.0 - p) / growth, 1.0 - growth * p)  # 1 - hi
    return Flips(
        zero=beyond * below / ((below + above) * (1.0 - p)), one=low * above / ((below + above) * p)
    )


def lip_posteriors(prior: ArrayLike, epsilon: ArrayLike) -> tuple[Floats, Floats]:
    """Return the least and the largest posterior that eps-LIP allows at a prior."""
    p = np.asarray(prior, dtype=np.float64)
    below, above = _distances(p, epsilon)
    return np.asarray(p - below), np.asarray(p + above)


def _distances(prior: Floats, epsilon: ArrayLike) -> tuple[Floats, Floats]:
    """Return `(P - lo, hi - P)`, without the cancellation of the differences."""
    shrink, grow = -np.expm1(-np.asarray(epsilon)), np.expm1(epsilon)
    below = np.minimum(prior * shrink, (1.0 - prior) * grow)
    above = np.minimum(prior * grow, (1.0 - prior) * shrink)
    return np.asarray(below), np.asarray(above)


def paper_lip(prior: ArrayLike, epsilon: ArrayLike) -> Flips:
    """Return the channel of [LIP] Theorem 2: `q0 = P/e^eps`, `q1 = (1 - P)/e^eps`.

    It violates eps-LIP wherever `min(P, 1 - P) < 1/(e^eps + 1)`; here for comparison only.
    """
    p, growth = np.asarray(prior, dtype=np.float64), np.exp(epsilon)
    return Flips(zero=p / growth, one=(1.0 - p) / growth)


def symmetric_lip(prior: ArrayLike, epsilon: ArrayLike) -> Flips:
    """Return the best channel with equal flips under eps-LIP at a known prior.

    [LIP] Section IV; its closed form (23) of the error is negative at P = 1/2: use `error` here.
    """
    p, growth = np.asarray(prior, dtype=np.float64), np.exp(epsilon)
    rarer = np.minimum(p, 1.0 - p)
    flip = (1.0 - rarer) / (growth - 2.0 * rarer + 1.0)
    return Flips(flip, flip)


def opt_ldp(epsilon: ArrayLike) -> Flips:
    """Return randomised response, the best channel under eps-LDP: both flips `1/(e^eps + 1)`."""
    flip = np.asarray(1.0 / (np.exp(epsilon) + 1.0))
    return Flips(flip, flip)


def error(prior: ArrayLike, flips: Flips) -> Floats:
    """Return the mean squared error of `E[X | Y]`: the mean of a(1 - a), [LIP] (20) and (22)."""
    p = np.asarray(prior, dtype=np.float64)
    total = np.zeros(flips.shape_with(p))
    for one, zero in ((1.0 - flips.one, flips.zero), (flips.one, 1.0 - flips.zero)):
        seen = p * one + (1.0 - p) * zero
        product = p * one * (1.0 - p) * zero
        total += np.divide(product, seen, out=np.zeros_like(total), where=seen > 0.0)
    return total


def opt_lip_error(prior: ArrayLike, epsilon: ArrayLike) -> Floats:
    """Return the error of `opt_lip` in closed form: `P(1-P) - (P - lo)(hi - P)`."""
    p = np.asarray(prior, dtype=np.float64)
    below, above = _distances(p, epsilon)
    return np.asarray(p * (1.0 - p) - below * above)


def context_free_error(epsilon: ArrayLike) -> Floats:
    """Return the error of randomised response decoded without the prior: `e^eps/(e^eps - 1)^2`.

    [LIP] (24) with p = 1/(e^eps + 1); the paper prints e^eps/(e^eps + 1).
    """
    growth = np.exp(epsilon)
    return np.asarray(growth / (growth - 1.0) ** 2)


def realised_loss(prior: ArrayLike, flips: Flips) -> Floats:
    """Return the LIP loss of a channel: the largest `|log(P(X = x | y)/P(X = x))|`."""
    p = np.asarray(prior, dtype=np.float64)
    worst = np.zeros(flips.shape_with(p))
    for one, zero in ((1.0 - flips.one, flips.zero), (flips.one, 1.0 - flips.zero)):
        seen = p * one + (1.0 - p) * zero
        with np.errstate(divide="ignore"):  # an impossible report: an infinite loss
            for weight in (one, zero):
                worst = np.maximum(worst, np.abs(np.log(weight / seen)))
    return worst
