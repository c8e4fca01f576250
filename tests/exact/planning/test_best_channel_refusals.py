"""Priors, workloads and budgets that no channel is best for, and searches that do not end."""

import itertools
import time

import numpy as np
import pytest

from ldpstream.estimators.design import master
from ldpstream.estimators.design.cone import DesignError
from ldpstream.estimators.design.optimise import Design, histogram, optimise, ranges, sets
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from tests.exact.specs import classical


@pytest.mark.parametrize(
    "prior", [[0.5, 0.5], [0.5, 0.5, 0.5], [1.0, 0.0, 0.0], [-0.5, 1.0, 0.5], [np.nan] * 3]
)
def test_a_prior_that_is_not_a_distribution_is_refused(prior: list[float]):
    with pytest.raises(DesignError, match="prior: expected 3 numbers above 0 with sum 1"):
        optimise(classical(1.0, 3), histogram(3), np.array(prior))


def test_a_workload_of_another_size_is_refused():
    with pytest.raises(DesignError, match="workload: expected 3 values, got 4"):
        optimise(classical(1.0, 3), histogram(4))
    for members in ([], [np.array([0, 3])], [np.array([1, 1])]):
        with pytest.raises(ValueError, match="set"):
            sets(3, members)


def test_a_budget_of_zero_leaves_no_invertible_channel():
    policy = MatrixPolicy.of([[0, 1, 1], [1, 0, 0], [1, 1, 0]])
    with pytest.raises(DesignError, match="the budget of values 1 and 2 is 0"):
        optimise(policy, histogram(3))


def test_a_solver_that_does_not_converge_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(master, "_MOST_STEPS", 2)
    with pytest.raises(DesignError, match="no convergence: the weights of 18 columns"):
        optimise(MetricPolicy(0.3, (8,)), ranges((8,)))


def test_a_search_that_is_out_of_time_says_what_is_left():
    design: Design = optimise(MetricPolicy(0.3, (16,)), ranges((16,)), seconds=0.0)
    assert design.status == "unfinished"
    # The best one, of 136 ranges, as in test_best_channels.
    best = 136 * 15.39171
    assert design.gap > 0.01 * design.population
    assert design.population - design.gap <= best <= design.population


def test_a_busy_machine_does_not_end_a_search(monkeypatch: pytest.MonkeyPatch):
    """CPU time counts: here an hour of wall time passes with every look at the clock."""
    hours = itertools.count(0, 3600)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(hours)))
    design = optimise(MetricPolicy(0.3, (8,)), ranges((8,)), seconds=60.0)
    assert design.status == "proved"


def test_a_budget_too_small_for_double_precision_says_so():
    with pytest.raises(DesignError, match="no convergence"):
        optimise(classical(1e-6, 4), histogram(4))
