"""Shares shrunk to a power law: less total variation, and known totals are kept."""

import numpy as np
import pytest

from ldpstream.estimators.estimate import share_sums
from ldpstream.estimators.power_law import project_power, shrink_to_power_law
from ldpstream.estimators.projection import known_totals, project_simplex
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from tests.exact.enumeration import accumulated

ZIPF = 1.0 / np.arange(1.0, 501.0)
ZIPF /= ZIPF.sum()


@pytest.mark.parametrize("error", [0.002, 0.02])
def test_total_variation_is_a_fifth_smaller_than_on_the_simplex(error: float):
    """Of 20 draws each; measured: 0.72 and 0.65 of it, and no draw above 0.8."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        seen = ZIPF + error * rng.standard_normal(ZIPF.size)
        shrunk = project_simplex(shrink_to_power_law(seen, np.full(ZIPF.size, error)))
        assert abs(shrunk - ZIPF).sum() < 0.8 * abs(project_simplex(seen) - ZIPF).sum()


def test_means_grow_with_the_estimates_and_lie_between_them_and_0():
    """Whole ranks, so that of two values with one error the larger stays the larger."""
    rng = np.random.default_rng(4)
    seen = np.sort(ZIPF + 0.005 * rng.standard_normal(ZIPF.size))
    means = shrink_to_power_law(seen, np.full(ZIPF.size, 0.005))
    assert (np.diff(means) >= 0.0).all()
    assert means.min() >= 0.0
    large = seen > 0.05
    assert (means[large] <= seen[large]).all()
    np.testing.assert_allclose(means[large], seen[large], rtol=0.05)


def test_what_has_no_error_stays_and_what_is_undefined_stays_undefined():
    values, errors = np.array([0.2, 0.01, np.nan, -0.02]), np.array([0.0, 0.01, 0.01, np.nan])
    found = shrink_to_power_law(values, errors)
    np.testing.assert_array_equal(found[[0, 2, 3]], values[[0, 2, 3]])
    assert 0.0 < found[1] < 0.02
    nothing = shrink_to_power_law(values, np.zeros(4))
    np.testing.assert_array_equal(nothing, values)


def test_disclosed_totals_are_kept_and_no_reports_say_nothing():
    mechanism = BlockHadamard(1.0, Blocks(np.repeat([0, 1, 2], [1, 9, 30])))
    reports = mechanism.privatize(np.random.default_rng(6).integers(0, 40, 5_000))
    statistic = accumulated(mechanism, reports)
    shares = share_sums(mechanism, statistic, 5_000) / 5_000
    found = project_power(mechanism, statistic, 5_000, shares)
    groups, totals = known_totals(mechanism, statistic, 5_000)
    np.testing.assert_allclose(np.bincount(groups, found), totals, atol=1e-12)
    assert found.min() >= 0.0
    assert np.isnan(project_power(mechanism, mechanism.empty(), 0, shares)).all()
