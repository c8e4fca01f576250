"""Errors of a sum under localized information privacy, for `benchmarks.papers.lip_figures`.

A curve is `sqrt(E/N)`, where E is the mean squared error of the estimated sum of N users' bits,
computed exactly from the two possible reports of each user, without simulation.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers import lip_theory
from benchmarks.papers.lip_theory import Flips
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.lip.domain import Prior
from ldpstream.mechanisms.families.lip.lip import Lip

Floats = NDArray[np.float64]
LEVELS = 64
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Users:
    """N users: the assumed priors, and the probabilities that they hold a 1, float64 `(N,)`.

    The probabilities equal the priors if these are right, and are the bits, 0 or 1, in data.
    """

    priors: Floats
    chances: Floats

    @classmethod
    def right(cls, priors: Floats) -> "Users":
        """Return users whose priors are right."""
        return cls(priors, priors)


@dataclass(frozen=True)
class Curve:
    """One point for each epsilon, float64 `(epsilons,)`.

    `root` is `sqrt(E/N)`, `broken` the share of users, 0 to 1, whose prior makes the channel
    violate the bound that it is meant to keep, `loss` the largest that is realised.
    """

    name: str
    root: Floats
    broken: Floats
    loss: Floats


def root_error(users: Users, flips: Flips, assumed: Floats | None = None) -> float:
    """Return `sqrt(E/N)` of the sum of `E[X | Y]`, decoded with the assumed priors.

    By default these are the priors of the users' channels. Biases add up, and so do variances.
    """
    prior = users.priors if assumed is None else assumed
    mean, square = np.zeros(prior.size), np.zeros(prior.size)
    for one, zero in ((1.0 - flips.one, flips.zero), (flips.one, 1.0 - flips.zero)):
        weight = prior * one + (1.0 - prior) * zero
        decoded = np.divide(prior * one, weight, out=np.zeros_like(prior), where=weight > 0.0)
        for bit, chance, seen in ((1, users.chances, one), (0, 1.0 - users.chances, zero)):
            mean += chance * seen * (decoded - bit)
            square += chance * seen * (decoded - bit) ** 2
    return float(np.sqrt((mean.sum() ** 2 + (square - mean**2).sum()) / prior.size))


def curve(
    name: str,
    users: Users,
    epsilons: Floats,
    channel: Callable[[Floats, float], Flips],
    *,
    part: float = 1.0,
) -> Curve:
    """Return the curve of a family of channels, each made for `part * epsilon`-LIP."""
    root, broken, loss = np.empty((3, epsilons.size))
    for place, epsilon in enumerate(epsilons):
        flips = channel(users.priors, part * epsilon)
        realised = lip_theory.realised_loss(users.priors, flips)
        root[place] = root_error(users, flips)
        broken[place] = np.mean(realised > part * epsilon + TOLERANCE)
        loss[place] = realised.max()
    return Curve(name, root, broken, loss)


def optimum(priors: Floats, epsilon: float) -> Flips:
    """Return the correct optimum; at epsilon 0 a channel that carries no information."""
    if epsilon == 0.0:
        half = np.full(priors.shape, 0.5)
        return Flips(half, half)
    return lip_theory.opt_lip(priors, epsilon)


def equal_flips(priors: Floats, epsilon: float) -> Flips:
    """Return the best channel with equal flips; at epsilon 0 it carries no information."""
    return optimum(priors, 0.0) if epsilon == 0.0 else lip_theory.symmetric_lip(priors, epsilon)


def randomised_response(priors: Floats, epsilon: float) -> Flips:
    """Return the LDP optimum for each user."""
    flip = np.full(priors.shape, float(lip_theory.opt_ldp(epsilon).zero))
    return Flips(flip, flip)


def levels_curve(users: Users, epsilons: Floats) -> Curve:
    """Return the curve that `lip` realises with 64 levels, decoded as in documents."""
    root, loss = np.empty((2, epsilons.size))
    for place, epsilon in enumerate(epsilons):
        if epsilon == 0.0:
            root[place], loss[place] = root_error(users, optimum(users.priors, 0.0)), 0.0
            continue
        mechanism = Lip(Prior(levels=LEVELS), (float(epsilon),))
        level = np.searchsorted(mechanism.prior.edges, users.priors, side="right") - 1
        q, r = np.array(mechanism.thresholds, dtype=np.float64)[level].T / WORD
        flips = Flips(q, 1.0 - r)
        assumed = np.array(mechanism.prior.representatives)[level]
        root[place] = root_error(users, flips, assumed)
        loss[place] = lip_theory.realised_loss(users.priors, flips).max()
    return Curve(f"eps-LIP, {LEVELS} levels", root, np.zeros(epsilons.size), loss)


def context_free_curve(epsilons: Floats) -> Curve:
    """Return randomised response decoded without priors; infinite at epsilon 0."""
    with np.errstate(divide="ignore"):
        root = np.sqrt(lip_theory.context_free_error(epsilons))
    return Curve("eps-LDP, context-free", root, np.zeros(epsilons.size), epsilons)
