"""The search for columns that would improve a design: the largest `v^T M v - lambda.v` over a cone.

A convex function is largest at an extreme ray. From many starts, each step moves to the column that
is best for the gradient at the last one, followed by the cone's own search, if it has one. This
finds local optima. If all extreme rays can be enumerated, the largest gain is known.
"""

from dataclasses import dataclass, replace

import numpy as np

from ldpstream.estimators.design.cone import Cone, gains, scaled
from ldpstream.estimators.design.master import Master
from ldpstream.mechanisms.base.arrays import Floats

_MOST_STEPS = 50
_ROUNDING = 1e-10
_DIGITS = 9
"""Columns that agree in this many digits are considered equal."""


@dataclass(frozen=True, eq=False)
class Found:
    """New columns `(n, k)` with positive gain, best first, and the largest gain found.

    `starts` is the number of columns from which a search began.
    """

    columns: Floats
    largest: float
    starts: int = 0


def search(
    cone: Cone,
    prior: Floats,
    master: Master,
    seeds: Floats,
    rng: np.random.Generator,
    *,
    effort: int,
    most: int,
) -> Found:
    """Return at most `most` columns of positive gain; `effort` multiplies the starts.

    The seeds are looked at again: one that left the design may be worth its place by now.
    """
    starts = directions(master, rng, effort * cone.climbs)
    climbed = _climb(cone, prior, master, starts)
    shares = master.weights / master.weights.sum()
    chosen = rng.choice(len(shares), effort * cone.perturbations, p=shares)
    columns = np.concatenate([climbed, cone.perturb(master.columns[chosen], prior, rng)])
    columns = cone.improve(columns, prior, master.form, master.multipliers)
    found = _best(np.concatenate([columns, seeds]), master, most)
    return replace(found, starts=len(starts) + len(chosen))


def search_all(
    cone: Cone, prior: Floats, master: Master, *, most: int, most_rays: int
) -> Found | None:
    """Do the same over all extreme rays, so that `largest` is exact; None if they are too many."""
    rays = cone.rays(most_rays)
    if rays is None:
        return None
    best = Found(np.zeros((0, prior.size)), -np.inf)
    for chunk in rays:
        columns = scaled(chunk, prior)
        gain = gains(columns, master.form, master.multipliers)
        top = columns[np.argsort(-gain)[:most]]
        best = _best(np.concatenate([best.columns, top]), master, most, best.largest)
    return best


def _climb(cone: Cone, prior: Floats, master: Master, starts: Floats) -> Floats:
    """Return local optima, one for each initial direction, `(n, k)`."""
    columns = cone.best(starts, prior)
    gain = gains(columns, master.form, master.multipliers)
    moving = np.arange(len(columns))
    for _ in range(_MOST_STEPS):
        gradient = 2.0 * columns[moving] @ master.form - master.multipliers
        ahead = cone.best(gradient, prior)
        reached = gains(ahead, master.form, master.multipliers)
        better = reached > gain[moving] + _ROUNDING * master.trace
        moving = moving[better]
        if not moving.size:
            break
        columns[moving], gain[moving] = ahead[better], reached[better]
    return columns


def directions(master: Master, rng: np.random.Generator, starts: int) -> Floats:
    """Return random directions, and noisy gradients at columns of the design.

    `v^T M v` is the largest squared projection of `M^(1/2) v`, so that random ones are drawn there.
    """
    size, random = len(master.multipliers), starts // 2
    values, vectors = np.linalg.eigh(master.form)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    # At columns of the design v^T M v equals lambda.v, which is f on average.
    drawn = 2.0 * np.sqrt(master.trace) * rng.normal(size=(random, size)) @ root.T
    shares = master.weights / master.weights.sum()
    chosen = rng.choice(len(shares), starts - random, p=shares)
    gradient = 2.0 * master.columns[chosen] @ master.form - master.multipliers
    spread = np.abs(gradient).mean(axis=1, keepdims=True) * rng.exponential(0.5, (len(gradient), 1))
    noise = rng.normal(size=gradient.shape) * spread
    return np.concatenate([drawn - master.multipliers, gradient + noise])


def _best(columns: Floats, master: Master, most: int, before: float = -np.inf) -> Found:
    """Return the different columns of positive gain, best first."""
    gain = gains(columns, master.form, master.multipliers)
    largest = max(before, float(gain.max())) if gain.size else before
    order = np.argsort(-gain)
    order = order[gain[order] > 0.0]
    _, first = np.unique(columns[order].round(_DIGITS), axis=0, return_index=True)
    return Found(columns[order[np.sort(first)]][:most], largest)
