"""Projections are the nearest points, and estimates depend on sums alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ldpstream.estimators.projection import known_totals, project_blocks, project_simplex
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.groups.high_low import HighLow
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
