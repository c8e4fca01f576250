"""Bounds against their formulas: pointwise, simultaneous, of a list; options that are refused."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from ldpstream.estimators.bounds.options import Options
from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.queries import DisclosedGroups, indicator, prepare_queries
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from tests.exact.dense import Dense, dense_of, random_channel
from tests.exact.specs import BLOCKS, WARNER, block_statistic


def test_normal_bounds_are_z_times_the_plug_in_error():
    statistic, n = np.array([60, 40]), 100
    # h = (2, -1) and (-1, 2): estimates 0.8 and 0.2, mean squares 2.8 and 2.2.
    estimate = estimate_values(WARNER, statistic, n, method="normal")
    np.testing.assert_allclose(estimate.value, [0.8, 0.2])
    np.testing.assert_allclose(estimate.se, np.sqrt([(2.8 - 0.8) / n, (2.2 - 0.2) / n]))
    np.testing.assert_allclose(estimate.high - estimate.value, norm.ppf(0.975) * estimate.se)
    np.testing.assert_allclose(estimate.value - estimate.low, norm.ppf(0.975) * estimate.se)
    np.testing.assert_allclose(estimate.influence, 3.0 / n)
    population = estimate_values(WARNER, statistic, n, method="normal", estimand="population")
    np.testing.assert_allclose(population.se**2, (2.8 - 0.64) / (n - 1))


def test_bernstein_bounds_are_maurer_and_pontils():
    statistic, n = np.array([60, 40]), 100
    estimate = estimate_values(WARNER, statistic, n, method="bernstein", confidence=0.9)
    scale, variance = math.log(4 / 0.1), 100 / 99 * 9 * 0.6 * 0.4
    expected = math.sqrt(2 * variance * scale / n) + 7 * 3 * scale / (3 * (n - 1))
    np.testing.assert_allclose(estimate.highest - estimate.value, expected)
    np.testing.assert_allclose(estimate.value - estimate.lowest, expected)


def test_simultaneous_levels_are_sidaks_with_normal_and_bonferronis_elsewhere():
    normal = Options(method="normal", simultaneous=True)
    assert normal.error_level(20) == pytest.approx(1 - 0.95 ** (1 / 20), rel=1e-12)
    bernstein = Options(method="bernstein", simultaneous=True)
    assert bernstein.error_level(20) == pytest.approx(0.05 / 20, rel=1e-12)
    assert Options(method="normal").error_level(20) == pytest.approx(0.05, rel=1e-12)


def test_simultaneous_bernstein_bounds_are_those_of_the_smaller_level():
    statistic = np.array([60, 40])
    joint = estimate_values(WARNER, statistic, 100, method="bernstein", simultaneous=True)
    alone = estimate_values(WARNER, statistic, 100, method="bernstein", confidence=0.975)
    np.testing.assert_allclose(joint.highest, alone.highest)
    options = {"method": "bernstein", "simultaneous": True, "family": 50}
    assert (estimate_values(WARNER, statistic, 100, **options).highest > joint.highest).all()


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
    groups, decoder = DisclosedGroups.of(mechanism), prepare_queries(mechanism)
    one_of_each_group = np.unique(groups.of_place, return_index=True)[1]
    sets = [np.arange(mechanism.size - 1), one_of_each_group]
    weights = [indicator(mechanism.size, members) for members in sets]
    noises = [decoder.set_query(w).noise for w in weights]
    ends = [groups.extremes(noise) for noise in noises]
    options = {"method": "normal", "simultaneous": True, "estimand": estimand}
    values = estimate_values(mechanism, statistic, n, **options)
    as_set = estimate_sets(mechanism, statistic, n, sets, **options)
    decoder = mechanism.decoder
    reports = np.full(mechanism.size, n)
    if decoder.groups() is not None:
        reports = np.bincount(decoder.output_groups(), statistic)[decoder.groups()]
    quietest, noisiest = mechanism.decoder.noise_extremes()
    of_groups = mechanism.decoder.group_reports(statistic)
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


def test_a_pointwise_interval_and_a_weighted_one_stay_z_standard_errors():
    weights = np.array([[0.5, 2.0]])
    for options in ({}, {"simultaneous": True}):
        estimate = estimate_linear(
            WARNER, np.array([60, 40]), 100, weights, method="normal", **options
        )
        half = norm.ppf(0.975) * estimate.se
        np.testing.assert_allclose(estimate.high - estimate.value, half)


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
