"""Seeded repetitions of a collection: users, their reports, the statistics."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv
from tests.seeded import SeededEntropy

from ldpstream.mechanisms.interface.mechanism import Mechanism

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """One setting of a simulation: `shares` float64 `(k,)` are the population's."""

    name: str
    mechanism: Mechanism
    data: str
    shares: Floats
    n: int


def zipf(size: int, exponent: float = 1.0) -> Floats:
    """Return `p(i) ~ (i + 1)^-exponent`, float64 `(size,)`."""
    weights: Floats = np.power(np.arange(1.0, size + 1.0), -exponent)
    shares: Floats = weights / weights.sum()
    return shares


def uniform(size: int) -> Floats:
    """Return equal shares."""
    return np.full(size, 1.0 / size)


def channel_counts(mechanism: Mechanism, counts: Integers, rng: np.random.Generator) -> Integers:
    """Draw the statistics of users' reports, `(r, outputs)`, given their counts `(r, k)`.

    Reports are multinomial draws from the rows of the exact channel, which has to be small.
    """
    channel = mechanism.channel()
    statistics = np.zeros((len(counts), channel.outputs), dtype=np.int64)
    for value, row in enumerate(channel.rows):
        outputs = np.fromiter(row, dtype=np.int64)
        probabilities = np.array([float(p) for p in row.values()])
        statistics[:, outputs] += rng.multinomial(counts[:, value], probabilities)
    return statistics


def draw_by_privatizing(
    case: Case, repetitions: int, seed: int
) -> Iterator[tuple[Integers, Integers]]:
    """Draw users and privatize their values, one repetition at a time: `(k,)` and `(outputs,)`."""
    # With one seed for both, users and their noise would depend on each other.
    rng, entropy = np.random.default_rng([seed, 1]), SeededEntropy(seed)
    for _ in range(repetitions):
        counts = rng.multinomial(case.n, case.shares)
        values = np.repeat(np.arange(case.mechanism.size), counts)
        statistic = case.mechanism.empty()
        case.mechanism.accumulate(statistic, case.mechanism.privatize(values, entropy=entropy))
        yield counts, statistic


def upper_limit(covered: int, repetitions: int) -> float:
    """Return the 99.99% upper limit of a coverage, by Clopper and Pearson."""
    if covered == repetitions:
        return 1.0
    return float(betaincinv(covered + 1, repetitions - covered, 0.9999))
