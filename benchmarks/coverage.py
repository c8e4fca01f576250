"""Do the bounds cover the truth as often as they say? `python -m benchmarks.coverage`.

Seeded repetitions draw users and their reports and count how often the truth lies inside the
bounds: the realised shares for respondents, the shares that they were drawn from for the
population. Two tables: pointwise bounds of k = 40 values (`binary`: 2), and the 20 largest of 1,000
values, chosen by looking, covered all together. Exit status 1 if a row misses its target.
"""

import argparse
import math
import sys
import zlib
from collections.abc import Iterator
from itertools import product
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulate import (
    Case,
    draw_by_privatizing,
    draw_from_channel,
    uniform,
    zipf,
)
from ldpstream.estimators.estimate import estimate_values
from ldpstream.estimators.options import Estimand, Method, OptionKeywords
from ldpstream.estimators.predict import predicted_value_variances
from ldpstream.estimators.top import estimate_top
from ldpstream.mechanisms.binary import Binary
from ldpstream.mechanisms.block_hadamard import BlockHadamard
from ldpstream.mechanisms.blocks import Blocks
from ldpstream.mechanisms.high_low import HighLow
from ldpstream.mechanisms.l1_geometric import L1Geometric
from ldpstream.mechanisms.mechanism import Mechanism
from ldpstream.mechanisms.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.randomized_response import RandomizedResponse

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

EPSILONS = (0.5, 1.0, 3.0)
NUMBERS = (200, 5000)
DATA = {"zipf": zipf, "uniform": uniform}
METHODS: tuple[Method, ...] = ("normal", "bernstein")
NORMAL_TARGET = (0.93, 0.97)
LEAST_COVERAGE = 0.95
LEAST_COUNT = 100
TOP = 20


def small_mechanisms(epsilon: float) -> dict[str, Mechanism]:
    """Return the mechanisms of the pointwise table, k = 40 (`binary`: 2)."""
    unequal = np.repeat([0, 1, 2, 3], [1, 2, 7, 30])
    return {
        "binary": Binary(epsilon, epsilon),
        "binary, twice the second": Binary(epsilon, 2 * epsilon),
        "binary, infinite first": Binary(math.inf, epsilon),
        "high-low, 10 sensitive": HighLow(epsilon, 40, frozenset(range(0, 40, 4))),
        "block-hadamard, 1 block": BlockHadamard(epsilon, Blocks.one(40)),
        "block-hadamard, 5 of 8": BlockHadamard(epsilon, Blocks(np.arange(40) // 8)),
        "block-hadamard, 1-2-7-30": BlockHadamard(epsilon, Blocks(unequal)),
        "randomized-response, 5 of 8": RandomizedResponse(epsilon, Blocks(np.arange(40) // 8)),
        "projective, 1-2-7-30": ProjectiveGeometry(epsilon, Blocks(unequal)),
        "l1-geometric, 40": L1Geometric(epsilon, (40,)),
        "l1-geometric, 5 x 8": L1Geometric(epsilon, (5, 8)),
    }


def large_mechanisms(epsilon: float) -> dict[str, Mechanism]:
    """Return the mechanisms of the table of top lists, k = 1,000."""
    return {
        "high-low, 250 sensitive": HighLow(epsilon, 1000, frozenset(range(0, 1000, 4))),
        "block-hadamard, 1 block": BlockHadamard(epsilon, Blocks.one(1000)),
        "block-hadamard, 40 of 25": BlockHadamard(epsilon, Blocks(np.arange(1000) // 25)),
        "l1-geometric, 1000": L1Geometric(epsilon, (1000,)),
    }


def cases(mechanisms: dict[str, Mechanism], epsilon: float) -> Iterator[Case]:
    """Yield the cases of some mechanisms: both kinds of data, both numbers of respondents."""
    for (name, mechanism), (data, shares), n in product(mechanisms.items(), DATA.items(), NUMBERS):
        yield Case(f"{name:24} {epsilon:3.1f}", mechanism, data, shares(mechanism.size), n)


def truths(case: Case, counts: Integers, estimand: Estimand) -> Floats:
    """Return what an estimate of a repetition is about, float64 `(k,)`."""
    return counts / case.n if estimand == "respondents" else case.shares


def pointwise(
    case: Case, counts: Integers, statistics: Integers, estimand: Estimand, method: Method
) -> Floats:
    """Return the share of repetitions whose 95% bounds cover each value's truth: `(k,)`."""
    covered = np.zeros(case.mechanism.size)
    for row, statistic in zip(counts, statistics, strict=True):
        options: OptionKeywords = {"estimand": estimand, "method": method}
        estimate = estimate_values(case.mechanism, statistic, case.n, **options)
        covered += inside(estimate.low, truths(case, row, estimand), estimate.high)
    return covered / len(counts)


def top_together(
    case: Case, repetitions: int, seed: int, estimand: Estimand, method: Method
) -> float:
    """Return the share of repetitions in which all of the top list are covered."""
    covered = 0
    for counts, statistic in draw_by_privatizing(case, repetitions, seed):
        listed, estimate = estimate_top(
            case.mechanism, statistic, case.n, TOP, estimand=estimand, method=method
        )
        truth = truths(case, counts, estimand)[listed]
        covered += bool(inside(estimate.low, truth, estimate.high).all())
    return covered / repetitions


def inside(low: Floats, truth: Floats, high: Floats) -> NDArray[np.bool_]:
    """Return where the truth is inside; bounds that are exact may differ by rounding."""
    return (low <= truth + 1e-12) & (truth <= high + 1e-12)


def judged(case: Case, estimand: Estimand, method: Method) -> NDArray[np.bool_]:
    """Return the values that the target is about.

    `normal` is asymptotic: values with an expected count of at least 100 and a positive variance.
    """
    if method == "bernstein":
        return np.ones(case.mechanism.size, dtype=np.bool_)
    variances = predicted_value_variances(
        case.mechanism, case.n, range(case.mechanism.size), shares=case.shares, estimand=estimand
    )
    return (case.n * case.shares >= LEAST_COUNT - 1e-9) & (variances > 0.0)


def seed_of(case: Case) -> int:
    """Return a seed of the case's own, the same in every run."""
    return zlib.crc32(f"{case.name}/{case.data}/{case.n}".encode())


def print_pointwise(repetitions: int) -> bool:
    """Print the table of pointwise coverage; return whether every row meets its target."""
    print(f"Pointwise 95% bounds, {repetitions} repetitions: least, mean, largest over the values")
    print(f"{'mechanism':24} eps     n data    estimand    method    values  coverage")
    met = True
    for epsilon in EPSILONS:
        for case in cases(small_mechanisms(epsilon), epsilon):
            counts, statistics = draw_from_channel(case, repetitions, seed_of(case))
            for estimand, method in product(get_args(Estimand), METHODS):
                chosen = judged(case, estimand, method)
                if not chosen.any():
                    continue
                found = pointwise(case, counts, statistics, estimand, method)[chosen]
                least, largest = NORMAL_TARGET if method == "normal" else (LEAST_COVERAGE, 1.0)
                good = bool((found >= least).all() and (found <= largest).all())
                met &= good
                print(
                    f"{case.name} {case.n:5} {case.data:7} {estimand:11} {method:9} "
                    f"{chosen.sum():6}  {found.min():.4f} {found.mean():.4f} {found.max():.4f}"
                    f"{'' if good else '  MISSED'}"
                )
    return met


def print_top(repetitions: int) -> bool:
    """Print the table of top lists; return whether every row meets its target."""
    print(f"\nAll of the top {TOP} of 1,000 covered together, 95%, {repetitions} repetitions")
    print(f"{'mechanism':24} eps     n data    estimand    method     coverage")
    met = True
    for epsilon in EPSILONS:
        for case in cases(large_mechanisms(epsilon), epsilon):
            for estimand, method in product(get_args(Estimand), METHODS):
                found = top_together(case, repetitions, seed_of(case), estimand, method)
                good = found >= LEAST_COVERAGE
                met &= good
                print(
                    f"{case.name} {case.n:5} {case.data:7} {estimand:11} {method:9}   "
                    f"{found:.4f}{'' if good else '  MISSED'}"
                )
    return met


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=2000)
    repetitions = parser.parse_args().repetitions
    met = print_pointwise(repetitions) & print_top(repetitions)
    print("\nall targets met" if met else "\nsome targets missed")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
