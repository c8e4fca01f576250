"""Options, statistics and queries that are refused."""

import math

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.weights import estimate_linear
from tests.exact.specs import WARNER


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
