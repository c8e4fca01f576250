"""Many seeded repetitions of a collection at once: their statistics, and the sums of queries.

Statistics of `matrix`, of `l1-bits` on a line and of `subset-selection` are drawn as sums of known
distributions (`tests/statistical/test_coverage.py` compares them with privatized reports). All sums
of a query are affine in the statistic: the estimators themselves give them for the empty statistic
and for each unit vector, and for all others they are products of matrices.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from tests.seeded import SeededEntropy

from benchmarks.accuracy.simulate import Case, channel_counts
from ldpstream.estimators.bounds.types import Sums
from ldpstream.mechanisms.base.arrays import map_arrays
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.noise import LaplaceRows
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.families.subset.subsets import Subsets
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic
from ldpstream.mechanisms.interface.symbols import SymbolMechanism

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MOST_ROWS = 64
"""For larger channels reports are drawn by the mechanism: a multinomial draw a row is slower."""
_BATCH = 1 << 19


def alphas_of(rows: LaplaceRows) -> Floats:
    """Return `a = e^(-1/s)` of each noisy row, float64 `(m,)`."""
    return np.array([threshold / WORD for threshold in rows.thresholds])[rows.kinds]


def draw(case: Case, repetitions: int, seed: int) -> tuple[Integers, Integers]:
    """Draw users and reports: counts of values `(repetitions, k)`, statistics `(.., size)`."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(case.n, case.shares, repetitions)
    return counts, draw_of(case.mechanism, counts, seed)


def draw_of(mechanism: Mechanism, counts: Integers, seed: int) -> Integers:
    """Draw the statistics of users' reports, `(r, size)`, given their counts `(r, k)`."""
    # With one seed for both, users and their noise would depend on each other.
    rng = np.random.default_rng([seed, 1])
    if isinstance(mechanism, SymbolMechanism) and mechanism.size <= _MOST_ROWS:
        return channel_counts(mechanism, counts, rng)
    if isinstance(mechanism, Matrix):
        return laplace_sums(mechanism, counts, rng)
    if isinstance(mechanism, L1Bits) and len(mechanism.shape) == 1:
        return sign_sums(mechanism, counts, rng)
    if isinstance(mechanism, SubsetSelection) and int(mechanism.blocks.sizes.max()) <= _MOST_ROWS:
        return subset_counts(mechanism, counts, rng)
    return privatized(mechanism, counts, seed)


def privatized(mechanism: Mechanism, counts: Integers, seed: int) -> Integers:
    """Return statistics of values privatized by the mechanism, several repetitions at a time."""
    entropy, statistics = SeededEntropy(seed), []
    step = max(1, _BATCH // max(1, int(counts[0].sum())))
    for start in range(0, len(counts), step):
        rows = counts[start : start + step]
        values = np.tile(np.arange(mechanism.size), len(rows))
        reports = mechanism.privatize(np.repeat(values, rows.ravel()), entropy=entropy)
        for part in np.split(reports, np.cumsum(rows.sum(axis=1))[:-1]):
            statistic = mechanism.empty()
            mechanism.accumulate(statistic, part)
            statistics.append(statistic)
    return np.stack(statistics)


def laplace_sums(mechanism: Matrix, counts: Integers, rng: np.random.Generator) -> Integers:
    """Draw sums of rows: n discrete Laplace draws sum to a difference of two negative binomials.

    Clamping is left out: it has a probability below 2^-64.
    """
    rows, group = mechanism.rows, mechanism.decoder.groups()
    of_value = np.zeros(mechanism.size, dtype=np.int64) if group is None else group
    parts = []
    for number in range(int(of_value.max()) + 1):
        inside = of_value == number
        users = counts[:, inside].sum(axis=1)
        sums = counts[:, inside] @ rows.entries[:, inside].astype(np.int64).T
        shape, stay = np.maximum(users, 1)[:, None], 1.0 - alphas_of(rows)
        size = (len(counts), rows.count)
        noise = rng.negative_binomial(shape, stay, size) - rng.negative_binomial(shape, stay, size)
        parts += [sums + np.where(users[:, None] > 0, noise, 0), users[:, None]]
    return np.concatenate(parts, axis=1)


def sign_sums(mechanism: L1Bits, counts: Integers, rng: np.random.Generator) -> Integers:
    """Draw sums of signs on a line: entry j is +1 for values up to j; all are kept alike."""
    up = np.cumsum(counts, axis=1)
    n, keep = up[:, -1:], mechanism.threshold / WORD
    ones = rng.binomial(up, keep) + rng.binomial(n - up, 1.0 - keep)
    ones[:, -1] = n[:, 0]  # the last entry is exact
    signs: Integers = 2 * ones - n
    return signs


def subset_counts(
    mechanism: SubsetSelection, counts: Integers, rng: np.random.Generator
) -> Integers:
    """Draw how many reports hold each value, and how many are of each block."""
    blocks, parts = mechanism.blocks, []
    held = np.empty_like(counts)
    for block, kind in enumerate(mechanism.layout.kinds.tolist()):
        inside = blocks.of_value == block
        held[:, inside] = _held(mechanism.subsets[kind], counts[:, inside], rng)
        parts.append(counts[:, inside].sum(axis=1))
    return np.concatenate([held, np.stack(parts, axis=1)], axis=1)


def _held(subsets: Subsets, counts: Integers, rng: np.random.Generator) -> Integers:
    """Draw the counts for one block, `(r, size)`, one other value after another.

    A report that needs m of the M remaining values takes the next one with probability m/M.
    """
    own = rng.binomial(counts, subsets.threshold / WORD)
    held = own.copy()
    left = np.zeros((*counts.shape, subsets.chosen + 1), dtype=np.int64)
    left[..., subsets.chosen] = counts - own
    left[..., subsets.chosen - 1] += own
    for step in range(subsets.size - 1):
        values = subsets.size - 1 - step
        taken = rng.binomial(left, np.minimum(np.arange(subsets.chosen + 1) / values, 1.0))
        left -= taken
        left[..., :-1] += taken[..., 1:]
        # This step's other value stands before the device's own value, or after it.
        of_own = taken.sum(axis=-1)
        held[:, step] += of_own[:, step + 1 :].sum(axis=1)
        held[:, step + 1] += of_own[:, : step + 1].sum(axis=1)
    return held


@dataclass(frozen=True)
class AffineSums:
    """Sums of q queries for any statistic: `zero` for no report, and the slope of each entry.

    The arrays of `slopes` are float64 `(statistic_size, q)`.
    """

    zero: Sums
    slopes: Sums

    @classmethod
    def of(cls, mechanism: Mechanism, sums: Callable[[Statistic], Sums]) -> Self:
        """Find the slopes of an estimator's sums."""
        zero = sums(mechanism.empty())
        units = [sums(unit) for unit in np.eye(mechanism.statistic_size, dtype=np.int64)]
        return cls(zero, map_arrays(lambda at, *of: np.stack(of) - at, zero, *units))

    def at(self, statistics: Integers) -> Sums:
        """Return the sums of many statistics, `(r, size)`: arrays of shape `(r, q)` or `(q,)`."""
        rows = statistics.astype(np.float64)

        def at(constant: Floats, slope: Floats) -> Floats:
            return np.asarray(constant + rows @ slope) if slope.any() else constant

        return map_arrays(at, self.zero, self.slopes)
