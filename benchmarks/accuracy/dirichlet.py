"""The Dirichlet-mixture confidence sequence for multinomial counts, for comparison.

Lindon, Malek 2022: with a Dirichlet prior the ratio of the mixture's likelihood to that of the true
probabilities is a martingale of mean 1. So with probability at most `level` the ratio at the truth
ever exceeds `1/level`, and the probabilities whose ratio stays below are a confidence sequence.
Bounds are the extremes of the mean of a report's decoder over these probabilities.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_STEPS = 60


def dirichlet_bounds(
    counts: Integers, atoms: Floats, level: float, prior: float = 0.5
) -> tuple[Floats, Floats]:
    """Return bounds of the mean of `atoms`, two of `(windows,)`; counts int64 `(windows, atoms)`.

    `prior` is the Dirichlet parameter of each atom.
    """
    n, size = counts.sum(axis=1), atoms.size
    mixture = gammaln(counts + prior).sum(axis=1) - size * math.lgamma(prior)
    mixture += math.lgamma(size * prior) - gammaln(n + size * prior)
    least = mixture + math.log(level)
    return -_highest(counts, -atoms, least), _highest(counts, atoms, least)


def _highest(counts: Integers, atoms: Floats, least: Floats) -> Floats:
    """Return the largest mean of probabilities with a log-likelihood of at least `least`.

    The maximiser is `N_i/(nu - a_i)` up to a factor, nu above all atoms; where no report had the
    largest atom, that atom may have a probability besides.
    """
    top, length = atoms.max(), np.ptp(atoms)
    low = np.full(len(counts), math.log(1e-12 * length))
    high = np.full(len(counts), math.log(1e12 * length))
    mean, first = _tilted(counts, atoms, top + np.exp(low))
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        likely = _tilted(counts, atoms, top + np.exp(middle))[1] >= least
        low, high = np.where(likely, low, middle), np.where(likely, middle, high)
    found = _tilted(counts, atoms, top + np.exp(high))[0]
    part = -np.expm1(np.minimum(least - first, 0.0) / counts.sum(axis=1))
    return np.where(first > least, (1.0 - part) * mean + part * top, found)


def _tilted(counts: Integers, atoms: Floats, nu: Floats) -> tuple[Floats, Floats]:
    weights = counts / (nu[:, None] - atoms)
    probabilities = weights / weights.sum(axis=1, keepdims=True)
    logs = np.log(np.where(counts > 0, probabilities, 1.0))
    return probabilities @ atoms, np.sum(counts * logs, axis=1, dtype=np.float64)
