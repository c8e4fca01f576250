"""`subset-selection` against its definition: channel, draws, reports, and variance."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from ldpstream.mechanisms import Blocks, SpecError
from ldpstream.mechanisms.exact.dyadic import budget, set_threshold
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.subset.selection import MAX_BLOCK, SubsetSelection
from ldpstream.mechanisms.families.subset.subsets import Subsets, best_subsets, draw_subsets
from tests.conformance.instances import UNEQUAL
from tests.exact.enumeration import Scripted, accumulated, predicted_value_variances, rows_of

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


@pytest.mark.parametrize(("epsilon", "ratio"), [(1.0, 1.27), (2.0, 2.4), (3.0, 5.5), (4.0, 14.0)])
def test_large_blocks_have_the_variance_of_the_theory(epsilon: float, ratio: float):
    """Respondents: `(4 e^eps/(e^eps - 1)^2 P_j + p_x)/n`, Hadamard `(c^2 P_j - p_x)/n`."""
    blocks = Blocks(np.arange(8000) // 4000)
    mechanism = SubsetSelection(epsilon, blocks)
    p = np.full(8000, 0.5 / 8000)
    p[:2] = 0.25 / 4000 / 2, 0.3
    p[4000:] = 0.2 / 4000
    p[2:4000] = (0.8 - p[:2].sum()) / 3998
    e = math.exp(epsilon)
    found = predicted_value_variances(mechanism, [0, 1], shares=p)
    expected = 4 * e / (e - 1) ** 2 * 0.8 + p[:2]
    # "Large": what the block's size leaves out falls as 1/k.
    np.testing.assert_allclose(found, expected, rtol=100 / 4000)
    rare = p[0]
    hadamard = predicted_value_variances(BlockHadamard(epsilon, blocks), [0], shares=p)[0]
    c = (e + 1) / (e - 1)
    assert hadamard == pytest.approx(c**2 * 0.8 - rare, rel=1e-9)
    assert hadamard / found[0] == pytest.approx(ratio, rel=0.03)


def test_hadamard_wins_where_a_value_holds_most_of_its_block():
    blocks = Blocks.one(2000)
    for share, better in [(0.4, SubsetSelection), (0.6, BlockHadamard)]:
        p = np.full(2000, (1 - share) / 1999)
        p[0] = share
        variances = {
            kind: predicted_value_variances(kind(1.0, blocks), [0], shares=p)[0]
            for kind in (SubsetSelection, BlockHadamard)
        }
        assert min(variances, key=variances.__getitem__) is better


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0, 5.0, 44.0])
@pytest.mark.parametrize("size", [2, 3, 5, 8, 33, 100])
def test_no_other_number_of_values_has_less_variance(epsilon: float, size: int):
    exact = budget(epsilon)
    found = best_subsets(exact, size)
    every = [Subsets(size, d, set_threshold(exact, d, size - d)) for d in range(1, size)]
    assert found.support.mean_noise(size) == min(s.support.mean_noise(size) for s in every)


def test_plain_ldp_is_as_good_as_any_channel_can_be():
    """k = 8, epsilon = 1, uniform: 22.611 in all, 21.736 among respondents, known to be optimal."""
    mechanism = SubsetSelection(1.0, Blocks.one(8))
    for estimand, total in [("population", 22.611), ("respondents", 21.736)]:
        found = predicted_value_variances(mechanism, range(8), estimand=estimand).sum()
        assert found == pytest.approx(total, abs=5e-4)
