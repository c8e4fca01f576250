"""Ordered values and maps, as published: `python -m benchmarks.accuracy.ordered [DATA]`.

Users are drawn from shapes, and with DATA, the folder of `dpbench_1d_4096.npz` and
`adult_ordinal.npz`, from real histograms of 256 values. They report through `tree`; a row compares
with the unbiased shares of the default levels: equal levels unbiased, both projected down, AHEAD,
and Square Wave with smoothed expectation maximisation. `ranges` is the root mean square error of
all ranges, `W1` the mean absolute error of the cumulative curve, both of the population. Then maps
of 128 x 128 places in squares: rectangles, against the unbiased shares of the same reports. Last
the coverage of 200 ranges by the bounds, which are those of the unbiased shares.
"""

import argparse
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.alternatives import ahead, square_wave
from benchmarks.accuracy.projections import atoms, edge, smooth, spikes, sum_over_ranges
from benchmarks.accuracy.simulate import Case, draw_by_privatizing, zipf
from ldpstream.estimators.estimate import estimate_prepared
from ldpstream.estimators.projection import known_totals, project_down
from ldpstream.estimators.queries import prepare_sets
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.tree.tree import Tree

Floats = NDArray[np.float64]

SIZE: Final = 256
SIDE: Final = 128
N: Final = 20_000
EPSILONS: Final = (0.5, 1.0, 2.0)
LIMITS: Final = {"ranges": 0.55, "W1": 0.6, "worst": 1.2, "map": 0.2}


def lines(folder: Path | None) -> dict[str, Floats]:
    """Return the shares of every set of data over 256 ordered values."""
    at = (np.arange(SIZE) + 0.5) / SIZE
    steps = np.repeat([3.0, 0.5, 5.0, 1.5], SIZE // 4)
    beta = at**4 * (1.0 - at)
    shapes = {
        "smooth": smooth(SIZE),
        "zipf": zipf(SIZE),
        "spikes": spikes(SIZE),
        "point": edge(SIZE),
    }
    shapes |= {
        "pair": atoms(0.3, 0.32)(SIZE),
        "steps": steps / steps.sum(),
        "beta": beta / beta.sum(),
    }
    if folder is None:
        return shapes
    with np.load(folder / "dpbench_1d_4096.npz") as file:
        found = {
            name: np.asarray(counts.reshape(SIZE, -1).sum(axis=1) / counts.sum())
            for name, counts in file.items()
        }
    with np.load(folder / "adult_ordinal.npz") as file:
        found["age"] = np.bincount(file["age"], minlength=SIZE) / file["age"].size
    return shapes | found


def maps() -> dict[str, Floats]:
    """Return shares of the places of a map: hills, streets, a square, towns."""
    x, y = np.meshgrid(*[(np.arange(SIDE) + 0.5) / SIDE] * 2)
    generator = np.random.default_rng(5)
    hills = np.exp(-((x - 0.3) ** 2 + (y - 0.6) ** 2) / 0.02) + 0.3 * np.exp(
        -((x - 0.8) ** 2 + (y - 0.2) ** 2) / 0.005
    )
    streets = np.where(
        (np.arange(SIDE) % 16 == 3)[None] | (np.arange(SIDE) % 20 == 7)[:, None], 9, 1
    )
    square = 0.1 + 4.0 * ((abs(x - 0.4) < 0.1) & (abs(y - 0.5) < 0.2))
    towns = np.zeros((SIDE, SIDE))
    towns[tuple(generator.integers(0, SIDE, (2, 40)))] = zipf(40)
    found = {"hills": hills, "streets": streets, "square": square, "towns": towns}
    return {name: (table / table.sum()).ravel() for name, table in found.items()}


def estimates(tree: Tree, statistic: NDArray[np.int64], n: int) -> tuple[Floats, Floats]:
    """Return the unbiased shares and the projected ones, as documents have them."""
    shares = tree.decoder.totals(statistic) / n
    return shares, project_down(shares, tree.coordinates, *known_totals(tree, statistic, n))


def line_errors(
    data: str, shares: Floats, epsilon: float, trees: Mapping[str, Tree], repetitions: int
) -> dict[str, Floats]:
    """Return the errors of ranges and the W1 of every method, `(2,)` each."""
    found: dict[str, list[tuple[float, float]]] = {}

    def add(method: str, estimate: Floats) -> None:
        curve = np.cumsum(estimate - shares)
        over = float(sum_over_ranges(curve)) / (SIZE * (SIZE + 1) / 2)
        found.setdefault(method, []).append((over, float(np.abs(curve).mean())))

    for levels, tree in trees.items():
        seed = zlib.crc32(f"{data}/{epsilon}/{levels}".encode())
        case = Case(levels, tree, data, shares, N)
        for counts, statistic in draw_by_privatizing(case, repetitions, seed):
            raw, projected = estimates(tree, statistic, N)
            add(f"{levels} raw", raw)
            add(f"{levels} down", projected)
            if levels == "levels":
                generator = np.random.default_rng([seed, len(found)])
                add("square wave", square_wave(epsilon, counts, generator))
                add("AHEAD", ahead(epsilon, counts, generator))
    means = {method: np.array(rows).mean(axis=0) for method, rows in found.items()}
    return {method: np.array([over**0.5, curve]) for method, (over, curve) in means.items()}


def map_error(name: str, shares: Floats, tree: Tree, repetitions: int) -> float:
    """Return the error of rectangles after the projection, relative to that before it."""
    generator = np.random.default_rng(7)
    corners = np.sort(generator.integers(0, SIDE + 1, (2_000, 2, 2)), axis=2)
    squares = np.zeros(2)
    case = Case("map", tree, name, shares, N)
    for _, statistic in draw_by_privatizing(case, repetitions, zlib.crc32(name.encode())):
        for place, estimate in enumerate(estimates(tree, statistic, N)):
            off = np.zeros((SIDE + 1, SIDE + 1))
            off[1:, 1:] = (estimate - shares).reshape(SIDE, SIDE).cumsum(axis=0).cumsum(axis=1)
            (top, bottom), (left, right) = corners[:, 0].T, corners[:, 1].T
            errors = off[bottom, right] - off[top, right] - off[bottom, left] + off[top, left]
            squares[place] += (errors**2).sum()
    raw, projected = squares**0.5
    return float(projected / raw)


def coverage(shares: Floats, tree: Tree, repetitions: int) -> float:
    """Return how often the published bounds of 200 ranges hold the population's share."""
    generator = np.random.default_rng(11)
    ends = np.sort(generator.integers(0, SIZE, (200, 2)), axis=1)
    sets = [np.arange(first, last + 1) for first, last in ends.tolist()]
    prepared = prepare_sets(tree, sets, keep=True)
    truth, inside = np.array([shares[one].sum() for one in sets]), 0.0
    for _, statistic in draw_by_privatizing(Case("", tree, "", shares, N), repetitions, 13):
        found = estimate_prepared(statistic, N, prepared, estimand="population")
        inside += float(((found.low <= truth) & (truth <= found.high)).mean())
    return inside / repetitions


def geometric_mean(ratios: Sequence[float]) -> float:
    return float(np.exp(np.log(ratios).mean()))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.ordered", description=__doc__
    )
    parser.add_argument("data", type=Path, nargs="?", help="folder of the real histograms")
    parser.add_argument("--repetitions", type=int, default=8)
    asked = parser.parse_args(arguments)
    data = lines(asked.data)
    ratios: dict[tuple[float, str], list[Floats]] = {}
    print(
        f"{SIZE} values, {N:,} reports, {asked.repetitions} repetitions: relative to `ranges raw`"
    )
    for epsilon in EPSILONS:
        trees = {one: Tree(epsilon, Blocks.one(SIZE), (), one) for one in ("ranges", "levels")}
        for name, shares in data.items():
            errors = line_errors(name, shares, epsilon, trees, asked.repetitions)
            base = errors["ranges raw"]
            for method, own in errors.items():
                ratios.setdefault((epsilon, method), []).append(own / base)
            parts = (f"{method} {own[0]:.4f} {own[1]:.4f}" for method, own in errors.items())
            print(f"{epsilon:4g} {name:11}{'; '.join(parts)}", flush=True)
    print(f"{'':22}{'ranges':>8}{'worst':>8}{'W1':>8}{'worst':>8}")
    for method in dict.fromkeys(method for _, method in ratios):
        for within in (*EPSILONS, None):
            rows = [
                one
                for (of, own), each in ratios.items()
                for one in each
                if own == method and within in (of, None)
            ]
            columns = np.array(rows).T
            numbers = [number for one in columns for number in (geometric_mean(one), one.max())]
            title = f"{method}, {'all' if within is None else f'{within:g}'}"
            print(f"{title:22}{''.join(f'{number:8.3f}' for number in numbers)}", flush=True)
    for epsilon in EPSILONS:
        tree = Tree(epsilon, Blocks.one(SIDE**2), (SIDE, SIDE), "levels")
        found = {
            name: map_error(name, shares, tree, max(1, asked.repetitions // 4))
            for name, shares in maps().items()
        }
        each = ", ".join(f"{name} {ratio:.3f}" for name, ratio in found.items())
        print(
            f"map {epsilon:g}: rectangles {geometric_mean(list(found.values())):.3f} ({each})",
            flush=True,
        )
    for epsilon in EPSILONS:
        of = {
            one: [
                coverage(shares, Tree(epsilon, Blocks.one(SIZE), (), one), asked.repetitions)
                for shares in (data["zipf"], data["point"], data["smooth"])
            ]
            for one in ("ranges", "levels")
        }
        text = "; ".join(
            f"{one} {np.mean(own):.4f}, lowest {min(own):.4f}" for one, own in of.items()
        )
        print(f"coverage {epsilon:g}: {text}", flush=True)
    print(f"wanted of `levels down`: {LIMITS}")


if __name__ == "__main__":
    main()
