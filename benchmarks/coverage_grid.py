"""Where do bounds fail, and how wide are they? `python -m benchmarks.coverage_grid`.

One grid: mechanism, estimand, n, epsilon, share, and weights of which one is heavy. Every cell
draws seeded repetitions of users and reports, and counts how often the bounds hold the truth: of
values of that share, ranges, prefixes, and the means of four functions of the value. Printed are
the cells whose coverage is below 0.94 by its 99.99% upper limit (Clopper and Pearson), method by
method, then the mean width, by mechanism and n, over 4 root mean square errors of the best point
estimate: the unbiased one, cut to what the query can be. Last is the processor time of the run.
Exit status 1 if a cell of `padded` or `exact` is printed.
"""

import argparse
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks.repeated import AffineSums, draw
from benchmarks.simulate import Case
from ldpstream.estimators.bounds.options import Estimand, Method, Options
from ldpstream.estimators.bounds.two_valued import clopper_pearson_parts
from ldpstream.estimators.estimate import bound, indicator
from ldpstream.estimators.queries.counts import prepare_queries
from ldpstream.estimators.queries.sums import query_sums
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.design.randomized_response import RandomizedResponse
from ldpstream.mechanisms.families.high_low import HighLow
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.families.tree.tree import Tree
from ldpstream.mechanisms.interface.mechanism import Mechanism

Floats = NDArray[np.float64]

SIZE: Final = 32
RARE: Final = 20
"""The value whose share is the grid's; its weight is the heavy one."""
BLOCKS: Final = Blocks(np.array([0] * 3 + [1] * 5 + [2] * 24))
MECHANISMS: Final[dict[str, Callable[[float], Mechanism]]] = {
    "randomized-response": lambda epsilon: RandomizedResponse(epsilon, Blocks.one(SIZE)),
    "block-hadamard": lambda epsilon: BlockHadamard(epsilon, Blocks.one(SIZE)),
    "block-hadamard, blocks": lambda epsilon: BlockHadamard(epsilon, BLOCKS),
    "projective-geometry": lambda epsilon: ProjectiveGeometry(epsilon, BLOCKS),
    "high-low": lambda epsilon: HighLow(epsilon, SIZE, frozenset(range(0, SIZE, 3))),
    "subset-selection": lambda epsilon: SubsetSelection(epsilon, BLOCKS),
    "tree": lambda epsilon: Tree(epsilon, Blocks.one(SIZE)),
    "l1-geometric": lambda epsilon: L1Geometric(epsilon, (SIZE,)),
}
METHODS: Final[tuple[Method, ...]] = ("padded", "normal", "bernstein")
LEAST: Final = 0.94


@dataclass(frozen=True)
class Cell:
    """One query in one setting: coverage and width of each method, over r repetitions."""

    mechanism: str
    estimand: Estimand
    n: int
    epsilon: float
    share: float
    query: str
    covered: dict[Method, float]
    width: dict[Method, float]

    def limit(self, method: Method, repetitions: int) -> float:
        """Return the 99.99% upper limit of a coverage."""
        inside = np.array(round(self.covered[method] * repetitions) * 1.0)
        return float(clopper_pearson_parts(inside, np.array(1.0 * repetitions), 2e-4)[1])


def shares_of(share: float) -> Floats:
    """Return shares of which the rare value has one, and two of the others half of the rest."""
    shares = np.full(SIZE, (1.0 - share) / 2.0 / (SIZE - 1))
    shares[3] += (1.0 - share) / 4.0
    shares[RARE - 1] += (1.0 - share) / 4.0
    shares[RARE] = share
    whole: Floats = shares / shares.sum()
    return whole


def weights_of() -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return sets and functions of the value, by name."""
    place = np.arange(SIZE) / (SIZE - 1.0)
    heavy = np.full(SIZE, 0.01) * place
    heavy[RARE] = 1.0
    sets = {
        "value": indicator(SIZE, np.array([RARE])),
        "range": indicator(SIZE, np.arange(RARE - 4, RARE + 1)),
        "prefix": indicator(SIZE, np.arange(RARE)),
    }
    functions = {
        "mean": place,
        "cosine": np.cos(4.0 * np.pi * place),
        "exp(8x)": np.exp(8.0 * (place - 1.0)),
        "one heavy": heavy,
    }
    return sets, functions


def cells(
    name: str, epsilon: float, ns: list[int], shares: list[float], repetitions: int
) -> Iterator[Cell]:
    """Yield the cells of one mechanism, all estimands."""
    mechanism = MECHANISMS[name](epsilon)
    sets, functions = weights_of()
    queries = prepare_queries(mechanism)
    of_sets = [queries.set_query(weights) for weights in sets.values()]
    of_functions = [queries.linear_query(weights) for weights in functions.values()]
    parts = [
        AffineSums.of(mechanism, lambda s: query_sums(queries, s, of_sets, indicators=True)),
        AffineSums.of(mechanism, lambda s: query_sums(queries, s, of_functions, indicators=False)),
    ]
    names = [*sets, *functions]
    weights = np.stack([*sets.values(), *functions.values()])
    for n, share in product(ns, shares):
        case = Case(name, mechanism, "rare", shares_of(share), n)
        seed = zlib.crc32(f"{name}/{epsilon}/{n}/{share}".encode())
        counts, statistics = draw(case, repetitions, seed)
        sums = [part.at(statistics) for part in parts]
        for estimand in get_args(Estimand):
            people = counts / n if estimand == "respondents" else case.shares[None]
            truth = np.broadcast_to(people @ weights.T, (repetitions, len(names)))
            covered: dict[Method, Floats] = {}
            width: dict[Method, Floats] = {}
            for method in METHODS:
                found = [bound(s, n, Options(method=method, estimand=estimand)) for s in sums]
                low = np.concatenate([one.low for one in found], axis=1)
                high = np.concatenate([one.high for one in found], axis=1)
                inside = (low <= truth + 1e-9) & (truth <= high + 1e-9)
                value = np.concatenate([one.value for one in found], axis=1)
                best = np.clip(value, weights.min(axis=1), weights.max(axis=1))
                error = np.sqrt(((best - truth) ** 2).mean(axis=0))
                covered[method] = inside.mean(axis=0)
                width[method] = (high - low).mean(axis=0) / np.maximum(4.0 * error, 1.0 / n)
            for place, query in enumerate(names):
                yield Cell(
                    *(name, estimand, n, epsilon, share, query),
                    {method: float(covered[method][place]) for method in METHODS},
                    {method: float(width[method][place]) for method in METHODS},
                )


def main() -> int:
    """Print the cells that fail, and the table of widths."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage_grid", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--mechanisms", nargs="+", choices=MECHANISMS, default=list(MECHANISMS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.3, 1.0, 3.0, 8.0])
    parser.add_argument("--n", nargs="+", type=int, default=[50, 300, 5_000, 100_000])
    parser.add_argument("--shares", nargs="+", type=float, default=[0.001, 0.01, 0.1, 0.5])
    asked = parser.parse_args()
    found: list[Cell] = []
    began = time.process_time()
    for name, epsilon in product(asked.mechanisms, asked.epsilons):
        found += cells(name, epsilon, asked.n, asked.shares, asked.repetitions)
    print(f"{len(found):,} cells of {asked.repetitions:,} repetitions, 95% bounds")
    failed = {
        method: [c for c in found if c.limit(method, asked.repetitions) < LEAST]
        for method in METHODS
    }
    for method, cells_of in failed.items():
        lowest = min(found, key=lambda c: c.covered[method])
        print(f"\n{method}: {len(cells_of)} cells below {LEAST}; lowest {lowest.covered[method]}")
        for cell in sorted(cells_of, key=lambda c: c.covered[method])[:10]:
            print(
                f"  {cell.covered[method]:.4f} {cell.mechanism}, {cell.estimand}, n {cell.n}, "
                f"epsilon {cell.epsilon:g}, share {cell.share:g}: {cell.query}"
            )
    print(f"\n{'mean width over 4 errors':50}", *METHODS)
    for name, estimand, n in product(asked.mechanisms, get_args(Estimand), asked.n):
        of = [c for c in found if (c.mechanism, c.estimand, c.n) == (name, estimand, n)]
        means = (np.mean([c.width[method] for c in of]) for method in METHODS)
        print(f"{name:25} {estimand:12} {n:9}   ", *(f"{mean:8.2f}" for mean in means))
    print(f"\n{time.process_time() - began:,.0f} s")
    return 1 if failed["padded"] else 0


if __name__ == "__main__":
    sys.exit(main())
