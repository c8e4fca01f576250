"""The probability that bounds ever fail, over all paths of independent bits."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Holds = Callable[[int, NDArray[np.int64]], NDArray[np.bool_]]


def failing(means: Sequence[float], holds: Holds) -> float:
    """The exact probability that `holds(n, ones)` fails at some n: bits with these means.

    `ones` are all numbers of ones that n bits may have.
    """
    alive = np.array([1.0])
    for n, mean in enumerate(means, 1):
        alive = np.append(alive * (1 - mean), 0.0) + np.append(0.0, alive * mean)
        alive *= holds(n, np.arange(n + 1))
    return 1.0 - float(alive.sum())
