"""Errors of ranges under classical LDP: `python -m benchmarks.accuracy.ranges`.

Root mean square errors over all ranges of k values. For `tree` they are predicted exactly for the
data, and measured over all ranges in as many repetitions as asked for. Counts of reports are drawn
from the realised channel's probabilities; above 4,096 values reports are drawn one by one.
Data are shapes and, with `--real` and the folder of `dpbench_1d_4096.npz`, five histograms with
neighbouring bins added up. Mechanisms for single values are predicted for uniform data, over all
ranges or a fixed sample. Exit status 1 if a measured error is off by more than three standard
errors.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.simulate import Case, draw_by_privatizing, uniform, zipf
from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.estimators.planning.workload import PlannedWorkload
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.design.randomized_response import RandomizedResponse
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.families.tree.tree import Tree
from ldpstream.mechanisms.families.tree.workload import mean_squares
from ldpstream.mechanisms.interface.mechanism import Mechanism

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LARGEST_EXACT = 4096
"""Up to this many values errors are exact for the data; above, by the formula for uniform data."""
_TOGETHER = 256
REAL: Final = ("INCOME", "MEDCOST", "NETTRACE", "PATENT", "SEARCHLOGS")
RIVALS = (BlockHadamard, ProjectiveGeometry, SubsetSelection, RandomizedResponse)


def smooth(size: int) -> Floats:
    """Return shares with two hills, one twice as wide as the other."""
    at = (np.arange(size) + 0.5) / size
    hills = np.exp(-((at - 0.3) ** 2) / 0.02) + 0.5 * np.exp(-((at - 0.7) ** 2) / 0.005)
    return np.asarray(hills / hills.sum())


def spikes(size: int) -> Floats:
    """Return shares with half of all users at four values, and the others uniform."""
    shares = np.full(size, 0.5 / size)
    shares[[size // 10, size // 4, size // 2, size - 2]] += 0.125
    return shares


def edge(size: int) -> Floats:
    """Return shares with all users at the first value."""
    return np.asarray(np.arange(size) == 0, dtype=np.float64)


DATA: Mapping[str, Callable[[int], Floats]] = {
    "uniform": uniform,
    "smooth": smooth,
    "spikes": spikes,
    "zipf": zipf,
    "edge": edge,
}


def sum_over_ranges(prefixes: Floats) -> Floats:
    """Sum the squares of all ranges' sums, from prefix sums C along the first axis.

    A range is a pair of the cuts `0..k`, and its sum the difference of two C, where C is 0 at cut
    0. The sum over all pairs is `(k + 1) sum C^2 - (sum C)^2`.
    """
    cuts = len(prefixes) + 1
    squares: Floats = cuts * (prefixes**2).sum(axis=0) - prefixes.sum(axis=0) ** 2
    return squares


def predict(mechanism: Tree, shares: Floats, n: int) -> float:
    """Return the root mean square error over all ranges for n users drawn from shares."""
    size, decoder = mechanism.size, mechanism.decoder
    moments = sum_over_ranges(decoder.decode_each(np.tri(size)))
    variance = float(decoder.expect(moments) @ shares - sum_over_ranges(np.cumsum(shares)))
    return math.sqrt(variance / _ranges(size) / n)


def formula(mechanism: Tree, n: int) -> float:
    """Return the error that the levels' probabilities minimise, of uniform data at whole points."""
    (tree,) = mechanism.layout.trees
    parts = mean_squares(mechanism.workload, tree.extents)
    precisions = np.zeros(parts.shape)
    for level in tree.levels:
        coarser = np.zeros(parts.shape)
        coarser[tuple(slice(depth + 1) for depth in level.depths)] = level.probability / WORD
        width = 1 << (sum(tree.heights) - sum(level.depths))
        precisions += coarser * width / float(level.channel.contrast_noise)
    variances = (parts / precisions).ravel()[1:]
    return math.sqrt(float(variances.sum()) / n)


def real(folder: Path) -> dict[str, Callable[[int], Floats]]:
    """Return histograms of DPBench as shares of up to 4,096 values, which k has to divide."""

    def shares(counts: NDArray[np.int32], size: int) -> Floats:
        return np.asarray(counts.reshape(size, -1).sum(axis=1) / counts.sum())

    with np.load(folder / "dpbench_1d_4096.npz") as file:
        return {name: partial(shares, file[name]) for name in REAL}


def statistics(mechanism: Tree, shares: Floats, n: int, repetitions: int) -> Iterator[Integers]:
    """Yield statistics of independent reports by n users drawn from shares."""
    if mechanism.size > LARGEST_EXACT:
        case = Case("ranges", mechanism, "", shares, n)
        yield from (counts for _, counts in draw_by_privatizing(case, repetitions, seed=7))
        return
    outputs, decoder = mechanism.empty().size, mechanism.decoder
    probabilities = np.empty(outputs)
    for first in range(0, outputs, _TOGETHER):
        units = np.eye(min(_TOGETHER, outputs - first), outputs, first)
        probabilities[first : first + _TOGETHER] = decoder.expect_each(units) @ shares
    rng = np.random.default_rng(7)
    yield from rng.multinomial(n, probabilities / probabilities.sum(), repetitions)


def measure(
    mechanism: Tree, shares: Floats, n: int, drawn: Iterable[Integers]
) -> tuple[float, float]:
    """Return the root mean square error measured from statistics, and its standard error."""
    found = []
    for statistic in drawn:
        off = np.cumsum(mechanism.decoder.totals(statistic) / n - shares)
        found.append(sum_over_ranges(off) / _ranges(mechanism.size))
    errors = np.array(found)
    error = math.sqrt(errors.mean())
    return error, float(errors.std(ddof=1)) / math.sqrt(errors.size) / (2.0 * error)


def predict_rival(mechanism: Mechanism, n: int) -> float:
    """Return the predicted error of a mechanism for single values on uniform data."""
    shares = uniform(mechanism.size)
    sets = PlannedWorkload(shape=(mechanism.size,), ordered=True, shares=shares).boxes.sets
    found = predicted_set_variances(mechanism, sets, shares=shares, estimand="population")
    return math.sqrt(found.mean() / n)


def _ranges(size: int) -> float:
    return size * (size + 1) / 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--data", nargs="*", choices=DATA, default=list(DATA))
    parser.add_argument("--real", type=Path, help="folder of dpbench_1d_4096.npz")
    asked = parser.parse_args(arguments)
    data = {name: DATA[name] for name in asked.data}
    data |= {} if asked.real is None else real(asked.real)
    print(f"Error of all ranges, n = {asked.n:,}, {asked.repetitions} repetitions")
    print("epsilon     k  mechanism, data                predicted  measured  off by s.e.")
    missed = 0
    for epsilon in asked.epsilons:
        for size in asked.sizes:
            tree = Tree(epsilon, Blocks.one(size))
            for name, of_size in data.items():
                shares = of_size(size)
                exact = size <= LARGEST_EXACT
                predicted = predict(tree, shares, asked.n) if exact else formula(tree, asked.n)
                drawn = statistics(tree, shares, asked.n, asked.repetitions)
                error, deviation = measure(tree, shares, asked.n, drawn)
                off = (error - predicted) / deviation
                missed += exact and abs(off) > 3.0
                print(
                    f"{epsilon:7g}{size:6}  {f'tree, {name}':29}{predicted:11.4f}{error:10.4f}"
                    f"{off:+13.1f}"
                )
            for kind in RIVALS if size <= LARGEST_EXACT else ():
                error = predict_rival(kind(epsilon, Blocks.one(size)), asked.n)
                print(f"{epsilon:7g}{size:6}  {f'{kind.id}, uniform':29}{error:11.4f}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
