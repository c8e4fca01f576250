"""`subset-selection` against its definition, in exact rationals: channel, draws and reports."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from ldpstream.mechanisms import Blocks, SpecError
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.subset.selection import MAX_BLOCK, SubsetSelection
from ldpstream.mechanisms.families.subset.subsets import best_subsets, draw_subsets
from tests.conformance.instances import UNEQUAL
from tests.exact.enumeration import Scripted, accumulated, rows_of

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


def listed(mechanism: SubsetSelection) -> Iterator[tuple[int, ...]]:
    """The values of each possible report, in order."""
    for block in range(mechanism.blocks.count):
        values = np.flatnonzero(mechanism.blocks.of_value == block).tolist()
        chosen = mechanism.subsets[mechanism.layout.kinds[block]].chosen
        yield from combinations(values, chosen)


@EVERY
def test_the_channel_is_its_definition(mechanism: SubsetSelection):
    for value, row in enumerate(rows_of(mechanism)):
        block = mechanism.blocks.of_value[value]
        s = mechanism.subsets[mechanism.layout.kinds[block]]
        own = Fraction(s.threshold, WORD)
        held = math.comb(s.size - 1, s.chosen - 1)
        for members, probability in zip(listed(mechanism), row, strict=True):
            if value in members:
                assert probability == own / held
            elif mechanism.blocks.of_value[members[0]] == block:
                assert probability == (1 - own) / math.comb(s.size - 1, s.chosen)
            else:
                assert probability == 0


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("wanted", [True, False])
def test_every_order_of_the_keys_gives_each_subset_as_often(size: int, wanted: bool):
    """Small keys are enumerated with their ties: equally often each, ties drawn again."""
    subsets = best_subsets(Fraction(1, 2), size)
    place, width = 1, 3
    grids = np.meshgrid(*[np.arange(width)] * size, indexing="ij")
    keys = np.stack(grids, axis=-1).reshape(-1, size)
    counts: dict[tuple[int, ...], int] = {}
    for row in keys.tolist():
        # A tie takes the second draw, which is not counted.
        spare = list(range(10, 10 + size))
        entropy = Scripted(halves(row), halves(spare))
        (taken,) = draw_subsets(entropy, subsets, np.array([place]), np.array([wanted]))
        members = tuple(np.flatnonzero(taken).tolist())
        assert len(members) == subsets.chosen
        assert (place in members) == wanted
        if entropy.left:
            counts[members] = counts.get(members, 0) + 1
    possible = [m for m in combinations(range(size), subsets.chosen) if (place in m) == wanted]
    assert sorted(counts) == possible
    assert len(set(counts.values())) == 1


def halves(keys: list[int]) -> list[int]:
    padded = [*keys, 0] if len(keys) % 2 else keys
    return [low + (high << 32) for low, high in zip(padded[::2], padded[1::2], strict=True)]


@EVERY
def test_the_threshold_decides_who_holds_the_own_value(mechanism: SubsetSelection):
    for value in range(mechanism.size):
        threshold = int(mechanism.layout.thresholds[mechanism.blocks.of_value[value]])
        size = mechanism.blocks.sizes[mechanism.blocks.of_value[value]]
        for word, holds in [(0, True), (threshold - 1, True), (threshold, False)]:
            batches = [[word]] if size == 1 else [[word], halves(list(range(1, size + 1)))]
            report = mechanism.privatize(np.array([value]), entropy=Scripted(*batches))
            statistic = accumulated(mechanism, report)
            assert statistic[value] == (holds or size == 1)


def test_impossible_budgets_and_blocks_are_refused():
    with pytest.raises(SpecError, match="block of two or more values"):
        SubsetSelection(1.0, Blocks(np.arange(4)))
    with pytest.raises(SpecError, match=r"^epsilon: expected a larger number"):
        SubsetSelection(1e-21, Blocks.one(1000))
    with pytest.raises(SpecError, match=r"blocks: expected blocks of at most 8192 values .* 8193"):
        SubsetSelection(1.0, Blocks.one(MAX_BLOCK + 1))
    with pytest.raises(ValueError, match="too large to enumerate"):
        SubsetSelection(1.0, Blocks.one(64)).channel()
    with pytest.raises(ValueError, match="too large to enumerate"):
        SubsetSelection(1.0, Blocks.one(64)).possible_reports()
