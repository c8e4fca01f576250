"""Instances of every registered mechanism, on which every conformance check runs."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np

from ldpstream.mechanisms.channels.certificate import Certificate
from ldpstream.mechanisms.channels.designed import load_channel
from ldpstream.mechanisms.domains.blocks import Blocks, box_blocks
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.geometry_transform import Geometry
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.groups.designs import GroupDesign
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.families.groups.mechanism import (
    Groups,
    best_groups,
    of_designs,
    sensitive_groups,
)
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.lip.domain import Prior
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.strategy import Strategy
from ldpstream.mechanisms.families.optimal import Optimal
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.families.tree.tree import Tree
from ldpstream.mechanisms.families.weights.public import PublicWeights
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.interface.symbols import SymbolMechanism
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.groups import GroupBudget, GroupPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy

UNEQUAL = Blocks(np.array([2, 0, 1, 1, 2, 3, 2, 2, 2, 1, 4, 4]))
"""Blocks of 1, 3, 5, 1 and 2 values, interleaved."""
RAGGED = box_blocks((5, 7), (2, 3), "blocks")

BINARY = {
    "warner": Binary(1.0, 1.0),
    "asymmetric": Binary(0.5, 3.0),
    "mangat": Binary(math.inf, 1.0),
    "mangat-reversed": Binary(0.25, math.inf),
    "tiny": Binary(1e-6, 1e-6),
    "huge": Binary(50.0, 50.0),
    "lopsided": Binary(0.1, 50.0),
    "beyond-doubles": Binary(1e300, 1.0),
}
HIGH_LOW = {
    "one-of-two": HighLow(1.0, 2, frozenset({0})),
    "some": HighLow(1.0, 9, frozenset({1, 3, 4})),
    "all": HighLow(0.5, 5, frozenset(range(5))),
    "one-of-many": HighLow(3.0, 40, frozenset({39})),
    "tiny": HighLow(1e-6, 6, frozenset({0, 5})),
    "huge": HighLow(50.0, 6, frozenset({0, 5})),
    "large": HighLow(1.0, 90, frozenset(range(0, 90, 3))),
}
SIX = frozenset({1, 2, 4, 7, 8, 11})
SPACE, PLANE = GroupDesign(6, 1, Geometry(2, 3)), GroupDesign(9, 1, Geometry(3, 3))
NESTED = Blocks(np.array([0, 1, 0, 1, 1, 2, 3, 0, 1, 3, 3, 3]))


def inside(*epsilons: float) -> tuple[GroupBudget, ...]:
    """Budgets of disclosed groups."""
    return tuple(GroupBudget(epsilon, math.inf) for epsilon in epsilons)


GROUPS: dict[str, Groups] = {
    "subsets": sensitive_groups(1.0, 12, SIX, GroupDesign(6, 2)),
    "values": sensitive_groups(1.5, 12, SIX, GroupDesign(6)),
    "points": sensitive_groups(0.5, 12, SIX, SPACE),
    "every-point": sensitive_groups(1.0, 9, frozenset(range(7)), GroupDesign(7, 1, Geometry(2, 3))),
    "prime": sensitive_groups(1.0, 12, frozenset(range(9)), PLANE),
    "one-of-two": sensitive_groups(1.0, 2, frozenset({0}), GroupDesign(1)),
    "one-of-many": sensitive_groups(3.0, 40, frozenset({39}), GroupDesign(1)),
    "all": sensitive_groups(0.5, 5, frozenset(range(5)), GroupDesign(5)),
    "all-subsets": sensitive_groups(1.0, 5, frozenset(range(5)), GroupDesign(5, 2)),
    "tiny-subsets": sensitive_groups(1e-6, 9, frozenset(range(6)), GroupDesign(6, 3)),
    "huge-subsets": sensitive_groups(50.0, 9, frozenset(range(6)), GroupDesign(6, 2)),
    "large": sensitive_groups(
        1.0, 90, frozenset(range(0, 90, 3)), GroupDesign(30, 1, Geometry(3, 4))
    ),
    "large-subsets": sensitive_groups(1.0, 70, frozenset(range(0, 70, 2)), GroupDesign(35, 9)),
    "budgets": best_groups(GroupPolicy(NESTED, inside(0.5, 2.0, 1.0, 3.0))),
    "nested": best_groups(GroupPolicy(NESTED, (GroupBudget(1.0, 2.0, 4),))),
    "nested-points": of_designs(
        GroupPolicy(Blocks(np.arange(14) // 7), (GroupBudget(0.5, 1.5, 2),)),
        GroupDesign(7, 1, Geometry(2, 3)),
    ),
    "two-budgets": best_groups(
        GroupPolicy.of_sensitive(9, [SIX - {11}], [GroupBudget(1.0, 1.0), GroupBudget(3.0, 3.0)])
    ),
    "no-bound-across": best_groups(
        GroupPolicy(Blocks(np.arange(5) // 3), (GroupBudget(50.0, 60.0), GroupBudget(1.0, 1.0)))
    ),
    "wide-list": of_designs(
        GroupPolicy.of_sensitive(7, [frozenset(range(5))], [GroupBudget(1.0, 2.0)]),
        GroupDesign(5, 3),
    ),
    "two-lists": best_groups(
        GroupPolicy.of_sensitive(
            12, [SIX - {11}, frozenset({0, 5})], [GroupBudget(0.5, 1.0), GroupBudget(2.0, 2.0)]
        )
    ),
    "mixed": of_designs(
        GroupPolicy(
            NESTED,
            (GroupBudget(1.0, math.inf), GroupBudget(1.0, 2.0), GroupBudget(2.0, 2.0, 2)),
        ),
        GroupDesign(3, 2),
        GroupDesign(4, 2),
        GroupDesign(1),
        GroupDesign(4),
    ),
}
OVER_BLOCKS = {
    "one-block": (1.0, Blocks.one(8)),
    "two-values": (2.0, Blocks.one(2)),
    "unequal": (0.5, UNEQUAL),
    "ragged-grid": (1.0, RAGGED),
    "enumerated": (3.0, Blocks.one(64)),
    "tiny": (1e-6, UNEQUAL),
    "huge": (50.0, UNEQUAL),
    "large": (1.0, Blocks(np.arange(300) // 40)),
}
"""Budgets and blocks for the mechanisms that take these two."""
BLOCK_HADAMARD = {name: BlockHadamard(*given) for name, given in OVER_BLOCKS.items()}
RANDOMIZED_RESPONSE = {name: RandomizedResponse(*given) for name, given in OVER_BLOCKS.items()}
PROJECTIVE_GEOMETRY = {name: ProjectiveGeometry(*given) for name, given in OVER_BLOCKS.items()}
# Reports are subsets, and a block of 64 values has too many of them to list.
FEW_SUBSETS = {"enumerated": (3.0, Blocks(np.arange(64) // 16))}
SUBSET_SELECTION = {
    name: SubsetSelection(*given) for name, given in (OVER_BLOCKS | FEW_SUBSETS).items()
}
TREE = {
    "line": Tree(1.0, Blocks.one(8)),
    "two-values": Tree(2.0, Blocks.one(2)),
    "unequal": Tree(0.5, UNEQUAL),
    "enumerated": Tree(3.0, Blocks.one(33)),
    "plane": Tree(1.0, Blocks.one(15), (3, 5)),
    "space": Tree(2.0, Blocks.one(24), (2, 3, 4)),
    "planes": Tree(1.0, box_blocks((3, 5), (2, 3), "blocks"), (3, 5)),
    "prefixes": Tree(1.0, Blocks.one(9), (), "prefixes"),
    "own-ranges": Tree(1.0, Blocks.one(11), (), (((0, 3),), ((4, 10),))),
    "levels": Tree(1.0, UNEQUAL, (), "levels"),
    "squares": Tree(1.0, Blocks.one(18), (3, 6), "levels"),
    "tiny": Tree(1e-6, UNEQUAL),
    "huge": Tree(50.0, UNEQUAL),
    "large": Tree(1.0, Blocks(np.arange(70) // 20)),
}
L1_GEOMETRIC = {
    "line": L1Geometric(1.0, (9,)),
    "two-values": L1Geometric(2.0, (2,)),
    "plane": L1Geometric(0.5, (3, 5)),
    "flat-space": L1Geometric(0.25, (2, 1, 3)),
    "weighted": L1Geometric(1.0, (3, 3), weighted=True),
    "tiny": L1Geometric(1e-6, (6,)),
    "huge": L1Geometric(50.0, (6,)),
    "large": L1Geometric(0.7, (3, 5, 5)),
}
LIP = {
    "half": Lip(Prior(value=0.5), (1.0,)),
    "rare": Lip(Prior(value=0.01), (1.0,)),
    "almost-sure": Lip(Prior(value=0.9999), (0.1,)),
    "levels": Lip(Prior(levels=8), (0.5,)),
    "budgets": Lip(Prior(value=0.2), (0.5, 1.0, 2.0)),
    "both": Lip(Prior(levels=3), (2.0, 1.0)),
    "all-priors": Lip(Prior(levels=1), (1.0,)),
    "tiny": Lip(Prior(value=0.3), (1e-6,)),
    "huge": Lip(Prior(value=0.4), (50.0,)),
    "large": Lip(Prior(levels=64), (1.0,)),
}
L1_BITS = {
    "line": L1Bits(1.0, (9,)),
    "two-values": L1Bits(2.0, (2,)),
    "plane": L1Bits(0.5, (3, 5)),
    "flat-space": L1Bits(0.25, (2, 1, 3)),
    "space": L1Bits(1.5, (3, 2, 4)),
    "weighted": L1Bits(1.0, (3, 3), weighted=True),
    "tiny": L1Bits(1e-6, (6,)),
    "huge": L1Bits(50.0, (6,)),
    "unlisted": L1Bits(1.0, (37,)),
    "large": L1Bits(0.7, (3, 5, 5)),
    "long": L1Bits(1.0, (300,)),
}

CHANNELS = Path(__file__).parents[1] / "vectors" / "channels"
OPTIMAL = {path.stem: Optimal(load_channel(path.name, CHANNELS)) for path in CHANNELS.iterdir()}
LINE, TRIPLE = Strategy.built_in("prefix", 3), BlockPolicy(20.0, Blocks.one(3))
PAIRED = BlockPolicy(16.0, Blocks(np.array([0, 0, 1, 1])))
CYCLE = GraphPolicy(5, tuple((x, (x + 1) % 5, Fraction(1, 2)) for x in range(5)))
MATRIX = {
    "two-values": Matrix(MetricPolicy(1.0, (2,)), Strategy.built_in("prefix", 2)),
    "line": Matrix(MetricPolicy(8.0, (3,)), LINE),
    "wavelets": Matrix(TRIPLE, Strategy.built_in("haar", 3)),
    "identity": Matrix(TRIPLE, Strategy.built_in("identity", 3)),
    "blocks": Matrix(PAIRED, Strategy.built_in("haar", 4)),
    "own-rows": Matrix(TRIPLE, Strategy("file", np.array([[2, 0, 1], [1, 1, 1], [0, 3, -1]]))),
    "own-scales": Matrix(TRIPLE, Strategy.built_in("haar", 3), (0.25, 0.1)),
    "tiny": Matrix(MetricPolicy(1e-6, (6,)), Strategy.built_in("prefix", 6)),
    "huge": Matrix(MetricPolicy(50.0, (4,)), Strategy.built_in("prefix", 4)),
    "cycle": Matrix(CYCLE, Strategy.built_in("identity", 5)),
    "large": Matrix(BlockPolicy(0.7, Blocks.one(70)), Strategy.built_in("hierarchical", 70)),
}

PUBLIC_WEIGHTS = {
    "public": PublicWeights(L1Bits(1.0, (3,)), 1),
    "public-plane": PublicWeights(L1Bits(0.5, (2, 3)), 2),
    "public-counted": PublicWeights(L1Geometric(1.0, (5,)), 2),
    "public-blocks": PublicWeights(RandomizedResponse(1.0, Blocks(np.array([0, 0, 1, 2, 2]))), 2),
    "public-subsets": PublicWeights(SubsetSelection(0.8, Blocks.one(4)), 2),
    "public-binary": PublicWeights(Binary(1.0, 2.0), 1),
    "public-space": PublicWeights(L1Geometric(0.7, (3, 5, 5)), 1),
}
SAMPLED = {
    "three": Sampled(
        ("place", "answer", "number"),
        (
            SubsetSelection(1.0, Blocks(np.array([0, 0, 0, 1, 1, 2]))),
            Binary(0.5, 2.0),
            L1Bits(0.75, (4,)),
        ),
        (1 << 62, 3 << 60, 9 << 60),
    ),
}


def is_listed(mechanism: Mechanism) -> bool:
    """Whether its reports are few enough to be listed."""
    try:
        return len(mechanism.possible_reports()) > 0
    except ValueError:
        return False


INSTANCES: dict[str, Mechanism] = {
    f"{m.id}:{name}": m
    for group in (
        BINARY,
        HIGH_LOW,
        GROUPS,
        BLOCK_HADAMARD,
        RANDOMIZED_RESPONSE,
        PROJECTIVE_GEOMETRY,
        SUBSET_SELECTION,
        L1_BITS,
        L1_GEOMETRIC,
        LIP,
        OPTIMAL,
        MATRIX,
        TREE,
        PUBLIC_WEIGHTS,
        SAMPLED,
    )
    for name, m in group.items()
}
FIRST = {name.partition(":")[0]: name for name in reversed(INSTANCES)}
"""The first instance of each mechanism, by the mechanism's id."""
FEW = {
    name: INSTANCES[name]
    for name in INSTANCES
    if name in FIRST.values() or name.endswith((":unequal", ":plane", ":blocks", ":both"))
}
"""The first of each and some of several blocks or dimensions, for tests of anything but sizes."""
DECODED = {name: m for name, m in INSTANCES.items() if not isinstance(m, PublicWeights)}
"""Those with a decoder of their own: with public weights, queries are of the values alone."""
LISTED = {name: m for name, m in INSTANCES.items() if is_listed(m)}
"""Those whose channels are tested entry by entry."""
SYMBOLS = {name: m for name, m in INSTANCES.items() if isinstance(m, SymbolMechanism)}
"""Those that report one symbol."""
_CERTIFICATES: dict[int, Certificate] = {}


def certificate(mechanism: Mechanism) -> Certificate:
    """Return an instance's certificate, which is computed once."""
    if id(mechanism) not in _CERTIFICATES:
        _CERTIFICATES[id(mechanism)] = mechanism.certify()
    return _CERTIFICATES[id(mechanism)]
