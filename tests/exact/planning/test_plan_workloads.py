"""What a plan is made for: the queries of a workload, all or a sample, and the prior."""

import math

import numpy as np
import pytest

from ldpstream.estimators.planning.workload import (
    MOST_QUERIES,
    PlannedWorkload,
    counted_shares,
    uniform_shares,
    zipf_shares,
)


def test_all_ranges_are_all_and_samples_are_uniform():
    workload = PlannedWorkload((3, 2), ordered=True, shares=uniform_shares(6))
    boxes = workload.boxes
    assert boxes.exact
    assert len({tuple(box.tolist()) for box in boxes.sets}) == boxes.total == 6 * 3
    large = PlannedWorkload((200,), ordered=True, shares=uniform_shares(200)).boxes
    assert (len(large.sets), large.total, large.exact) == (MOST_QUERIES, 20_100, False)
    # The mean length of a range of m values is (m + 2)/3; six standard errors of the draws.
    lengths = np.array([box.size for box in large.sets])
    assert abs(lengths.mean() - 202.0 / 3.0) < 6 * lengths.std() / math.sqrt(MOST_QUERIES)
    assert min(int(box[0]) for box in large.sets) == 0
    assert max(int(box[-1]) for box in large.sets) == 199
    again = PlannedWorkload((200,), ordered=True, shares=uniform_shares(200)).boxes
    assert all(np.array_equal(a, b) for a, b in zip(large.sets, again.sets, strict=True))


def test_values_of_large_domains_are_evenly_spaced():
    values = PlannedWorkload((43_750,), ordered=True, shares=uniform_shares(43_750)).values
    assert (values.sets[0][0], values.sets[-1][0], values.total) == (0, 43_749, 43_750)
    assert not values.exact


def test_priors_are_shares_by_rank_or_by_count():
    zipf = zipf_shares((2, 3))
    np.testing.assert_allclose(zipf.sum(), 1.0)
    assert zipf[0] / zipf[1] == pytest.approx(2**1.1)
    assert zipf[0] / zipf[3] == pytest.approx(2**1.1)
    np.testing.assert_array_equal(counted_shares(np.array([1.0, 0.0, 3.0])), [0.25, 0.0, 0.75])
    np.testing.assert_array_equal(counted_shares(np.array([1e308, 1e308])), [0.5, 0.5])
    for counts in ([1.0, -1.0], [0.0, 0.0], [1.0, math.inf], [math.nan, 1.0]):
        with pytest.raises(ValueError, match="expected"):
            counted_shares(np.array(counts))


def test_quantiles_of_the_prior_are_smallest_positions():
    workload = PlannedWorkload((10,), True, uniform_shares(10), quantiles=(0.05, 0.3, 0.31, 0.999))
    assert workload.quantile_positions.tolist() == [0, 2, 3, 9]
