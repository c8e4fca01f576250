"""Squared errors of ranges, measured from reports, are the predicted variances."""

import numpy as np
import pytest
from benchmarks.accuracy.simulate import Case, draw_by_privatizing, zipf

from ldpstream.estimators.estimate import estimate_sets
from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.estimators.queries import range_values
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from tests.soak import chosen

REPETITIONS = chosen(200, soak=2_000)
FAR = chosen(0.6, soak=0.2)
CASES = [
    ((64,), 1.0, [[(0, 9)], [(5, 40)], [(30, 31)], [(50, 63)], [(7, 7)]]),
    ((64,), 0.2, [[(0, 9)], [(5, 40)], [(30, 31)], [(50, 63)], [(7, 7)]]),
    (
        (8, 1, 9),
        1.0,
        [[(0, 3), (0, 0), (2, 6)], [(4, 7), (0, 0), (0, 8)], [(2, 2), (0, 0), (8, 8)]],
    ),
]


@pytest.mark.soak
@pytest.mark.parametrize(("shape", "epsilon", "bounds"), CASES, ids=lambda v: str(v)[:12])
def test_squared_errors_agree_with_the_prediction(
    shape: tuple[int, ...], epsilon: float, bounds: list[list[tuple[int, int]]]
):
    """Of 2,000 nearly normal errors the mean square errs by 3.2%, of 200 by 10%; FAR is six of it.

    Over 13 ranges this fails with probability below 1e-6 with other seeds; the mean of a case's
    ranges lies within half of it with the seeds fixed here.
    """
    mechanism = L1Geometric(epsilon, shape)
    case = Case("line", mechanism, "zipf", zipf(mechanism.size, 1.1), 500)
    sets = [range_values(shape, pairs) for pairs in bounds]
    predicted = (
        predicted_set_variances(mechanism, sets, shares=case.shares, estimand="population") / case.n
    )
    truth = np.array([case.shares[members].sum() for members in sets])
    squares = np.zeros(len(sets))
    for _, statistic in draw_by_privatizing(case, REPETITIONS, 17):
        squares += (estimate_sets(mechanism, statistic, case.n, sets).value - truth) ** 2
    ratios = squares / REPETITIONS / predicted
    assert (np.abs(ratios - 1) < FAR).all()
    assert abs(ratios.mean() - 1) < FAR / 2
