"""What a report tells of a value whose prior is known: mutual information.

For values drawn from a prior pi, `P(y) = sum_x pi_x Q[x, y]`. The mutual information is
`I = sum pi_x Q[x, y] log(Q[x, y] / P(y))`, and the LIP loss the largest `|log(Q[x, y] / P(y))|`
([LIP] Definition 3). A channel with LIP loss eps has `I <= eps tanh(eps/2)`: the ratio
`z = Q[x, y] / P(y)` has the mean 1 (over x and y, weighted by `pi_x P(y)`) and lies in
`[e^-eps, e^eps]`; `z log z` is convex, so that its mean is largest if z is at the two ends, which
then have the probabilities `1/(e^eps + 1)` (for `e^eps`) and `e^eps/(e^eps + 1)`. [LIP]
Proposition 1 has `I <= eps`, which is never attained. eps-LDP implies eps-LIP and thus the same.
"""

import math

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats


def mutual_information(channel: Floats, prior: Floats) -> float:
    """Return it in nats, for a channel `(k, outputs)` and a prior above 0, float64 `(k,)`.

    >>> flip = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> round(mutual_information(flip, np.array([0.5, 0.5])) / math.log(2), 4)  # in bits
    0.1887
    """
    chances = prior @ channel
    reached = chances > 0.0
    ratio = channel[:, reached] / chances[reached]
    logs = np.log(ratio, out=np.zeros_like(ratio), where=ratio > 0.0)
    return max(float(prior @ (channel[:, reached] * logs).sum(axis=1)), 0.0)


def most_information(epsilon: float) -> float:
    """Return the most mutual information of eps-LIP, and so of eps-LDP, in nats.

    >>> round(most_information(1.0), 6)
    0.462117
    """
    return epsilon * math.tanh(epsilon / 2.0)
