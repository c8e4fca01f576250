"""Empirical lower bounds on the privacy loss of a client, from its reports of known values.

For each ordered pair of values, one half of the draws selects the set of outputs that distinguishes
them best, and the other half bounds its two probabilities (Clopper and Pearson 1934), for all pairs
together by Bonferroni's inequality. As long as the client draws independently, a bound above the
budget is a violation, however it uses its randomness.
"""

import numpy as np
from scipy.special import betaincinv, ndtri

from ldpstream.mechanisms.base.arrays import Floats, Integers


def realised_losses(first: Integers, second: Integers, *, significance: float) -> Floats:
    """Return lower bounds on the losses of all ordered pairs, float64 `(k, k)`, 0 on the diagonal.

    `first` and `second`, int64 `(k, outputs)`, count how often each value gave each output, in two
    independent sets of draws. The probability that any bound is wrong is at most `significance`.

    Raises:
        ValueError: if a value has no draws, or the shapes differ.
    """
    if first.shape != second.shape or not (first.sum(axis=1).all() and second.sum(axis=1).all()):
        raise ValueError("expected draws of every value in both halves, and the same outputs")
    size = first.shape[0]
    pairs = max(1, size * (size - 1))
    level = significance / (2 * pairs)
    z = float(-ndtri(level))
    bounds = np.zeros((size, size))
    for value in range(size):
        for other in range(size):
            if value != other:
                outputs = _distinguishing(first[value], first[other], z)
                bounds[value, other] = _loss_below(second[value], second[other], outputs, level)
    return bounds


def _distinguishing(counts: Integers, reference: Integers, z: float) -> Integers:
    """Return the outputs that distinguish a value from another best, judged by these draws."""
    ranking = np.argsort(-(counts + 0.5) / (reference + 0.5), kind="stable")
    total, against = np.cumsum(counts[ranking]) + 0.5, np.cumsum(reference[ranking]) + 0.5
    n, m = counts.sum() + 1.0, reference.sum() + 1.0
    error = np.sqrt(np.maximum(1 / total - 1 / n, 0.0) + np.maximum(1 / against - 1 / m, 0.0))
    sure = np.log(total / n) - np.log(against / m) - z * error
    return ranking[: int(sure.argmax()) + 1]


def _loss_below(counts: Integers, reference: Integers, outputs: Integers, level: float) -> float:
    n, m = int(counts.sum()), int(reference.sum())
    a, b = int(counts[outputs].sum()), int(reference[outputs].sum())
    if a == 0:
        return 0.0
    low = float(betaincinv(a, n - a + 1, level))
    high = 1.0 if b == m else float(betaincinv(b + 1, m - b, 1.0 - level))
    return max(0.0, float(np.log(low / high)))
