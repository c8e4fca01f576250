"""A lower confidence bound of what reports really lose, from reports of known values alone.

For each ordered pair of values the set of outputs that tells them apart best is chosen from one
half of the draws, and its two probabilities are bounded from the other half (Clopper and Pearson
1934), all pairs together by Bonferroni's inequality: whatever the client does with its randomness,
as long as it draws independently, a bound above the budget is a violation.
"""

import numpy as np
from scipy.special import betaincinv, ndtri

from ldpstream.mechanisms.base.arrays import Floats, Integers


def realised_losses(first: Integers, second: Integers, *, significance: float) -> Floats:
    """Return lower bounds of the losses of all ordered pairs, float64 `(k, k)`, 0 on the diagonal.

    `first` and `second` count how often each value gave each output, int64 `(k, outputs)`, in draws
    of their own. All bounds together are wrong with a probability of at most `significance`.

    Raises:
        ValueError: where a value has no draws, or the shapes differ.
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
                outputs = _telling(first[value], first[other], z)
                bounds[value, other] = _loss_below(second[value], second[other], outputs, level)
    return bounds


def _telling(counts: Integers, others: Integers, z: float) -> Integers:
    """Return the outputs whose odds tell a value from another best, by its own draws."""
    order = np.argsort(-(counts + 0.5) / (others + 0.5), kind="stable")
    taken, against = np.cumsum(counts[order]) + 0.5, np.cumsum(others[order]) + 0.5
    n, m = counts.sum() + 1.0, others.sum() + 1.0
    error = np.sqrt(np.maximum(1 / taken - 1 / n, 0.0) + np.maximum(1 / against - 1 / m, 0.0))
    sure = np.log(taken / n) - np.log(against / m) - z * error
    return order[: int(sure.argmax()) + 1]


def _loss_below(counts: Integers, others: Integers, outputs: Integers, level: float) -> float:
    n, m = int(counts.sum()), int(others.sum())
    a, b = int(counts[outputs].sum()), int(others[outputs].sum())
    if a == 0:
        return 0.0
    low = float(betaincinv(a, n - a + 1, level))
    high = 1.0 if b == m else float(betaincinv(b + 1, m - b, 1.0 - level))
    return max(0.0, float(np.log(low / high)))
