"""Where do bounds fail, and how wide are they? `python -m benchmarks.accuracy.coverage_grid`.

One grid: mechanism, estimand, n, epsilon, share, and weights of which one is heavy. Every cell
draws seeded repetitions of users and reports, as counts and not one by one, and counts how often
the bounds hold the truth: of values with that share, ranges, prefixes, and the means of four
functions of the value, each by itself; and of all values, of all seven queries, and of all areas,
with simultaneous bounds. Estimands are the respondents, the population, and the active devices of
which a known part reports: 30%, as of an attribute of three, and 95%. A channel file fixes its
budgets, so each is measured once. For each
mechanism, method and n the command prints the lowest coverage, the number of failing cells and the
mean width over 4 root mean square errors of the best point estimate, which is the unbiased one
clipped to the query's range; then the lowest cells, and the processor time of the run. A cell fails
if so few of its repetitions cover has a probability below 1% over all cells of the run's method
where the coverage is the claimed 95% (exact binomial tests, Bonferroni). Exit status 1 if a cell of
`padded` fails. docs/performance.md has the extremes over all mechanisms and n.
"""

import argparse
import math
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrik

from benchmarks.accuracy.repeated import AffineSums, draw_of
from benchmarks.accuracy.simulate import Case
from ldpstream.estimators.areas.areas import error_levels
from ldpstream.estimators.areas.sums import area_sums
from ldpstream.estimators.areas.tree import AreaTree, prepare_tree
from ldpstream.estimators.bounds.bounded import bound
from ldpstream.estimators.bounds.options import Estimand, Method, Options, Sampling
from ldpstream.estimators.bounds.types import Sums
from ldpstream.estimators.estimate import query_sums, value_sums
from ldpstream.estimators.queries import indicator, prepare_queries
from ldpstream.estimators.weights import linear_queries
from ldpstream.mechanisms.channels.designed import load_channel
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.families.groups.mechanism import best_groups, sensitive_groups
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.lip.domain import Prior
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.strategy import Strategy
from ldpstream.mechanisms.families.optimal import Optimal
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.families.tree.tree import Tree
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.groups import GroupBudget, GroupPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CHANNELS: Final = Path(__file__).parents[2] / "tests" / "vectors" / "channels"
SIZE: Final = 32
BLOCKS: Final = Blocks(np.array([0] * 3 + [1] * 5 + [2] * 24))
UNEQUAL: Final = Blocks(np.array([0] * 31 + [1]))


def _optimal(file: str, _: float) -> Optimal:
    """Return the mechanism of a channel file, which fixes its budgets."""
    return Optimal(load_channel(f"{file}.json", CHANNELS))


MECHANISMS: Final[dict[str, Callable[[float], Mechanism]]] = {
    "randomized-response": lambda epsilon: RandomizedResponse(epsilon, Blocks.one(SIZE)),
    "randomized-response, 31 + 1": lambda epsilon: RandomizedResponse(epsilon, UNEQUAL),
    "block-hadamard": lambda epsilon: BlockHadamard(epsilon, Blocks.one(SIZE)),
    "block-hadamard, blocks": lambda epsilon: BlockHadamard(epsilon, BLOCKS),
    "projective-geometry": lambda epsilon: ProjectiveGeometry(epsilon, BLOCKS),
    "high-low": lambda epsilon: HighLow(epsilon, SIZE, frozenset(range(0, SIZE, 3))),
    "groups": lambda epsilon: sensitive_groups(epsilon, SIZE, frozenset(range(0, SIZE, 3))),
    "groups, nested": lambda epsilon: best_groups(
        GroupPolicy(BLOCKS, (GroupBudget(epsilon, 2.0 * epsilon, BLOCKS.count),))
    ),
    "groups, budgets": lambda epsilon: best_groups(
        GroupPolicy(
            BLOCKS, tuple(GroupBudget(epsilon * times, math.inf) for times in (1.0, 2.0, 3.0))
        )
    ),
    "subset-selection": lambda epsilon: SubsetSelection(epsilon, BLOCKS),
    "tree": lambda epsilon: Tree(epsilon, Blocks.one(SIZE)),
    "l1-geometric": lambda epsilon: L1Geometric(epsilon, (SIZE,)),
    "l1-bits": lambda epsilon: L1Bits(epsilon, (SIZE,)),
    "matrix, haar": lambda epsilon: Matrix(
        BlockPolicy(epsilon, Blocks.one(SIZE)), Strategy.built_in("haar", SIZE)
    ),
    "matrix, prefix": lambda epsilon: Matrix(
        MetricPolicy(epsilon, (SIZE,)), Strategy.built_in("prefix", SIZE)
    ),
    "binary": lambda epsilon: Binary(epsilon, epsilon),
    "binary, infinite first": lambda epsilon: Binary(math.inf, epsilon),
    "lip, prior 0.3": lambda epsilon: Lip(Prior(value=0.3), (epsilon,)),
    "lip, 16 levels": lambda epsilon: Lip(Prior(levels=16), (epsilon,)),
}
FILES: Final[dict[str, Callable[[float], Mechanism]]] = {
    f"optimal, {file}": partial(_optimal, file)
    for file in ("asymmetric", "classical", "graph", "line", "lip")
}
METHODS: Final[tuple[Method, ...]] = ("padded", "normal", "bernstein")
WHOLE: Final = {"respondents": 1.0, "population": 0.0, "active, 30%": 0.3, "active, 95%": 0.95}
"""The estimands, with the part of the devices in question that reports."""
TOGETHER: Final = ("all values", "all queries", "all areas")
"""Lists whose simultaneous bounds are counted together."""
CLAIMED: Final = 0.95
LEVEL: Final = 0.01
"""The probability that any cell of a method fails whose coverage is as claimed."""


@dataclass(frozen=True)
class Cell:
    """One query in one setting: coverage and width of each method, over r repetitions."""

    mechanism: str
    estimand: str
    n: int
    epsilon: float
    share: float
    query: str
    covered: dict[Method, float]
    width: dict[Method, float]

    def fails(self, method: Method, repetitions: int, cells: int) -> bool:
        """Return whether coverage is significantly below what is claimed, as one of all cells."""
        covered = round(self.covered[method] * repetitions)
        return bool(bdtr(covered, repetitions, CLAIMED) < LEVEL / cells)


def rare(size: int) -> int:
    """Return the value that has the grid's share; its weight is the heavy one."""
    return 5 * size // 8


def shares_of(share: float, size: int) -> Floats:
    """Return shares: `share` for the rare value, half of the rest for two other values."""
    place = rare(size)
    shares = np.full(size, (1.0 - share) / 2.0 / (size - 1))
    for other in (size // 10, place - 1):
        shares[other] += (1.0 - share) / 4.0
    shares[place] = share
    whole: Floats = shares / shares.sum()
    return whole


def weights_of(size: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return sets and functions of the value, by name."""
    place, chosen = np.arange(size) / (size - 1.0), rare(size)
    heavy = np.full(size, 0.01) * place
    heavy[chosen] = 1.0
    sets = {
        "value": indicator(size, np.array([chosen])),
        "range": indicator(size, np.arange(max(0, chosen - 4), chosen + 1)),
        "prefix": indicator(size, np.arange(chosen)),
    }
    functions = {
        "mean": place,
        "cosine": np.cos(4.0 * np.pi * place),
        "exp(8x)": np.exp(8.0 * (place - 1.0)),
        "one heavy": heavy,
    }
    return sets, functions


@dataclass(frozen=True)
class _Lists:
    """The sums of a mechanism's queries: one by one, and in lists that are bounded together.

    `levels` are the levels of the areas, and `weights`, float64 `(.., k)`, those of all queries.
    """

    names: list[str]
    weights: Floats
    queries: tuple[AffineSums, AffineSums]
    values: AffineSums
    levels: list[AffineSums]
    areas: list[Floats]
    tree: AreaTree

    @classmethod
    def of(cls, mechanism: Mechanism) -> "_Lists":
        sets, functions = weights_of(mechanism.size)
        queries = prepare_queries(mechanism)
        of_sets = [queries.set_query(weights) for weights in sets.values()]
        of_functions = list(linear_queries(queries, functions.values()))
        tree = prepare_tree(mechanism, (mechanism.size,), ordered=True)
        levels = [np.flatnonzero(tree.level == level) for level in range(int(tree.level.max()) + 1)]
        return cls(
            names=[*sets, *functions],
            weights=np.stack([*sets.values(), *functions.values()]),
            queries=(
                AffineSums.of(
                    mechanism, lambda s: query_sums(queries, s, of_sets, indicators=True)
                ),
                AffineSums.of(
                    mechanism, lambda s: query_sums(queries, s, of_functions, indicators=False)
                ),
            ),
            values=AffineSums.of(mechanism, lambda s: value_sums(mechanism, s, mechanism.count(s))),
            levels=[
                AffineSums.of(mechanism, partial(_areas, mechanism, tree, one)) for one in levels
            ],
            areas=[_members(tree, places, mechanism.size) for places in levels],
            tree=tree,
        )


def _areas(mechanism: Mechanism, tree: AreaTree, places: Integers, statistic: Integers) -> Sums:
    return area_sums(mechanism, statistic, mechanism.count(statistic), tree, places)


def _members(tree: AreaTree, places: Integers, size: int) -> Floats:
    return np.stack([indicator(size, tree.values(place)) for place in places.tolist()])


def sample(counts: Integers, n: int, rng: np.random.Generator) -> Integers:
    """Draw n of the devices with each value, without replacement: `(r, k)` -> `(r, k)`."""
    drawn = np.empty_like(counts)
    rest, left = counts.sum(axis=1), np.full(len(counts), n)
    for value in range(counts.shape[1]):
        own = counts[:, value]
        drawn[:, value] = rng.hypergeometric(own, rest - own, left)
        rest, left = rest - own, left - drawn[:, value]
    return drawn


def cells(
    name: str,
    epsilon: float,
    ns: list[int],
    shares: list[float],
    repetitions: int,
    *,
    methods: Sequence[Method] = METHODS,
) -> Iterator[Cell]:
    """Yield the cells of one mechanism, all estimands."""
    mechanism = {**MECHANISMS, **FILES}[name](epsilon)
    lists = _Lists.of(mechanism)
    for (n, share), (estimand, part) in product(product(ns, shares), WHOLE.items()):
        case = Case(name, mechanism, "rare", shares_of(share, mechanism.size), n)
        seed = zlib.crc32(f"{name}/{epsilon}/{n}/{share}".encode())
        rng = np.random.default_rng([seed, 2])
        devices = n if part in (0.0, 1.0) else round(n / part)
        people = rng.multinomial(devices, case.shares, repetitions)
        counts = people if devices == n else sample(people, n, rng)
        statistics = draw_of(mechanism, counts, seed)
        truth = (case.shares[None] if part == 0.0 else people / devices).repeat(
            repetitions if part == 0.0 else 1, axis=0
        )
        sampling = Sampling(active=(devices - n) / (devices - 1))
        options = Options(estimand=cast("Estimand", estimand.split(",")[0]), sampling=sampling)
        covered, width = _measured(lists, statistics, truth, n, options, methods)
        for place, query in enumerate([*lists.names, *TOGETHER]):
            yield Cell(
                *(name, estimand, n, epsilon, share, query),
                {method: float(covered[method][place]) for method in methods},
                {method: float(width[method][place]) for method in methods},
            )


def _measured(
    lists: _Lists,
    statistics: Integers,
    truth: Floats,
    n: int,
    options: Options,
    methods: Sequence[Method],
) -> tuple[dict[Method, Floats], dict[Method, Floats]]:
    """Return how often bounds hold `truth`, `(r, k)`, and their widths, query by query."""
    covered: dict[Method, Floats] = {}
    width: dict[Method, Floats] = {}
    sums = [part.at(statistics) for part in lists.queries]
    values, levels = lists.values.at(statistics), [one.at(statistics) for one in lists.levels]
    wanted = truth @ lists.weights.T
    least, most = lists.weights.min(axis=1), lists.weights.max(axis=1)
    for method in methods:
        chosen = replace(options, method=method)
        found = [bound(one, n, chosen) for one in sums]
        low, high, value = (
            np.concatenate([getattr(one, end) for one in found], axis=1)
            for end in ("low", "high", "value")
        )
        error = np.sqrt(((np.clip(value, least, most) - wanted) ** 2).mean(axis=0))
        together = replace(chosen, simultaneous=True, family=len(lists.names))
        parts = error_levels(lists.tree, options)
        of_level = replace(chosen, simultaneous=True, confidence=1.0 - 0.05 / parts)
        joint = (
            (_holds(values, truth, n, replace(chosen, simultaneous=True)),),
            [
                _holds(one, wanted[:, at], n, together)
                for one, at in zip(sums, (slice(3), slice(3, None)), strict=True)
            ],
            [
                _holds(one, truth @ areas.T, n, of_level)
                for one, areas in zip(levels, lists.areas, strict=True)
            ],
        )
        alone = ((low <= wanted + 1e-9) & (wanted <= high + 1e-9)).mean(axis=0)
        lists_hold = [np.logical_and.reduce(one).mean() for one in joint]
        covered[method] = np.append(alone, lists_hold)
        relative = (high - low).mean(axis=0) / np.maximum(4.0 * error, 1.0 / n)
        width[method] = np.append(relative, np.full(len(TOGETHER), np.nan))
    return covered, width


def _holds(sums: Sums, truth: Floats, n: int, options: Options) -> NDArray[np.bool_]:
    """Return the repetitions in which all bounds of a list hold."""
    found = bound(sums, n, options)
    inside = (found.low <= truth + 1e-9) & (truth <= found.high + 1e-9)
    return np.asarray(inside.all(axis=1))


def print_table(cells: list[Cell], repetitions: int, methods: Sequence[Method]) -> None:
    """Print by mechanism and n: lowest coverage, cells that fail, mean width."""
    heads = [f"{e}: {method}" for e in WHOLE for method in methods]
    print(f"| mechanism | reports | {' | '.join(heads)} |\n|---|---:|{'---|' * len(heads)}")
    for name, n in dict.fromkeys((c.mechanism, c.n) for c in cells):
        entries = []
        for estimand, method in product(WHOLE, methods):
            of = [c for c in cells if (c.mechanism, c.n, c.estimand) == (name, n, estimand)]
            low = min(c.covered[method] for c in of)
            failed = sum(c.fails(method, repetitions, len(cells)) for c in of)
            width = float(np.nanmean([c.width[method] for c in of]))
            entries.append(f"{low:.3f}{f' ({failed})' if failed else ''}, {width:.2f}")
        print(f"| `{name}` | {n:,} | {' | '.join(entries)} |")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.coverage_grid", description=__doc__
    )
    every = [*MECHANISMS, *FILES]
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--mechanisms", nargs="+", choices=every, default=every)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.3, 1.0, 3.0, 6.0, 9.0])
    parser.add_argument("--n", nargs="+", type=int, default=[60, 300, 5_000, 100_000])
    parser.add_argument("--shares", nargs="+", type=float, default=[0.001, 0.01, 0.1, 0.5])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    asked = parser.parse_args()
    found: list[Cell] = []
    began = time.process_time()
    for name in asked.mechanisms:
        for epsilon in asked.epsilons[:1] if name in FILES else asked.epsilons:
            found += cells(
                name,
                epsilon,
                asked.n,
                asked.shares,
                asked.repetitions,
                methods=asked.methods,
            )
    print(f"{len(found):,} cells of {asked.repetitions:,} repetitions, 95% bounds\n")
    print_table(found, asked.repetitions, asked.methods)
    failed = [
        (m, c) for m in asked.methods for c in found if c.fails(m, asked.repetitions, len(found))
    ]
    chance = bdtrik(1.0 - 0.5 ** (1.0 / len(found)), asked.repetitions, CLAIMED)
    print(f"\nlowest of so many cells at {CLAIMED} by chance: {chance / asked.repetitions:.3f}")
    for method in asked.methods:
        below = sum(m == method for m, _ in failed)
        print(f"\n{method}: {below} cells below {CLAIMED}; the lowest:")
        for cell in sorted(found, key=lambda c: c.covered[method])[:10]:
            print(
                f"  {cell.covered[method]:.4f} {cell.mechanism}, {cell.estimand}, n {cell.n}, "
                f"epsilon {cell.epsilon:g}, share {cell.share:g}: {cell.query}"
            )
    print(f"\n{time.process_time() - began:,.0f} s")
    return 1 if any(method == "padded" for method, _ in failed) else 0


if __name__ == "__main__":
    sys.exit(main())
