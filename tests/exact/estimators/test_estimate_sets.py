"""Sets of values: additivity, known totals, ranges."""

from itertools import chain, combinations

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_sets
from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.domains.queries import range_values
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.interface.mechanism import Mechanism
from tests.exact.dense import Dense, block_channel, random_channel

BLOCKS = block_channel(11, (4, 1, 3))
PLAIN = random_channel(12, 4, 6)
STATISTICS = {
    id(m): np.random.default_rng(13).multinomial(500, np.full(m.outputs, 1 / m.outputs))
    for m in (BLOCKS, PLAIN)
}


def subsets(size: int) -> list[np.ndarray]:
    every = chain.from_iterable(combinations(range(size), r) for r in range(size + 1))
    return [np.array(members, dtype=np.int64) for members in every]


@pytest.mark.parametrize("mechanism", [BLOCKS, PLAIN], ids=["blocks", "plain"])
@pytest.mark.parametrize("estimand", ["respondents", "population"])
def test_a_set_and_its_complement_sum_to_one(mechanism: Dense, estimand: str):
    statistic, sets = STATISTICS[id(mechanism)], subsets(mechanism.size)
    rest = [np.setdiff1d(np.arange(mechanism.size), members) for members in sets]
    first = estimate_sets(mechanism, statistic, 500, sets, estimand=estimand)
    second = estimate_sets(mechanism, statistic, 500, rest, estimand=estimand)
    # Single values keep their own decoder, so they and their complements are left out.
    many = np.array([min(members.size, mechanism.size - members.size) != 1 for members in sets])
    np.testing.assert_allclose((first.value + second.value)[many], 1.0, atol=1e-12)
    np.testing.assert_allclose(first.se[many], second.se[many], atol=1e-12)


@pytest.mark.parametrize("mechanism", [BLOCKS, PLAIN], ids=["blocks", "plain"])
def test_the_whole_and_the_empty_set_are_exact(mechanism: Dense):
    sets = [np.arange(mechanism.size), np.array([], dtype=np.int64)]
    for estimand in ("respondents", "population"):
        for method in ("normal", "bernstein"):
            options = {"estimand": estimand, "method": method}
            estimate = estimate_sets(mechanism, STATISTICS[id(mechanism)], 500, sets, **options)
            for array in (estimate.value, estimate.low, estimate.high):
                np.testing.assert_array_equal(array, [1.0, 0.0])
            np.testing.assert_array_equal(estimate.influence, 0.0)


@pytest.mark.parametrize(
    "mechanism",
    [
        HighLow(50.0, 6, frozenset({0})),
        BlockHadamard(50.0, Blocks(np.array([0, 1, 0, 1, 1]))),
        Binary(1e-18, 1e-18),
    ],
    ids=["high-low", "block-hadamard", "binary"],
)
def test_the_whole_is_exact_whatever_epsilon_and_reports(mechanism: Mechanism):
    # Forged: at this epsilon no data give as many reports of every kind.
    statistic = np.full(mechanism.outputs, 70)
    estimate = estimate_sets(
        mechanism, statistic, int(statistic.sum()), [np.arange(mechanism.size)]
    )
    assert estimate.value == estimate.low == estimate.high == 1.0


def test_totals_of_groups_are_exact_beyond_the_integers_of_doubles():
    statistic = np.zeros(BLOCKS.outputs, dtype=np.int64)
    first = int(np.argmax(BLOCKS.groups[1] == 0))
    statistic[first] = 2**53 + 1
    assert BLOCKS.decoder.group_reports(statistic).tolist() == [2**53 + 1, 0, 0]


def test_whole_blocks_are_exact_among_respondents_and_binomial_in_the_population():
    statistic, (of_value, of_output) = STATISTICS[id(BLOCKS)], BLOCKS.groups
    for block in range(3):
        share = statistic[of_output == block].sum() / 500
        members = [np.flatnonzero(of_value == block)]
        exact = estimate_sets(BLOCKS, statistic, 500, members, method="bernstein")
        assert exact.low[0] == exact.value[0] == exact.high[0] == pytest.approx(share, abs=1e-15)
        population = estimate_sets(BLOCKS, statistic, 500, members, estimand="population")
        assert population.se[0] ** 2 == pytest.approx(share * (1 - share) / 499, rel=1e-9)


def test_a_set_costs_no_more_than_the_sum_of_its_values():
    for mechanism in (BLOCKS, PLAIN):
        decoders, size = mechanism.decoder.decoders, mechanism.size
        sets = subsets(size)
        for members, better in zip(sets, predicted_set_variances(mechanism, sets), strict=True):
            weights = np.isin(np.arange(size), members).astype(float)
            noise = mechanism.channel @ (weights @ decoders) ** 2 - weights
            assert better <= noise.mean() + 1e-12


def test_equal_weights_are_a_known_mean():
    for mechanism in (BLOCKS, PLAIN):
        weights = np.full((1, mechanism.size), 2.5)
        estimate = estimate_linear(mechanism, STATISTICS[id(mechanism)], 500, weights)
        np.testing.assert_allclose([estimate.value, estimate.low, estimate.high], 2.5, rtol=1e-12)


def test_ranges_are_the_values_inside_both_ends_included():
    np.testing.assert_array_equal(range_values((10,), [(3, 5)]), [3, 4, 5])
    grid = np.arange(4 * 6 * 3).reshape(4, 6, 3)
    found = range_values(grid.shape, [(1, 2), (0, 5), (2, 2)])
    np.testing.assert_array_equal(found, grid[1:3, 0:6, 2:3].ravel())


@pytest.mark.parametrize(
    "bounds", [[(0, 4)], [(-1, 2)], [(3, 2)], [(0, 1), (0, 1)], [(0, 1, 2)], []]
)
def test_ranges_outside_of_the_shape_are_refused(bounds: list[tuple[int, ...]]):
    with pytest.raises(ValueError, match="range: expected"):
        range_values((4,), bounds)
