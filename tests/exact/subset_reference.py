"""`subset-selection` from its definition: every report, row and decoder, in exact rationals."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from ldpstream.mechanisms import Blocks
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from tests.conformance.instances import UNEQUAL
from tests.exact.enumeration import Rows

CASES = [
    SubsetSelection(epsilon, blocks)
    for epsilon, blocks in [
        (1.0, Blocks.one(2)),
        (0.3, Blocks.one(7)),
        (1.0, Blocks.one(8)),
        (2.5, UNEQUAL),
        (0.1, UNEQUAL),
    ]
]
EVERY = pytest.mark.parametrize(
    "mechanism", CASES, ids=lambda m: f"{m.epsilon}-{m.blocks.count}-{m.size}"
)


def decoders_of(mechanism: SubsetSelection) -> Rows:
    """`h_x` of every report, from the supports of its block."""
    of_value, out = mechanism.blocks.of_value, []
    subsets = list(listed(mechanism))
    for value in range(mechanism.size):
        support = mechanism.subsets[mechanism.layout.kinds[of_value[value]]].support
        inside = [(value in members, of_value[members[0]]) for members in subsets]
        out.append(
            [
                (support.high if held else support.low) * int(block == of_value[value])
                for held, block in inside
            ]
        )
    return out


def listed(mechanism: SubsetSelection) -> Iterator[tuple[int, ...]]:
    """The values of each possible report, in order."""
    for block in range(mechanism.blocks.count):
        values = np.flatnonzero(mechanism.blocks.of_value == block).tolist()
        chosen = mechanism.subsets[mechanism.layout.kinds[block]].chosen
        yield from combinations(values, chosen)
