"""Statistics of reports."""

import numpy as np

from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic
from tests.seeded import SeededEntropy


def accumulated(mechanism: Mechanism, reports: np.ndarray) -> Statistic:
    statistic = mechanism.empty()
    mechanism.accumulate(statistic, reports)
    return statistic


def counted(mechanism: Mechanism, values: np.ndarray, seed: int = 1) -> Statistic:
    """Return the statistic of one report of each value."""
    return accumulated(mechanism, mechanism.privatize(values, entropy=SeededEntropy(seed)))


def some_statistic(mechanism: Mechanism, n: int, seed: int = 1) -> tuple[np.ndarray, Statistic]:
    """Return values drawn uniformly and the statistic of their reports."""
    values = np.random.default_rng(seed).integers(0, mechanism.size, n)
    return values, counted(mechanism, values, seed)
