"""Do bounds by likelihood hold, and how wide are they? `python -m benchmarks.accuracy.profiles`.

Start times of applications in bins of 50 ms, point masses, pairs, spikes and plateaus, through
`l1-geometric`. For each cell 200 seeded windows are drawn. The table says how often the bounds of
the median, the 95th percentile and three shares hold the truth, of the population and of the
respondents, and how wide they are compared with those of `padded`: for quantiles in bins, and as a
multiple of 4 root mean square errors of the quantile (at least one bin).

The p-quantile is any value x whose share of values up to x is at least p, and before x at most p.
Exit status 1 where a coverage is below 0.94 by its 99.99% upper limit.
"""

import argparse
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from benchmarks.accuracy.repeated import draw
from benchmarks.accuracy.simulate import Case, upper_limit
from ldpstream.estimators.bounds.options import Method
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.estimate import estimate_sets
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.quantiles.quantiles import estimate_quantiles, positions
from ldpstream.mechanisms.families.l1.geometric import L1Geometric

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BIN_SECONDS: Final = 0.05
PROBABILITIES: Final = (0.5, 0.95)
LEAST: Final = 0.94


def start_times(size: int) -> Floats:
    """Return shares of start times: seven warm starts for three cold ones; the last bin is open."""
    logs = np.log(BIN_SECONDS * np.arange(1, size))
    warm, cold = (ndtr((logs - np.log(middle)) / s) for middle, s in ((0.45, 0.35), (1.2, 0.4)))
    return np.diff(0.7 * warm + 0.3 * cold, prepend=0.0, append=1.0)


def atoms(*places: float) -> Callable[[int], Floats]:
    """Return equal shares of single values, at these fractions of the domain."""

    def shares(size: int) -> Floats:
        at = (np.array(places) * size).astype(np.int64)
        return np.bincount(at, minlength=size) / len(places)

    return shares


def plateau(size: int) -> Floats:
    """Return shares with one half in the first quarter and the other in the last."""
    shares = np.zeros(size)
    shares[: size // 4] = shares[-(size // 4) :] = 0.5 / (size // 4)
    return shares


METHODS: Final[tuple[Method, Method]] = ("profile", "padded")
DATA: Final[dict[str, Callable[[int], Floats]]] = {
    "start times": start_times,
    "point": atoms(1 / 3),
    "pair": atoms(0.3, 0.32),
    "spikes": atoms(0.1, 0.2, 0.5, 0.9),
    "plateau": plateau,
}


@dataclass(frozen=True)
class Window:
    """One window's bounds of all queries, `(2, q)`: by the method asked for, and by `padded`.

    `middle` are the estimated quantiles, `(q,)`; `profiled` counts the shares with likelihood
    bounds.
    """

    quantiles: Floats
    plain_quantiles: Floats
    middle: Floats
    shares: Floats
    plain: Floats
    profiled: int


def windows(case: Case, repetitions: int, sets: list[Integers]) -> tuple[Integers, list[Window]]:
    """Return the users of each window, int64 `(repetitions, k)`, and its bounds."""
    seed = zlib.crc32(f"{case.name}/{case.n}".encode())
    mechanism = case.mechanism
    prefixes = Prefixes.of(mechanism)
    counts, statistics = draw(case, repetitions, seed)
    found = []
    for row in statistics:
        statistic = np.asarray(row, dtype=np.int64)
        given = (mechanism, statistic, case.n)
        asked, usual = (
            estimate_quantiles(
                *given, PROBABILITIES, prefixes=prefixes, method=one, estimand="population"
            )
            for one in METHODS
        )
        by, plain = (
            estimate_sets(*given, sets, method=one, estimand="population") for one in METHODS
        )
        found.append(
            Window(
                np.stack([asked.low, asked.high]),
                np.stack([usual.low, usual.high]),
                asked.value,
                _ends(by),
                _ends(plain),
                int((by.form == METHODS[0]).sum()),
            )
        )
    return counts, found


def _ends(estimate: Estimate) -> Floats:
    return np.stack([estimate.low, estimate.high])


def holds(shares: Floats, ends: Floats) -> NDArray[np.bool_]:
    """Return which quantiles' bounds `(2, q)` hold one of the quantiles of shares `(k,)`."""
    upto = np.cumsum(shares)
    first = np.searchsorted(upto, np.array(PROBABILITIES) - 1e-9)
    last = np.searchsorted(upto, np.array(PROBABILITIES) + 1e-9, side="right")
    inside: NDArray[np.bool_] = (ends[0] <= last) & (first <= ends[1])
    return inside


def cell(name: str, size: int, epsilon: float, n: int, repetitions: int) -> bool:
    """Measure and print a cell; return whether all bounds hold."""
    shares = DATA[name](size)
    mechanism = L1Geometric(epsilon, (size,))
    case = Case(f"{name}/{size}/{epsilon}", mechanism, name, shares, n)
    heaviest = int(shares.argmax())
    sets = [np.array([heaviest]), np.arange(heaviest + 1), np.arange(size // 4, size // 2)]
    began = time.process_time()
    counts, found = windows(case, repetitions, sets)
    each_ms = 1000.0 * (time.process_time() - began) / repetitions
    people = [row / n for row in counts]
    quantiles = np.array([holds(shares, one.quantiles) for one in found]).sum(axis=0)
    of_people = np.array([holds(p, w.quantiles) for p, w in zip(people, found, strict=True)])
    width, usual = (
        (ends[:, 1] - ends[:, 0]).mean(axis=0)
        for ends in (
            np.array([one.quantiles for one in found]),
            np.array([one.plain_quantiles for one in found]),
        )
    )
    truth = positions(shares, PROBABILITIES)
    error = np.sqrt(((np.array([one.middle for one in found]) - truth) ** 2).mean(axis=0))
    over = width / np.maximum(4.0 * error, 1.0)
    share_truth = np.array([shares[one].sum() for one in sets])
    ends = np.array([one.shares for one in found])
    inside = ((ends[:, 0] <= share_truth + 1e-9) & (share_truth <= ends[:, 1] + 1e-9)).sum(axis=0)
    theirs = np.array([[p[one].sum() for one in sets] for p in people])
    of_theirs = (ends[:, 0] <= theirs + 1e-9) & (theirs <= ends[:, 1] + 1e-9)
    plain = np.array([one.plain for one in found])
    ratio = (ends[:, 1] - ends[:, 0]).mean(axis=0) / (plain[:, 1] - plain[:, 0]).mean(axis=0)
    all_inside = [*quantiles, *inside, *of_people.sum(axis=0), *of_theirs.sum(axis=0)]
    good = min(upper_limit(int(one), repetitions) for one in all_inside) >= LEAST
    print(
        f"{name:12}{size:5}{epsilon:6g}{n:8,}  "
        + " ".join(
            f"{one / repetitions:6.3f}{among:6.3f}{wide:6.1f}{other:7.1f}{rmse:6.2f}{part:5.2f} "
            for one, among, wide, other, rmse, part in zip(
                quantiles, of_people.mean(axis=0), width, usual, error, over, strict=True
            )
        )
        + f"{inside.min() / repetitions:6.3f}{of_theirs.mean(axis=0).min():6.3f}"
        + f"{found[0].profiled:3}"
        + " ".join(f"{one:5.2f}" for one in ratio)
        + f"{each_ms:7.0f}{'' if good else '  <'}",
        flush=True,
    )
    return good


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.profiles", description=__doc__
    )
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--sizes", nargs="+", type=int, default=[64, 256, 512])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1])
    parser.add_argument("--n", nargs="+", type=int, default=[2_500, 7_800, 31_250])
    asked = parser.parse_args()
    print(f"{asked.repetitions} windows a cell, profile, 95%; of each quantile the coverage")
    print("of the population and of respondents, width, padded's width, the estimate's RMSE, width")
    print("over 4 RMSE (at least a bin); of shares the lowest coverages, number profiled, widths")
    print("over padded's: of the largest value, up to it, of the second quarter")
    print(f"{'':33}{'median':37} {'p95':37}{'shares':34}ms")
    good = True
    for cell_of in product(asked.data, asked.sizes, asked.epsilons, asked.n):
        good &= cell(*cell_of, asked.repetitions)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
