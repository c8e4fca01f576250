"""Is a plan's bound below every mechanism? `python -m benchmarks.accuracy.plan_bounds`.

Random policies of all kinds with random shares and queries. All mechanisms that satisfy a policy
are compared with the bound for all its channels. A mechanism below a bound is printed with the
policy's number, and the exit status is then 1. The table has a row for each kind: policies, those
with a bound, mechanisms compared with one, the least and the mean ratio of the best mechanism's
variance to the bound, and the mean ratio of the best channel found to it.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final, get_args

import numpy as np

from ldpstream.estimators.bounds.options import Estimand
from ldpstream.estimators.design.cone import DesignError
from ldpstream.estimators.planning.choices import Objective
from ldpstream.estimators.planning.compare import Candidate, compare
from ldpstream.estimators.planning.optimum import Optimum, find_optimum
from ldpstream.estimators.planning.workload import PlannedWorkload
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.domains.parse import Domain, Size, Sizes
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.strategy import Strategy
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BinaryPolicy, BlockPolicy, HighLowPolicy, Policy

_SHAPES: Final = ((2, 2), (2, 3), (3, 3), (2, 4))
_SEARCH_SECONDS: Final = 0.05
Rng = np.random.Generator


def _epsilon(rng: Rng) -> float:
    return round(float(rng.uniform(0.2, 3.0)), 2)


def _classical(size: int, rng: Rng) -> Policy:
    return BlockPolicy(_epsilon(rng), Blocks.one(size))


def _blocks(size: int, rng: Rng) -> Policy:
    of_value = rng.integers(0, max(2, size // 3), size)
    of_value[1] = of_value[0]
    return BlockPolicy(_epsilon(rng), Blocks(np.unique(of_value, return_inverse=True)[1]))


def _high_low(size: int, rng: Rng) -> Policy:
    sensitive = rng.permutation(size)[: rng.integers(1, size)]
    return HighLowPolicy(_epsilon(rng), size, frozenset(sensitive.tolist()))


def _rows(size: int, rng: Rng) -> Policy:
    """Return two budgets, each for some of the values "from", or none."""
    budgets = np.array([_epsilon(rng), _epsilon(rng), np.inf if rng.random() < 0.3 else 1.0])
    rows = np.tile(budgets[rng.integers(0, 3, size), None], size)
    rows[0] = budgets[0]
    np.fill_diagonal(rows, 0.0)
    return MatrixPolicy.of(rows)


def _nested(size: int, rng: Rng) -> Policy:
    """Return a budget inside blocks and a larger one between them."""
    inside, between = sorted([_epsilon(rng), _epsilon(rng) + 0.1])
    of_value = rng.integers(0, 3, size)
    rows = np.where(of_value[:, None] == of_value, inside, between)
    np.fill_diagonal(rows, 0.0)
    return MatrixPolicy.of(rows)


def _entries(size: int, rng: Rng) -> Policy:
    rows = rng.uniform(0.2, 3.0, (size, size)).round(2)
    rows[rng.random(rows.shape) < rng.choice([0.0, 0.3, 0.8])] = np.inf
    rows[0, 1] = 1.0
    np.fill_diagonal(rows, 0.0)
    return MatrixPolicy.of(rows)


def _large(size: int, rng: Rng) -> Policy:
    """Return a policy whose extreme rays are too many to list."""
    return [_classical, _high_low, _rows][int(rng.integers(3))](size + 21, rng)


def _line(size: int, rng: Rng) -> Policy:
    return MetricPolicy(_epsilon(rng) / 2.0, (size,))


def _grid(size: int, rng: Rng) -> Policy:
    return MetricPolicy(_epsilon(rng) / 2.0, _SHAPES[size % len(_SHAPES)])


def _graph(size: int, rng: Rng) -> Policy:
    ends = [(int(rng.integers(0, x)), x) for x in range(1, size) if x == 1 or rng.random() < 0.8]
    return GraphPolicy(size, tuple((a, b, Fraction(str(_epsilon(rng)))) for a, b in ends))


def _binary(_size: int, rng: Rng) -> Policy:
    return BinaryPolicy(_epsilon(rng), float("inf") if rng.random() < 0.3 else _epsilon(rng))


KINDS: Final[Mapping[str, Callable[[int, Rng], Policy]]] = MappingProxyType(
    {
        "classical": _classical,
        "blocks": _blocks,
        "high-low": _high_low,
        "a budget per row": _rows,
        "many values": _large,
        "nested": _nested,
        "entries": _entries,
        "line": _line,
        "grid": _grid,
        "graph": _graph,
        "binary": _binary,
    }
)
"""Random policies by kind."""


def planned(seed: int, most: int) -> tuple[str, list[Candidate], Optimum | None]:
    """Return the kind of a random policy, its mechanisms, and the optimum if there is one.

    Policies and workloads follow from the seed. Mechanisms below the bound raise AssertionError.
    """
    rng = np.random.default_rng(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    policy = KINDS[kind](int(rng.integers(3, most, endpoint=True)), rng)
    shape = policy.shape if isinstance(policy, MetricPolicy) else (policy.size,)
    domain: Domain = Size(*shape) if len(shape) == 1 else Sizes(shape)
    shares = np.full(policy.size, 1.0 / policy.size)
    if rng.random() < 0.5:
        shares = 0.9 * rng.dirichlet(np.ones(policy.size)) + 0.1 / policy.size
    objectives: tuple[Objective, ...] = get_args(Objective)
    estimands: tuple[Estimand, ...] = ("respondents", "population")
    workload = PlannedWorkload(
        shape,
        ordered=True,
        shares=shares,
        top=policy.size,
        objective=objectives[int(rng.integers(len(objectives)))],
        estimand=estimands[int(rng.integers(2))],
    )
    try:
        configured = Matrix(policy, Strategy.built_in("identity", policy.size))
    except SpecError:
        # All is disclosed, or not even these mechanisms keep budgets that are not closed.
        return kind, [], None
    candidates = list(compare(configured, domain, workload).candidates)
    try:
        optimum = find_optimum(policy, workload, candidates, seconds=_SEARCH_SECONDS)
    except DesignError:
        return kind, candidates, None
    return kind, candidates, optimum


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policies", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--most", type=int, default=12, help="most values; 21 more for many")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    options = parser.parse_args()
    rows, wrong, began = defaultdict(list), 0, time.monotonic()
    for seed in range(options.first, options.first + options.policies):
        if time.monotonic() - began > options.seconds:
            break
        try:
            kind, candidates, optimum = planned(seed, options.most)
        except AssertionError as error:
            print(f"policy {seed}: {error}")
            wrong += 1
            continue
        rows[kind].append((candidates, optimum))
    print(f"{sum(map(len, rows.values())) + wrong:,} policies, {wrong} with a mechanism below")
    heads = "policies", "bounded", "pairs", "least", "best", "found"
    print(f"{'kind':<18}" + "".join(f"{head:>10}" for head in heads))
    for kind, found in rows.items():
        ratios, pairs = [], 0
        for candidates, optimum in found:
            if optimum is not None and optimum.least:
                best = candidates[0].variance
                ratios.append((best / optimum.least, optimum.variance / optimum.least))
                pairs += len(candidates)
        print(f"{kind:<18}{len(found):>10,}{len(ratios):>10,}{pairs:>10,}", end="")
        if ratios:
            least, means = min(ratios)[0], np.mean(ratios, axis=0)
            print(f"{least:>10.6f}{means[0]:>10.3f}{means[1]:>10.3f}", end="")
        print()
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(_main())
