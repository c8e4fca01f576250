"""Channels, statistics, variances and failures by their definitions, and scripted entropy."""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic
from tests.seeded import SeededEntropy

Vector = Sequence[Fraction]
Rows = list[list[Fraction]]
Bounds = list[tuple[int, int]]
IMPOSSIBLE_EPSILONS = (0, -1.0, math.inf, math.nan, True, "1", 10**400)


def boxes(shape: tuple[int, ...]) -> list[Bounds]:
    """Return the bounds, both included, of every box of a domain."""
    axes = [[(a, b) for a in range(m) for b in range(a, m)] for m in shape]
    return [list(bounds) for bounds in product(*axes)]


def rows_of(mechanism: Mechanism) -> Rows:
    """Return the probability of every report, for each value."""
    channel = mechanism.channel()
    return [[row.get(y, Fraction(0)) for y in range(channel.outputs)] for row in channel.rows]


def matrix_of(mechanism: Mechanism) -> np.ndarray:
    """Return the channel as floats, a row for each value."""
    return np.array(rows_of(mechanism), dtype=np.float64)


def times(left: Vector, right: Vector) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))


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


class Scripted:
    """Hands out these words in order, modulo 2^64, however many are asked for at once."""

    def __init__(self, *batches: Sequence[int]) -> None:
        self.left = [word % WORD for batch in batches for word in batch]

    def words(self, n: int) -> NDArray[np.uint64]:
        taken, self.left = self.left[:n], self.left[n:]
        assert len(taken) == n
        return np.array(taken, dtype=np.uint64)


def words_in(digits: str) -> list[int]:
    """Return the words of hexadecimal digits, 16 each."""
    return [int(digits[i : i + 16], 16) for i in range(0, len(digits), 16)]


Holds = Callable[[int, NDArray[np.int64]], NDArray[np.bool_]]


def failing(means: Sequence[float], holds: Holds) -> float:
    """Return the exact probability that `holds(n, ones)` fails at some n, for bits of these means.

    `ones` are all numbers of ones that n bits may have.
    """
    alive = np.array([1.0])
    for n, mean in enumerate(means, 1):
        alive = np.append(alive * (1 - mean), 0.0) + np.append(0.0, alive * mean)
        alive *= holds(n, np.arange(n + 1))
    return 1.0 - float(alive.sum())


def predicted_value_variances(
    mechanism: Mechanism, values: Iterable[int], **options: Any
) -> Floats:
    """Return the predicted variances of single values, each as a set of its own."""
    sets = [np.array([value]) for value in values]
    return predicted_set_variances(mechanism, sets, **options)
