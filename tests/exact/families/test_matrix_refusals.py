"""Policies, strategies and scales that `matrix` refuses, and scales at the very limit."""

import math
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.mechanisms import SpecError
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.strategy import STRATEGIES, Strategy
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.policy import Policy
from tests.exact.specs import built, line

REFUSED = {
    "another size": (line(1.0, 3), STRATEGIES["prefix"](4), None, "policy", "one of 4 values"),
    "no budget": (
        MatrixPolicy.of([[0, 0], [1, 0]]),
        np.eye(2, dtype=int),
        None,
        "policy",
        "budgets above 0",
    ),
    "scale 0": (
        line(1.0, 3),
        STRATEGIES["prefix"](3),
        (1.0, 0.0),
        "scales[1]",
        "above 0 for a row that tells protected values apart",
    ),
    "scale whose inverse no float holds": (
        line(1.0, 3),
        STRATEGIES["prefix"](3),
        (1.0, math.ulp(0.0)),
        "scales",
        "values 1 and 2 lose 8.45",
    ),
}


@pytest.mark.parametrize(
    ("policy", "rows", "scales", "path", "expected"), REFUSED.values(), ids=REFUSED.keys()
)
def test_impossible_policies_strategies_and_scales_are_refused_by_name(
    policy: Policy, rows: np.ndarray, scales: tuple[float, ...] | None, path: str, expected: str
):
    with pytest.raises(SpecError) as caught:
        Matrix(policy, Strategy("file", rows), scales)
    assert caught.value.path == path
    assert expected in caught.value.expected


def test_scales_that_use_the_budget_up_exactly_are_accepted():
    """0.1 is read as the larger of its double and 1/10: ten times its inverse is within 100."""
    policy = GraphPolicy(3, ((0, 1, Fraction(10)), (1, 2, Fraction(8))))
    mechanism = built("prefix", policy, (0.1, 0.125))
    assert mechanism.certify().passed
    with pytest.raises(SpecError, match="values 1 and 2 lose 8"):
        built("prefix", policy, (0.1, math.nextafter(0.125, 0)))
