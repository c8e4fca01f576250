"""Which mechanism for ranges under `epsilon * L1`? `python -m benchmarks.accuracy.l1_variance`.

Exact mean variances of one user's report over all ranges (estimand: respondents), with users drawn
by Zipf(1.1) in every dimension. A range's second moment is a product over the dimensions, and so is
its mean over all ranges: only sums over one dimension are needed. Next to them stand squared errors
measured from reports, divided by their predictions: random ranges, all of a repetition together.
Exit status 1 if a measured ratio is off by more than 10%.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.simulate import Case, draw_by_privatizing, zipf
from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.estimators.queries import range_values
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.interface.mechanism import Mechanism

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Ranges = list[list[tuple[int, int]]]

EXPONENT = 1.1
SETTINGS = (
    (1.0, 16, 1),
    (1.0, 64, 1),
    (1.0, 256, 1),
    (1.0, 64, 2),
    (1.0, 256, 2),
    (1.0, 64, 3),
    (0.1, 64, 1),
)
MEASURED: tuple[tuple[float, tuple[int, ...]], ...] = (
    (1.0, (64,)),
    (0.1, (64,)),
    (1.0, (64, 64)),
    (1.0, (16, 12, 8)),
)
RESPONDENTS = 500
RANGES = 100
TOLERANCE = 0.1


@dataclass(frozen=True)
class Axis:
    """Means of `Q h^2` and of `w` over all ranges of one dimension and over its users."""

    second: float
    inside: float

    def variance(self, dimensions: int) -> float:
        """Return the mean over all ranges of this many dimensions of one report's variance."""
        return float(self.second**dimensions - self.inside**dimensions)


def mean_moments(mechanism: Mechanism, shares: Floats) -> Axis:
    """Return the means over all ranges of a mechanism on a line, shares float64 `(m,)`."""
    decoder, m = mechanism.decoder, mechanism.size
    second = inside = 0.0
    for first in range(m):
        weights = np.zeros(m)
        for last in range(first, m):
            weights[last] = 1.0
            inside += float(shares[first : last + 1].sum())
            second += float((shares * decoder.noise(weights)).sum())
    count = m * (m + 1) / 2
    return Axis((second + inside) / count, inside / count)


def variances(epsilon: float, m: int, dimensions: int) -> tuple[float, float]:
    """Return the mean variances of `l1-bits` and `l1-geometric`, m values in each dimension."""
    shares = zipf(m, EXPONENT)
    axes = [mean_moments(kind(epsilon, (m,)), shares) for kind in (L1Bits, L1Geometric)]
    bits, geometric = (axis.variance(dimensions) for axis in axes)
    return bits, geometric


def random_ranges(shape: Sequence[int], count: int, seed: int) -> Ranges:
    """Return ranges with uniform ends in each dimension, none of them the whole domain."""
    rng = np.random.default_rng(seed)
    out: Ranges = []
    while len(out) < count:
        pairs = [sorted(rng.integers(0, m, 2).tolist()) for m in shape]
        if any(pair != [0, m - 1] for pair, m in zip(pairs, shape, strict=True)):
            out.append([(first, last) for first, last in pairs])
    return out


def measured_ratio(mechanism: Mechanism, shape: tuple[int, ...], repetitions: int) -> float:
    """Return the mean over random ranges of squared errors over predicted variances."""
    shares = np.ones(())
    for m in shape:
        shares = np.multiply.outer(shares, zipf(m, EXPONENT))
    case = Case("", mechanism, "zipf", shares.ravel(), RESPONDENTS)
    sets = [range_values(shape, bounds) for bounds in random_ranges(shape, RANGES, 1)]
    ratios: Floats = np.zeros(len(sets))
    for counts, statistic in draw_by_privatizing(case, repetitions, 2):
        errors = (mechanism.decoder.totals(statistic) - counts) / RESPONDENTS
        ratios += np.array([errors[members].sum() for members in sets]) ** 2
    predicted = predicted_set_variances(mechanism, sets, shares=case.shares) / RESPONDENTS
    return float((ratios / repetitions / predicted).mean())


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.l1_variance", description=__doc__
    )
    parser.add_argument("--repetitions", type=int, default=1000)
    repetitions = parser.parse_args().repetitions
    print(f"Mean variance of one report over all ranges, respondents, Zipf({EXPONENT}) per axis")
    print(f"{'eps':>5}{'m':>6}{'D':>3}{'l1-bits':>14}{'l1-geometric':>14}{'ratio':>10}")
    for epsilon, m, dimensions in SETTINGS:
        bits, geometric = variances(epsilon, m, dimensions)
        row = f"{epsilon:5.1f}{m:6}{dimensions:3}{bits:14.5g}{geometric:14.5g}"
        print(f"{row}{bits / geometric:10.4g}")
    print(f"\nSquared errors over predicted variances: {RANGES} random ranges, {repetitions} times")
    met = True
    for epsilon, shape in MEASURED:
        for mechanism in (L1Bits(epsilon, shape), L1Geometric(epsilon, shape)):
            ratio = measured_ratio(mechanism, shape, repetitions)
            met &= abs(ratio - 1) <= TOLERANCE
            sizes = " x ".join(map(str, shape))
            print(f"{epsilon:5.1f}  {sizes:14}{mechanism.id:14}{ratio:8.4f}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
