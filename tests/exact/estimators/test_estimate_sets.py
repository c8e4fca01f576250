"""Sets of values and weights: additivity, known totals, ranges, any unit and zero."""

from itertools import chain, combinations

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_sets
from ldpstream.estimators.planning.predictions import (
    predicted_linear_variances,
    predicted_set_variances,
)
from ldpstream.estimators.queries import prepare_sets
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.domains.queries import range_values
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.strategy import Strategy
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.metric import MetricPolicy
from tests.conformance.instances import INSTANCES, SIX
from tests.exact.dense import Dense, block_channel, random_channel
from tests.exact.enumeration import counted, some_statistic
from tests.seeded import SeededEntropy

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


@pytest.mark.parametrize("name", ["groups:tiny-subsets", "groups:wide-list", "l1-bits:tiny"])
def test_the_whole_domain_has_no_noise_however_little_a_report_tells(name: str):
    mechanism = INSTANCES[name]
    (query,) = prepare_sets(mechanism, [np.arange(mechanism.size)]).sets
    np.testing.assert_array_equal(query.noise, 0.0)


def test_a_list_that_everybody_is_on_has_bounds():
    """Its users' chance of a decisive report is 1, and rounds to more."""
    mechanism, everybody = INSTANCES["groups:values"], np.array(sorted(SIX))
    statistic = mechanism.empty()
    mechanism.accumulate(statistic, np.zeros(100, dtype=np.int64))
    estimate = estimate_sets(mechanism, statistic, 100, [everybody])
    assert estimate.form.tolist() == ["enumerated"]
    assert estimate.low[0] < 1.0 == estimate.high[0]


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


PAIRED = Blocks(np.array([0, 0, 1, 1]))
MECHANISMS: dict[str, Mechanism] = {
    "one block": BlockHadamard(1.0, Blocks.one(4)),
    "two blocks": BlockHadamard(1.0, PAIRED),
    "randomized-response": RandomizedResponse(1.0, Blocks.one(4)),
    "high-low": HighLow(1.0, 4, frozenset({0, 1})),
    "l1-geometric": L1Geometric(1.0, (4,)),
    "l1-bits": L1Bits(1.0, (4,)),
    "subset-selection": SubsetSelection(1.0, PAIRED),
    "matrix": Matrix(MetricPolicy(1.0, (4,)), Strategy.built_in("prefix", 4)),
}
WEIGHTS = np.array([[0.0, 3.0, 1.0, 2.0], [5.0, 5.0, 5.0, 5.0]])
METHODS = [
    (estimand, method)
    for estimand in ("respondents", "population")
    for method in ("padded", "exact", "normal", "bernstein", "anytime")
]


@pytest.mark.grid
@pytest.mark.parametrize(("unit", "zero"), [(1e-9, 0.0), (1e30, 0.0), (1.0, 1e9), (1e-3, -1e7)])
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_bounds_are_those_of_any_other_unit_and_zero(
    mechanism: Mechanism, unit: float, zero: float
):
    _, statistic = some_statistic(mechanism, 500)
    weights = WEIGHTS * unit + zero
    # What rounding leaves of differences of such weights, in units.
    accuracy = 1e-15 * np.abs(weights).max() / unit + 1e-12
    for estimand, method in METHODS:
        options = {"estimand": estimand, "method": method}
        plain = estimate_linear(mechanism, statistic, 500, WEIGHTS, **options)
        assert (plain.low < plain.high)[0]
        moved = estimate_linear(mechanism, statistic, 500, weights, **options)
        for name in ("value", "low", "high"):
            expected = (getattr(plain, name) * unit + zero) / unit
            np.testing.assert_allclose(getattr(moved, name) / unit, expected, rtol=accuracy)
        for name in ("se", "influence"):
            relative = np.abs(getattr(moved, name) / unit - getattr(plain, name))
            assert (relative <= 10.0 * accuracy).all()


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_predicted_variances_are_those_of_any_other_unit_and_zero(mechanism: Mechanism):
    plain = predicted_linear_variances(mechanism, WEIGHTS) / 100
    assert plain[0] > 0.0
    for unit, zero in ((1e-9, 0.0), (1.0, 1e9)):
        found = predicted_linear_variances(mechanism, WEIGHTS * unit + zero) / 100 / unit**2
        np.testing.assert_allclose(found, plain, rtol=1e-6)


def test_blocks_whose_weights_hardly_differ_are_no_more_exact_than_others():
    mechanism, n = BlockHadamard(1.0, PAIRED), 300
    values = np.repeat([0, 1], [100, 200])
    statistic = counted(mechanism, values, 2)
    # Nobody reported the second block, where weights differ a billion times as much.
    weights = np.array([[0.0, 1e-9, 0.0, 1.0], [0.0, 1e-9, 0.0, 1e-9]])
    for method in ("normal", "bernstein", "anytime"):
        found = estimate_linear(mechanism, statistic, n, weights, method=method)
        assert (found.se > 0.0).all()
        assert (found.low < found.value).all()
        np.testing.assert_allclose(found.se[0], found.se[1], rtol=1e-6)


@pytest.mark.parametrize("weight", [0.1, 0.3, 0.7])
def test_a_population_whose_reports_are_all_of_one_block_is_not_known_exactly(weight: float):
    mechanism, n = BlockHadamard(1.0, PAIRED), 1_001
    statistic, values = mechanism.empty(), np.zeros(1_001, dtype=np.int64)
    mechanism.accumulate(statistic, mechanism.privatize(values, entropy=SeededEntropy(3)))
    # Every report of the first block says exactly this much; rounding is no variance.
    weights = np.array([[weight, weight, 1.0, 1.0], [0.0, 0.0, weight, weight]])
    found = estimate_linear(mechanism, statistic, n, weights, estimand="population")
    np.testing.assert_allclose(found.value, [weight, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.se, [(1.0 - weight) / n, weight / n], rtol=1e-9)
