"""Figure 2 of Acharya et al. 2020, recomputed.

    python -m benchmarks.papers.ca_figure2

Needs extra `plots`.

k = 1,000 values, epsilon = 1, `block-hadamard` with m in 10, 20, 50, 100 blocks against one block
(classical LDP), n = 1000 * 2^i users, i = 0..9, 10 repetitions. The result is the mean
total-variation distance of the estimate, projected onto the simplex, from the distribution that
the users were drawn from. m is the number of equal blocks of neighbouring values, as everywhere in
the paper; read as the size of a block it would give the same four partitions in reverse order.

Geo(0.95) as printed there is `0.95 * 0.05^i`, three values in effect; `0.95^i` may be meant: both
are run, in order and permuted. The paper does not say which permutation: ours is seeded.

The dashed lines are the bound `(c/2) sqrt(sum k_j^2 / n)`, `c = (e^eps + 1)/(e^eps - 1)`, seven
times below the paper's `2c sqrt(3 sum k_j^2 / n)`. It holds before the projection and, as blocks
have equal sizes, after it: the projection moves no estimate farther from the truth in the Euclidean
norm, and by Cauchy-Schwarz the same bound follows.
"""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.simulate import Case, draw_by_privatizing, uniform, zipf
from benchmarks.papers.distance import total_variation
from ldpstream.estimators.estimate import estimate_values
from ldpstream.estimators.projection import project_simplex
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

SIZE = 1000
EPSILON = 1.0
BLOCKS = (1, 10, 20, 50, 100)
NUMBERS = tuple(1000 * 2**i for i in range(10))
REPETITIONS = 10
SEED = 1
COLOURS = ("black", "tab:blue", "tab:orange", "tab:green", "tab:red")


def geometric(ratio: float) -> Floats:
    """Return `p(i) ~ ratio^i`, float64 `(SIZE,)`."""
    weights: Floats = np.power(ratio, np.arange(SIZE, dtype=np.float64))
    shares: Floats = weights / weights.sum()
    return shares


def distributions() -> dict[str, Floats]:
    """Return the shares of each panel, float64 `(SIZE,)`."""
    order = np.random.default_rng(SEED).permutation(SIZE)
    printed, decaying = geometric(0.05), geometric(0.95)
    return {
        "Geo(0.95) as 0.95^i": decaying,
        "the same, permuted": decaying[order],
        "Zipf(1)": zipf(SIZE),
        "Geo(0.95) as 0.95 * 0.05^i": printed,
        "that, permuted": printed[order],
        "uniform": uniform(SIZE),
    }


def mechanism(blocks: int) -> BlockHadamard:
    """Return the mechanism with this many blocks of neighbouring values."""
    return BlockHadamard(EPSILON, Blocks(np.arange(SIZE) * blocks // SIZE))


def bound(blocks: int, n: int) -> float:
    """Return the bound on the expected distance, `(c/2) sqrt(sum k_j^2 / n)`."""
    c = 1.0 / math.tanh(EPSILON / 2.0)
    return c / 2.0 * SIZE / math.sqrt(blocks * n)


def mean_distance(case: Case, repetitions: int) -> float:
    """Return the mean distance of the projected estimate from the population's shares."""
    distances = [
        total_variation(
            project_simplex(estimate_values(case.mechanism, statistic, case.n).value), case.shares
        )
        for _, statistic in draw_by_privatizing(case, repetitions, SEED)
    ]
    return float(np.mean(distances))


def measure(name: str, shares: Floats, numbers: tuple[int, ...], repetitions: int) -> Floats:
    """Return the mean distances of one panel, float64 `(numbers, BLOCKS)`."""
    return np.array(
        [
            [mean_distance(Case(name, mechanism(m), name, shares, n), repetitions) for m in BLOCKS]
            for n in numbers
        ]
    )


def print_table(name: str, numbers: tuple[int, ...], found: Floats) -> None:
    """Print one panel: a row for each number of users, with the bounds in a row below."""
    print(f"\n{name}\n{'n':>8}  " + "  ".join(f"{f'{m} blocks':>10}" for m in BLOCKS))
    for n, row in zip(numbers, found, strict=True):
        print(f"{n:8}  " + "  ".join(f"{distance:10.4f}" for distance in row))


def draw(axes: "Axes", name: str, numbers: tuple[int, ...], found: Floats) -> None:
    """Draw one panel."""
    for m, colour, column in zip(BLOCKS, COLOURS, found.T, strict=True):
        label = "1 block (LDP)" if m == 1 else f"{m} blocks of {SIZE // m}"
        axes.plot(numbers, column, marker="o", markersize=3, color=colour, label=label)
        bounds = [bound(m, n) for n in numbers]
        axes.plot(numbers, bounds, linestyle="--", linewidth=0.8, color=colour)
    axes.set(title=name, xscale="log", yscale="log", ylim=(0.003, 1.2))
    axes.set(xlabel="users n", ylabel="mean TV distance")
    axes.grid(visible=True, which="major", alpha=0.3)


def main() -> None:
    from matplotlib.figure import Figure

    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.ca_figure2")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--points", type=int, default=len(NUMBERS), help="how many values of n")
    parser.add_argument("--picture", type=Path, default=Path("build/ca_figure2.png"))
    options = parser.parse_args()
    numbers = NUMBERS[: options.points]
    print(
        f"k = {SIZE}, epsilon = {EPSILON}, {options.repetitions} repetitions: "
        "mean total-variation distance after projection onto the simplex"
    )
    figure = Figure(figsize=(13, 8), layout="constrained")
    panels = figure.subplots(2, 3).ravel()
    for axes, (name, shares) in zip(panels, distributions().items(), strict=True):
        found = measure(name, shares, numbers, options.repetitions)
        print_table(name, numbers, found)
        draw(axes, name, numbers, found)
    print("\nbound, any distribution")
    for n in numbers:
        print(f"{n:8}  " + "  ".join(f"{bound(m, n):10.4f}" for m in BLOCKS))
    figure.suptitle("block-hadamard, k = 1000, epsilon = 1; dashed: bound (c/2) sqrt(sum k_j² / n)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(BLOCKS))
    options.picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.picture, dpi=120)
    print(f"\nwrote {options.picture}")


if __name__ == "__main__":
    main()
