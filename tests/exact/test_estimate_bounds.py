"""Bounds and clamps against their formulas, and the small numbers of reports."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from ldpstream.estimators.decoding import prepare_queries
from ldpstream.estimators.estimate import (
    estimate_linear,
    estimate_sets,
    estimate_values,
    indicator,
)
from ldpstream.estimators.groups import Groups
from ldpstream.estimators.intervals import error_level
from ldpstream.estimators.top import estimate_top
from ldpstream.mechanisms.block_hadamard import BlockHadamard
from ldpstream.mechanisms.blocks import Blocks
from ldpstream.mechanisms.high_low import HighLow
from tests.exact.dense import Dense, block_channel, dense_of, random_channel

WARNER = Dense(np.array([[2.0, 1.0], [1.0, 2.0]]) / 3.0)
BLOCKS = block_channel(7, (2, 1, 3))
KINDS = [("respondents", "normal"), ("respondents", "bernstein")]
KINDS += [("population", "normal"), ("population", "bernstein")]
ANYTIME_KINDS = [("respondents", "anytime"), ("respondents", "anytime-exact")]
ANYTIME_KINDS += [("population", "anytime"), ("population", "anytime-exact")]


def block_statistic(counts: tuple[int, int, int], seed: int = 0) -> np.ndarray:
    """A statistic with these numbers of reports from the three blocks of BLOCKS."""
    rng = np.random.default_rng(seed)
    statistic = np.zeros(BLOCKS.outputs, dtype=np.int64)
    for block, count in enumerate(counts):
        places = np.flatnonzero(BLOCKS.groups[1] == block)
        np.add.at(statistic, rng.choice(places, count), 1)
    return statistic


def test_normal_bounds_are_z_times_the_plug_in_error():
    statistic, n = np.array([60, 40]), 100
    # h = (2, -1) and (-1, 2): estimates 0.8 and 0.2, mean squares 2.8 and 2.2.
    estimate = estimate_values(WARNER, statistic, n)
    np.testing.assert_allclose(estimate.value, [0.8, 0.2])
    np.testing.assert_allclose(estimate.se, np.sqrt([(2.8 - 0.8) / n, (2.2 - 0.2) / n]))
    np.testing.assert_allclose(estimate.high - estimate.value, norm.ppf(0.975) * estimate.se)
    np.testing.assert_allclose(estimate.value - estimate.low, norm.ppf(0.975) * estimate.se)
    np.testing.assert_allclose(estimate.influence, 3.0 / n)
    population = estimate_values(WARNER, statistic, n, estimand="population")
    np.testing.assert_allclose(population.se**2, (2.8 - 0.64) / (n - 1))


def test_bernstein_bounds_are_maurer_and_pontils():
    statistic, n = np.array([60, 40]), 100
    estimate = estimate_values(WARNER, statistic, n, method="bernstein", confidence=0.9)
    scale, variance = math.log(4 / 0.1), 100 / 99 * 9 * 0.6 * 0.4
    expected = math.sqrt(2 * variance * scale / n) + 7 * 3 * scale / (3 * (n - 1))
    np.testing.assert_allclose(estimate.high - estimate.value, expected)
    np.testing.assert_allclose(estimate.value - estimate.low, expected)


def test_simultaneous_levels_are_sidaks_with_normal_and_bonferronis_elsewhere():
    assert error_level(0.95, "normal", 20) == pytest.approx(1 - 0.95 ** (1 / 20), rel=1e-12)
    assert error_level(0.95, "bernstein", 20) == pytest.approx(0.05 / 20, rel=1e-12)
    assert error_level(0.95, "normal", 1) == pytest.approx(0.05, rel=1e-12)


def test_simultaneous_bernstein_bounds_are_those_of_the_smaller_level():
    statistic = np.array([60, 40])
    joint = estimate_values(WARNER, statistic, 100, method="bernstein", simultaneous=True)
    alone = estimate_values(WARNER, statistic, 100, method="bernstein", confidence=0.975)
    np.testing.assert_allclose(joint.high, alone.high)
    options = {"method": "bernstein", "simultaneous": True, "family": 50}
    assert (estimate_values(WARNER, statistic, 100, **options).high > joint.high).all()


NOISY = random_channel(8, 3, 3, mixed=0.8)
JOINT = {
    "blocks": (BLOCKS, lambda: block_statistic((90, 30, 80))),
    "two cut groups": (
        dense_of(BlockHadamard(1.0, Blocks(np.arange(6) // 3))),
        lambda: np.array([40, 20, 30, 10, 25, 25, 40, 10]),
    ),
    "slope above 1": (NOISY, lambda: np.array([70, 65, 65])),
    "share above a half": (Dense(np.array([[0.9, 0.1], [0.1, 0.9]])), lambda: np.array([170, 30])),
}


@pytest.mark.parametrize("case", JOINT)
@pytest.mark.parametrize("estimand", ["respondents", "population"])
def test_simultaneous_normal_bounds_take_the_variance_at_their_own_ends(case: str, estimand: str):
    mechanism, statistic, n = JOINT[case][0], JOINT[case][1](), 200
    groups, decoder = Groups.of(mechanism), prepare_queries(mechanism)
    one_of_each_group = np.unique(groups.of_value, return_index=True)[1]
    sets = [np.arange(mechanism.size - 1), one_of_each_group]
    weights = [indicator(mechanism.size, members) for members in sets]
    noises = [decoder.counts.noise_of(decoder.decode_set(w), w) for w in weights]
    ends = [groups.value_extremes(noise) for noise in noises]
    values = estimate_values(mechanism, statistic, n, simultaneous=True, estimand=estimand)
    as_set = estimate_sets(mechanism, statistic, n, sets, simultaneous=True, estimand=estimand)
    decoder = mechanism.decoder()
    reports = np.full(mechanism.size, n)
    if decoder.groups() is not None:
        reports = np.bincount(decoder.output_groups(), statistic)[decoder.groups()]
    quietest, noisiest = mechanism.decoder().noise_extremes()
    of_groups = mechanism.decoder().group_reports(statistic)
    ceilings = [reports * noisiest, np.array([(of_groups * most).sum() for _, most in ends])]
    slopes = [noisiest - quietest, np.array([(most - least).max() for least, most in ends])]
    for estimate, spread, ceiling in zip((values, as_set), slopes, ceilings, strict=True):
        z = norm.ppf(1 - (1 - 0.95 ** (1 / estimate.value.size)) / 2)
        half = estimate.high - estimate.value
        np.testing.assert_allclose(estimate.value - estimate.low, half)
        slope = np.maximum(spread, 1.0)
        most = z * np.sqrt(ceiling) / n
        if estimand == "population":
            slope, most = np.maximum(slope, 2 * np.abs(estimate.value)), np.inf
        # The fixed point is the larger root of d^2 = z^2 (V + slope d/n).
        step = z**2 * slope / n
        own_ends = (step + np.sqrt(step**2 + 4 * (z * estimate.se) ** 2)) / 2
        # Skewed noise: R z^2/(6n), but for what is known exactly.
        skewed = np.where(most > 0.0, estimate.influence * z**2 / 6, 0.0)
        expected = np.minimum(own_ends, most) + skewed
        np.testing.assert_allclose(half, expected, rtol=1e-9, atol=1e-12)
        assert (half >= z * estimate.se - 1e-12).all()


def test_the_joint_cases_reach_what_they_are_named_after():
    quietest, noisiest = NOISY.decoder().noise_extremes()
    assert (noisiest - quietest > 1.5).any()
    assert estimate_values(JOINT["share above a half"][0], np.array([170, 30]), 200).value[0] > 0.8


def test_a_plain_report_that_nobody_made_says_as_little_as_the_worst_case():
    mechanism, n = HighLow(1.0, 4, frozenset({0})), 500
    statistic = mechanism.empty()
    statistic[0] = n
    # No plain report: the plug-in is exactly the least noise, 0. The worst is (c - 1)/n.
    estimate = estimate_values(mechanism, statistic, n)
    c = 1 / math.tanh(0.5)
    np.testing.assert_array_equal(estimate.value[1:], 0.0)
    np.testing.assert_allclose(estimate.se[1:], math.sqrt((c - 1) / n))


def test_a_pointwise_interval_and_a_weighted_one_stay_z_standard_errors():
    weights = np.array([[0.5, 2.0]])
    for options in ({}, {"simultaneous": True}):
        estimate = estimate_linear(WARNER, np.array([60, 40]), 100, weights, **options)
        half = norm.ppf(0.975) * estimate.se
        np.testing.assert_allclose(estimate.high - estimate.value, half)


def test_a_plug_in_at_or_below_the_least_noise_gives_way_to_the_worst():
    mechanism = random_channel(3, 3, 5)
    decoders = mechanism.decoder().decoders
    # All reports alike: the plug-in of the value whose decoder is largest there falls below.
    statistic, n = np.array([0, 0, 4, 0, 0]), 4
    noise = mechanism.channel @ (decoders**2).T - np.eye(3)
    plug_in = (decoders[:, 2] ** 2 - decoders[:, 2]) / n
    low = plug_in <= noise.min(axis=0) / n
    assert low.any()
    expected = np.where(low, noise.max(axis=0) / n, plug_in)
    np.testing.assert_allclose(estimate_values(mechanism, statistic, n).se ** 2, expected)
    population = estimate_values(mechanism, statistic, n, estimand="population")
    np.testing.assert_allclose(population.se**2, noise.max(axis=0) / n)


def test_blocks_keep_variances_within_what_their_shares_allow():
    decoders = BLOCKS.decoder().decoders
    noise = BLOCKS.channel @ (decoders**2).T - np.eye(6)
    same = BLOCKS.groups[0][:, None] == BLOCKS.groups[0]
    least = np.where(same, noise, np.inf).min(axis=0)
    largest = np.where(same, noise, -np.inf).max(axis=0)
    hit, reached = set(), False
    for seed in range(30):
        statistic = block_statistic((2, 3, 4), seed)
        shares = np.array([2, 3, 4])[BLOCKS.groups[0]] / 9
        plug_in = (decoders**2 @ statistic - decoders @ statistic) / 81
        expected = np.clip(plug_in, shares * least / 9, shares * largest / 9)
        hit |= set(np.sign(expected - plug_in).round())
        mean = decoders @ statistic / 9
        sampled = (decoders**2 @ statistic / 9 - mean**2) / 8
        floored = np.maximum(sampled, shares * least / 9)
        reached |= bool((floored > sampled + 1e-9).any())
        population = estimate_values(BLOCKS, statistic, 9, estimand="population").se ** 2
        np.testing.assert_allclose(population, floored, atol=1e-12)
        np.testing.assert_allclose(
            estimate_values(BLOCKS, statistic, 9).se ** 2, expected, atol=1e-12
        )
    assert hit == {-1.0, 0.0, 1.0}
    assert reached


@pytest.mark.parametrize("method", ["normal", "bernstein", "anytime", "anytime-exact"])
def test_what_reports_disclose_is_exact_among_respondents(method: str):
    estimate = estimate_values(BLOCKS, block_statistic((0, 3, 4)), 7, method=method)
    blocks = BLOCKS.groups[0]
    # One value: its share. A block that nobody reported: exactly 0, never c^2/n.
    for block, share in ((1, 3 / 7), (0, 0.0)):
        known = blocks == block
        np.testing.assert_array_equal(estimate.value[known], share)
        np.testing.assert_array_equal(estimate.se[known], 0.0)
        np.testing.assert_array_equal(estimate.low[known], share)
        np.testing.assert_array_equal(estimate.high[known], share)
    noisy = blocks == 2
    assert (estimate.se[noisy] > 0).all()
    assert (estimate.low[noisy] < estimate.value[noisy]).all()


@pytest.mark.parametrize("method", ["normal", "bernstein", "anytime"])
def test_nothing_is_exact_about_the_population(method: str):
    options = {"estimand": "population", "method": method}
    estimate = estimate_values(BLOCKS, block_statistic((0, 3, 4)), 7, **options)
    assert (estimate.se > 0).all()
    assert (estimate.low < estimate.value).all()
    assert (estimate.value < estimate.high).all()


@pytest.mark.parametrize("mechanism", [WARNER, BLOCKS], ids=["unstructured", "blocks"])
@pytest.mark.parametrize(("estimand", "method"), [*KINDS, *ANYTIME_KINDS])
def test_no_report_defines_nothing(mechanism: Dense, estimand: str, method: str):
    empty = np.zeros(mechanism.outputs, dtype=np.int64)
    options = {"estimand": estimand, "method": method}
    estimates = [
        estimate_values(mechanism, empty, 0, **options),
        estimate_sets(mechanism, empty, 0, [np.array([0])], **options),
        estimate_linear(mechanism, empty, 0, np.ones((1, mechanism.size)), **options),
        estimate_top(mechanism, empty, 0, 1, **options)[1],
    ]
    for estimate in estimates:
        for array in (estimate.value, estimate.se, estimate.low, estimate.high, estimate.influence):
            assert array.size > 0
            assert np.isnan(array).all()


@pytest.mark.parametrize(("estimand", "method"), KINDS)
def test_one_report_defines_the_value_and_what_needs_no_second(estimand: str, method: str):
    options = {"estimand": estimand, "method": method}
    estimate = estimate_values(WARNER, np.array([0, 1]), 1, **options)
    np.testing.assert_allclose(estimate.value, [-1.0, 2.0])
    np.testing.assert_allclose(estimate.influence, 3.0)
    defined = estimand == "respondents"
    assert np.isfinite(estimate.se).all() == defined
    assert np.isfinite(estimate.low).all() == (defined and method == "normal")
    exact = estimate_values(BLOCKS, block_statistic((0, 1, 0)), 1, **options)
    known = BLOCKS.groups[0] == 1
    np.testing.assert_array_equal(exact.value[known], 1.0)
    assert (exact.low[known] == 1.0).all() == defined


@pytest.mark.parametrize(
    "options",
    [
        {"confidence": 0.0},
        {"confidence": 1.0},
        {"confidence": math.nan},
        {"method": "always"},
        {"sharpest": 0},
        {"estimand": "everybody"},
        {"family": 0},
        {"family": 1, "simultaneous": True},
    ],
)
def test_impossible_options_are_refused_by_name(options: dict[str, object]):
    with pytest.raises(ValueError, match=next(iter(options))):
        estimate_values(WARNER, np.array([1, 1]), 2, **options)


def test_a_statistic_of_another_number_of_reports_is_refused():
    for call in (
        lambda: estimate_values(WARNER, np.array([1, 1]), 3),
        lambda: estimate_sets(WARNER, np.array([1, 1]), 3, [np.array([0])]),
        lambda: estimate_linear(WARNER, np.array([1, 1]), 3, np.ones((1, 2))),
        lambda: estimate_top(WARNER, np.array([1, 1]), 3, 1),
    ):
        with pytest.raises(ValueError, match="expected the 2 reports"):
            call()


def test_queries_that_do_not_fit_the_domain_are_refused():
    statistic = np.array([1, 1])
    for wrong in ([2], [-1]):
        with pytest.raises(ValueError, match=r"expected values in 0\.\.1"):
            estimate_sets(WARNER, statistic, 2, [np.array(wrong)])
    with pytest.raises(ValueError, match="shape"):
        estimate_linear(WARNER, statistic, 2, np.ones((1, 3)))
    with pytest.raises(ValueError, match="finite"):
        estimate_linear(WARNER, statistic, 2, np.array([[1.0, np.nan]]))
    with pytest.raises(ValueError, match="top"):
        estimate_top(WARNER, statistic, 2, 0)


def test_a_short_top_list_is_simultaneous_over_the_whole_domain():
    mechanism = random_channel(2, 3, 3)
    statistic = np.array([5, 30, 15])
    order, top = estimate_top(mechanism, statistic, 50, 2)
    everything = estimate_values(mechanism, statistic, 50, simultaneous=True)
    assert list(order) == list(np.argsort(-everything.value)[:2])
    assert top.simultaneous
    np.testing.assert_array_equal(top.high, everything.high[order])
    order, whole = estimate_top(mechanism, statistic, 50, 3)
    assert not whole.simultaneous
    np.testing.assert_array_equal(whole.high, estimate_values(mechanism, statistic, 50).high[order])
