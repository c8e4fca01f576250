"""Projections are the nearest points, and estimates depend on sums alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.projection import known_totals, project_blocks, project_simplex
from ldpstream.estimators.quantiles.quantiles import estimate_quantiles
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.high_low import HighLow
from ldpstream.mechanisms.interface.mechanism import Mechanism
from tests.exact.enumeration import accumulated

MECHANISMS = [
    Binary(1.0, 2.0),
    HighLow(1.0, 5, frozenset({0, 3})),
    BlockHadamard(1.0, Blocks(np.array([0, 1, 0, 2, 2, 2]))),
]
shares = hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(-3, 3))


def is_nearest(values: np.ndarray, projected: np.ndarray, total: float) -> bool:
    """The conditions of Karush, Kuhn and Tucker: necessary and sufficient for this problem."""
    assert (projected >= 0).all()
    assert projected.sum() == pytest.approx(total, abs=1e-9)
    shifts = values - projected
    used = projected > 1e-9
    if not used.any():
        return True
    threshold = shifts[used].mean()
    return bool(
        np.allclose(shifts[used], threshold, atol=1e-8)
        and (shifts[~used] <= threshold + 1e-8).all()
    )


@given(shares)
def test_the_simplex_projection_is_the_nearest_point(values: np.ndarray):
    assert is_nearest(values, project_simplex(values), 1.0)


@given(shares, st.data())
def test_each_block_is_projected_onto_its_own_total(values: np.ndarray, data: st.DataObject):
    groups = np.array(
        data.draw(st.lists(st.integers(0, 4), min_size=values.size, max_size=values.size))
    )
    totals = np.array(data.draw(st.lists(st.floats(0, 1), min_size=5, max_size=5)))
    projected = project_blocks(values, groups, totals)
    for group in np.unique(groups):
        members = groups == group
        assert is_nearest(values[members], projected[members], totals[group])


def test_a_distribution_is_left_alone():
    values = np.array([0.25, 0.5, 0.0, 0.25])
    np.testing.assert_allclose(project_simplex(values), values, atol=1e-15)


def test_what_cannot_be_projected_is_refused_or_undefined():
    assert np.isnan(project_simplex(np.array([0.5, np.nan]))).all()
    assert np.isnan(project_blocks(np.ones(2), np.array([0, 1]), np.array([1.0, np.nan]))).all()
    with pytest.raises(ValueError, match="totals"):
        project_blocks(np.ones(2), np.array([0, 0]), np.array([-1.0]))
    with pytest.raises(ValueError, match="groups"):
        project_blocks(np.ones(2), np.array([0, 2]), np.array([0.5, 0.5]))


def test_known_totals_are_the_blocks_shares_or_one():
    mechanism = MECHANISMS[2]
    reports = mechanism.privatize(np.array([0, 0, 1, 3, 4, 5, 5, 5]))
    statistic = accumulated(mechanism, reports)
    groups, totals = known_totals(mechanism, statistic, 8)
    np.testing.assert_array_equal(totals, [2 / 8, 1 / 8, 5 / 8])
    np.testing.assert_array_equal(groups, [0, 1, 0, 2, 2, 2])
    groups, totals = known_totals(MECHANISMS[1], np.bincount([0, 1], minlength=7), 2)
    np.testing.assert_array_equal(totals, [1.0])
    assert not groups.any()


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.id)
@given(data=st.data())
def test_estimates_depend_on_the_sum_of_merged_statistics_only(
    mechanism: Mechanism, data: st.DataObject
):
    counts = hnp.arrays(np.int64, mechanism.outputs, elements=st.integers(0, 1000))
    parts = data.draw(st.lists(counts, min_size=1, max_size=4))
    merged = mechanism.empty()
    for part in parts:
        merged += part
    other_way = mechanism.empty()
    for part in reversed(parts):
        other_way += part
    n = int(merged.sum())
    sets = [np.array([0, 1])]
    for first, second in (
        (estimate_values(mechanism, s, n) for s in (merged, other_way)),
        (estimate_sets(mechanism, s, n, sets) for s in (merged, other_way)),
    ):
        for name in ("value", "se", "low", "high", "influence"):
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    # Sums of shares weighted by their n are the shares of the sum: linearity.
    if n and all(part.any() for part in parts):
        separate = sum(
            estimate_values(mechanism, part, int(part.sum())).value * part.sum() for part in parts
        )
        whole = estimate_values(mechanism, merged, n).value
        np.testing.assert_allclose(separate / n, whole, atol=1e-9)
    first, second = (estimate_quantiles(mechanism, s, n, [0.5]) for s in (merged, other_way))
    np.testing.assert_array_equal(first.value, second.value)
