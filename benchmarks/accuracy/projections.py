"""What post-processing gains and costs: `python -m benchmarks.accuracy.projections [DATA]`.

Users drawn from ten shapes of data, and with DATA, the folder of `dpbench_1d_4096.npz`, from five
real data sets, report through each mechanism. For the estimated shares and each post-processing of
them the table has the total variation distance from the respondents' shares, and the root mean
square errors of values and of all ranges, relative to no post-processing: the mean over the shapes,
and the shape with the largest error of ranges. `--shapes` prints every shape.
"""

import argparse
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from benchmarks.accuracy.repeated import draw
from benchmarks.accuracy.simulate import Case, uniform, zipf
from ldpstream.estimators.estimate import estimate_values
from ldpstream.estimators.projection import known_totals, project_blocks, project_simplex
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.families.tree.tree import Tree
from ldpstream.mechanisms.interface.mechanism import Mechanism

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

REAL: Final = ("INCOME", "MEDCOST", "NETTRACE", "PATENT", "SEARCHLOGS")
SIZE: Final = 256
BLOCKS: Final = Blocks(np.arange(SIZE) // 16)
MECHANISMS: Final[dict[str, tuple[Callable[[float], Mechanism], tuple[float, ...]]]] = {
    "block-hadamard": (lambda e: BlockHadamard(e, Blocks.one(SIZE)), (1.0, 3.0)),
    "block-hadamard, 16 blocks": (lambda e: BlockHadamard(e, BLOCKS), (1.0, 3.0)),
    "projective-geometry": (lambda e: ProjectiveGeometry(e, Blocks.one(SIZE)), (1.0, 3.0)),
    "randomized-response": (lambda e: RandomizedResponse(e, Blocks.one(SIZE)), (1.0, 3.0)),
    "subset-selection": (lambda e: SubsetSelection(e, Blocks.one(SIZE)), (1.0, 3.0)),
    "tree": (lambda e: Tree(e, Blocks.one(SIZE)), (1.0, 3.0)),
    "l1-geometric": (lambda e: L1Geometric(e, (SIZE,)), (0.1, 0.3, 1.0)),
}


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


def exponential(size: int) -> Floats:
    """Return shares that fall to a third in a tenth of the domain."""
    shares = np.exp(-np.arange(size) / (size / 11.0))
    return np.asarray(shares / shares.sum())


def scattered(size: int) -> Floats:
    """Return a Zipf distribution of a tenth of the values, scattered."""
    shares = np.zeros(size)
    places = np.random.default_rng(1).permutation(size)[: size // 10]
    shares[places] = zipf(len(places))
    return shares


BIN_SECONDS: Final = 0.05


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


TEN: Final[dict[str, Callable[[int], Floats]]] = {
    "uniform": uniform,
    "smooth": smooth,
    "spikes": spikes,
    "zipf": zipf,
    "edge": edge,
    "plateau": plateau,
    "start times": start_times,
    "pair": atoms(0.3, 0.32),
    "exponential": exponential,
    "scattered": scattered,
}


def real(folder: Path) -> dict[str, Callable[[int], Floats]]:
    """Return histograms of DPBench as shares of up to 4,096 values, which k has to divide."""

    def shares(counts: NDArray[np.int32], size: int) -> Floats:
        return np.asarray(counts.reshape(size, -1).sum(axis=1) / counts.sum())

    with np.load(folder / "dpbench_1d_4096.npz") as file:
        return {name: partial(shares, file[name]) for name in REAL}


def sum_over_ranges(prefixes: Floats) -> Floats:
    """Sum the squares of all ranges' sums, from prefix sums C along the first axis.

    A range is a pair of the cuts `0..k`, and its sum the difference of two C, where C is 0 at cut
    0. The sum over all pairs is `(k + 1) sum C^2 - (sum C)^2`.
    """
    cuts = len(prefixes) + 1
    squares: Floats = cuts * (prefixes**2).sum(axis=0) - prefixes.sum(axis=0) ** 2
    return squares


@dataclass(frozen=True)
class Errors:
    """Errors of one method on one shape: TV, and root mean squares over values and over ranges."""

    variation: float
    value: float
    ranges: float

    @classmethod
    def of(cls, means: Floats) -> "Errors":
        """Return the errors from the means of TV and of both squared errors."""
        variation, value, ranges = means.tolist()
        return cls(variation, value**0.5, ranges**0.5)


def measure(case: Case, repetitions: int) -> dict[str, Errors]:
    """Return the errors of every method that the mechanism offers."""
    mechanism, size = case.mechanism, case.mechanism.size
    seed = zlib.crc32(f"{case.name}/{case.data}/{case.n}".encode())
    found: dict[str, list[tuple[float, float, float]]] = {}
    for users, row in zip(*draw(case, repetitions, seed), strict=True):
        statistic = np.asarray(row, dtype=np.int64)
        estimate = estimate_values(mechanism, statistic, case.n, method="normal")
        groups, totals = known_totals(mechanism, statistic, case.n)
        done = {"none": estimate.value, "simplex": project_simplex(estimate.value)}
        if totals.size > 1:
            done["blocks"] = project_blocks(estimate.value, groups, totals)
        for name, shares in done.items():
            off = shares - users / case.n
            over = float(sum_over_ranges(np.cumsum(off))) / (size * (size + 1) / 2)
            parts = float(np.abs(off).sum()) / 2.0, float((off**2).mean()), over
            found.setdefault(name, []).append(parts)
    return {name: Errors.of(np.array(rows).mean(axis=0)) for name, rows in found.items()}


def print_group(title: str, rows: dict[str, dict[str, Errors]], *, each: bool) -> None:
    """Print the rows of one mechanism: the mean over the shapes, and the worst range error."""
    for name in next(iter(rows.values())):
        plain = [row["none"] for row in rows.values()]
        these = [row[name] for row in rows.values()]
        value, over = (
            np.array(
                [getattr(a, part) / getattr(b, part) for a, b in zip(these, plain, strict=True)]
            )
            for part in ("value", "ranges")
        )
        print(
            f"{title:42}{name:11}{np.mean([one.variation for one in these]):7.3f}"
            f"{value.mean():8.2f}{over.mean():8.2f}{over.max():8.2f} {list(rows)[over.argmax()]}",
            flush=True,
        )
        for place, shape in enumerate(rows) if each else ():
            one = these[place]
            print(
                f"{'':42}  {shape:12}{one.variation:7.3f}{value[place]:8.2f}{over[place]:8.2f}"
                f"   {one.value:.5f} {one.ranges:.5f}"
            )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.projections", description=__doc__
    )
    parser.add_argument("data", type=Path, nargs="?", help="folder of dpbench_1d_4096.npz")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--n", type=int, nargs="+", default=[2_000, 50_000])
    parser.add_argument("--mechanisms", nargs="+", choices=MECHANISMS, default=list(MECHANISMS))
    parser.add_argument("--shapes", action="store_true", help="print every shape")
    asked = parser.parse_args(arguments)
    shapes = {name: shares(SIZE) for name, shares in TEN.items()}
    given = {} if asked.data is None else real(asked.data)
    histograms = {name: shares(SIZE) for name, shares in given.items()}
    print(f"{SIZE} values, {asked.repetitions} repetitions of each shape")
    print(f"{'':42}{'':11}{'TV':>7}{'values':>8}{'ranges':>8}{'worst':>8}")
    for name in asked.mechanisms:
        build, epsilons = MECHANISMS[name]
        for epsilon, n in product(epsilons, asked.n):
            mechanism = build(epsilon)
            for kind, data in (("shapes", shapes), ("real", histograms)):
                rows = {
                    shape: measure(
                        Case(f"{name}/{epsilon}", mechanism, shape, p, n), asked.repetitions
                    )
                    for shape, p in data.items()
                }
                if rows:
                    title = f"{name} {epsilon:g} {n:,} {kind}"
                    print_group(title, rows, each=asked.shapes)


if __name__ == "__main__":
    main()
