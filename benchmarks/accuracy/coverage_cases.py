"""The cases of `python -m benchmarks.accuracy.coverage`: every registered mechanism."""

import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.simulate import Case, uniform, zipf
from ldpstream.estimators.queries import range_values
from ldpstream.mechanisms.channels.designed import load_channel
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.design.randomized_response import RandomizedResponse
from ldpstream.mechanisms.families.high_low import HighLow
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
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy

Integers = NDArray[np.int64]

EPSILONS = (0.5, 1.0, 3.0)
NUMBERS = (200, 5000)
DATA = {"zipf": zipf, "uniform": uniform}
UNEQUAL = Blocks(np.repeat([0, 1, 2, 3], [1, 2, 7, 30]))
EIGHTS = Blocks(np.arange(40) // 8)
CHANNELS = Path(__file__).parents[2] / "tests" / "vectors" / "channels"


def small_mechanisms(epsilon: float) -> dict[str, Mechanism]:
    """Return the mechanisms of the first table, k = 40 (`binary` and a prior: 2)."""
    return {
        "binary": Binary(epsilon, epsilon),
        "binary, twice the second": Binary(epsilon, 2 * epsilon),
        "binary, infinite first": Binary(math.inf, epsilon),
        "high-low, 10 sensitive": HighLow(epsilon, 40, frozenset(range(0, 40, 4))),
        "block-hadamard, 1 block": BlockHadamard(epsilon, Blocks.one(40)),
        "block-hadamard, 5 of 8": BlockHadamard(epsilon, EIGHTS),
        "block-hadamard, 1-2-7-30": BlockHadamard(epsilon, UNEQUAL),
        "randomized-r., 1 block": RandomizedResponse(epsilon, Blocks.one(40)),
        "randomized-r., 5 of 8": RandomizedResponse(epsilon, EIGHTS),
        "projective, 1 block": ProjectiveGeometry(epsilon, Blocks.one(40)),
        "projective, 1-2-7-30": ProjectiveGeometry(epsilon, UNEQUAL),
        "subset, 1-2-7-30": SubsetSelection(epsilon, UNEQUAL),
        "tree, 1 block": Tree(epsilon, Blocks.one(40)),
        "l1-geometric, 40": L1Geometric(epsilon, (40,)),
        "l1-geometric, 5 x 8": L1Geometric(epsilon, (5, 8)),
        "l1-bits, 40": L1Bits(epsilon, (40,)),
        "l1-bits, 5 x 8": L1Bits(epsilon, (5, 8)),
        "matrix, prefix, line": Matrix(
            MetricPolicy(epsilon, (40,)), Strategy.built_in("prefix", 40)
        ),
        "matrix, haar, 1-2-7-30": Matrix(
            BlockPolicy(epsilon, UNEQUAL), Strategy.built_in("haar", 40)
        ),
        "lip, prior 0.3": Lip(Prior(value=0.3), (epsilon,)),
        "lip, 20 levels": Lip(Prior(levels=20), (epsilon,)),
    }


def file_mechanisms() -> dict[str, Mechanism]:
    """Return `optimal` with every stored channel; their budgets are in the files."""
    return {
        f"optimal, {path.stem}": Optimal(load_channel(path.name, path.parent))
        for path in sorted(CHANNELS.iterdir())
    }


def large_mechanisms(epsilon: float) -> dict[str, Mechanism]:
    """Return the mechanisms of the table of top lists, k = 1,000."""
    tens, parts = Blocks(np.arange(1000) // 10), Blocks(np.arange(1000) // 25)
    return {
        "high-low, 250 sensitive": HighLow(epsilon, 1000, frozenset(range(0, 1000, 4))),
        "block-hadamard, 1 block": BlockHadamard(epsilon, Blocks.one(1000)),
        "block-hadamard, 40 of 25": BlockHadamard(epsilon, parts),
        "block-hadamard, 100 x 10": BlockHadamard(epsilon, tens),
        "randomized-r., 40 of 25": RandomizedResponse(epsilon, parts),
        "projective, 1 block": ProjectiveGeometry(epsilon, Blocks.one(1000)),
        "projective, 40 of 25": ProjectiveGeometry(epsilon, parts),
        "subset, 40 of 25": SubsetSelection(epsilon, parts),
        "tree, 1000": Tree(epsilon, Blocks.one(1000)),
        "l1-geometric, 1000": L1Geometric(epsilon, (1000,)),
        "l1-bits, 1000": L1Bits(epsilon, (1000,)),
        "matrix, haar, 1000": Matrix(
            BlockPolicy(epsilon, Blocks.one(1000)), Strategy.built_in("haar", 1000)
        ),
        "lip, 500 levels": Lip(Prior(levels=500), (epsilon,)),
    }


def cases(mechanisms: dict[str, Mechanism], epsilon: float | None) -> Iterator[Case]:
    """Yield each mechanism's cases: both kinds of data, both numbers of respondents."""
    text = "   " if epsilon is None else f"{epsilon:3.1f}"
    for (name, mechanism), (data, shares), n in product(mechanisms.items(), DATA.items(), NUMBERS):
        yield Case(f"{name:24} {text}", mechanism, data, shares(mechanism.size), n)


def small_cases() -> Iterator[Case]:
    """Yield all cases of the first table."""
    for epsilon in EPSILONS:
        yield from cases(small_mechanisms(epsilon), epsilon)
    yield from cases(file_mechanisms(), None)


def large_cases() -> Iterator[Case]:
    """Yield all cases of the table of top lists."""
    for epsilon in EPSILONS:
        yield from cases(large_mechanisms(epsilon), epsilon)


def ranges_of(mechanism: Mechanism) -> list[Integers]:
    """Return the ranges asked for: between eighths of the values, or some boxes of a plane.

    40 values give 36 ranges of 5 to 40 values, small domains fewer. The last is the whole domain.
    """
    k = mechanism.size
    cuts = sorted({eighth * k // 8 for eighth in range(9)})
    sets = [np.arange(a, b) for a, b in product(cuts, cuts) if a < b and (a, b) != (0, k)]
    shape = getattr(mechanism, "shape", (k,))
    if len(shape) == 2:
        pairs = [(0, 2), (1, 3), (4, 4)], [(1, 6), (3, 3), (4, 7)]
        sets += [range_values(shape, box) for box in product(*pairs)]
    return [*sets, np.arange(k)]
