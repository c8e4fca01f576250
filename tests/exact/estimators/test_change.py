"""Bounds of a change from those of both spans: the theorems of `estimators.comparison.change`."""

import math
from typing import Any

import numpy as np
import pytest
from benchmarks.accuracy.simulate import channel_counts
from scipy.special import factorial

from ldpstream.estimators.bounds.options import OptionKeywords
from ldpstream.estimators.bounds.two_valued import quantile
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.comparison.change import (
    combine,
    estimate_change,
    independent_levels,
    quantile_change,
)
from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.quantiles.quantiles import Quantiles
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from tests.exact.enumeration import matrix_of

POPULATION: Any = {"estimand": "population"}


def missed(levels: tuple[float, ...]) -> float:
    """Return the probability that two uniform numbers exceed the corner of no rectangle."""
    edges = [0.0, *levels, 1.0]
    rectangles = list(zip(levels, reversed(levels), strict=True))
    cells = [(a, b) for a in range(len(edges) - 1) for b in range(len(edges) - 1)]
    return sum(
        (edges[a + 1] - edges[a]) * (edges[b + 1] - edges[b])
        for a, b in cells
        if not any(edges[a] >= one and edges[b] >= other for one, other in rectangles)
    )


@pytest.mark.parametrize("level", [0.5, 0.05, 0.05 / 1000, 1e-9])
@pytest.mark.parametrize("steps", [1, 2, 6])
def test_levels_miss_with_exactly_the_allowed_probability(level: float, steps: int):
    levels = independent_levels(level, steps)
    assert list(levels) == sorted(levels)
    assert missed(levels) == pytest.approx(level, rel=1e-6)


def test_proved_bounds_of_normal_errors_are_as_narrow_as_said():
    """The factors of the docstring, against a normal error of the difference."""
    for level, many, one in ((0.05, 1.28, 1.61), (0.0025, 1.185, 1.51)):
        for steps, factor in ((6, many), (1, one)):
            half = [quantile(allowed) for allowed in independent_levels(level, steps)]
            widest = max(a + b for a, b in zip(half, reversed(half), strict=True))
            assert widest / (np.sqrt(2.0) * quantile(level)) == pytest.approx(factor, abs=0.01)


@pytest.mark.parametrize(("correlation", "half"), [(0.0, 5.0), (1.0, 7.0)])
def test_distances_are_combined_as_errors_are(correlation: float, half: float):
    one = (np.zeros(1), np.array([-3.0]), np.array([3.0]))
    other = (np.ones(1), np.array([-3.0]), np.array([5.0]))
    low, high = combine(one, other, correlation)
    assert (low[0], high[0]) == (1.0 - half, 1.0 + half)


@pytest.fixture(scope="module")
def spans() -> list[Any]:
    mechanism, found = BlockHadamard(1.0, Blocks(np.repeat([0, 1], 4))), []
    for seed, n in enumerate((30_000, 50_000)):
        counts = np.full((1, 8), n // 8)
        (statistic,) = channel_counts(mechanism, counts, np.random.default_rng(seed))
        found.append((mechanism, statistic, n // 8 * 8))
    return found


def values(span: Any) -> Any:
    def bounded(options: OptionKeywords) -> Estimate:
        return estimate_values(*span, **options)

    return bounded


def blocks(span: Any) -> Any:
    sets = [np.arange(4), np.arange(4, 8)]

    def bounded(options: OptionKeywords) -> Estimate:
        return estimate_sets(*span, sets, **options)

    return bounded


def test_a_disclosed_block_changes_with_sampling_error(spans: list[Any]):
    """Its share is exact among respondents; its change in the population is not."""
    first, then = (blocks(span) for span in spans)
    assert (first({}).se == 0.0).all()
    change = estimate_change(first, then, devices="different", **POPULATION)
    share = first({}).value
    error = np.sqrt(share * (1.0 - share) * (1 / 30_000 + 1 / 50_000))
    assert change.se == pytest.approx(error, rel=0.02)
    assert (change.low < change.value - error).all()
    # Devices may move from one block to the other: errors then add up.
    added = np.sqrt(share * (1.0 - share)) * (30_000**-0.5 + 50_000**-0.5)
    fresh = estimate_change(first, then, devices="fresh", **POPULATION)
    assert fresh.se == pytest.approx(added, rel=0.02)


def test_rules_are_in_order_of_what_is_known(spans: list[Any]):
    """Noise that is fresh does not add up; the more is known, the narrower bounds are."""
    first, then = (values(span) for span in spans)
    for method in ("normal", "padded", "exact", "bernstein"):
        widths = [
            estimate_change(first, then, devices=devices, method=method, **POPULATION)
            for devices in ("different", "fresh", "held")
        ]
        different, fresh, held = ((one.high - one.low).sum() for one in widths)
        assert different < fresh * (1 - 1e-6)
        assert fresh <= held * (1 + 1e-12)
        assert held > different * 1.1


def test_a_normal_change_is_z_standard_errors(spans: list[Any]):
    first, then = (values(span) for span in spans)
    change = estimate_change(first, then, devices="fresh", method="normal", **POPULATION)
    assert change.high - change.value == pytest.approx(1.959964 * change.se, rel=1e-5)
    assert change.value == pytest.approx(change.after - change.before)


def test_a_change_is_of_the_population(spans: list[Any]):
    first, then = (values(span) for span in spans)
    with pytest.raises(ValueError, match="population"):
        estimate_change(first, then, devices="different")


def test_without_reports_nothing_is_said(spans: list[Any]):
    mechanism = spans[0][0]
    nothing = values((mechanism, mechanism.empty(), 0))
    for method in ("padded", "exact"):
        change = estimate_change(
            nothing, values(spans[0]), devices="different", method=method, **POPULATION
        )
        assert np.isnan([change.value, change.low, change.high]).all()


def outcomes(chances: Floats, n: int) -> list[tuple[float, Integers]]:
    """Return the counts of n reports of three kinds, with their probabilities."""
    every = [np.array([a, b, n - a - b]) for a in range(n + 1) for b in range(n + 1 - a)]
    return [
        (math.factorial(n) * math.prod(chances**counts / factorial(counts)), counts)
        for counts in every
    ]


def test_a_large_change_inside_a_block_is_covered():
    """The values' bounds end at 0 and at the block, long before the estimates' errors do."""
    mechanism = RandomizedResponse(1.0, Blocks(np.array([0, 0, 1])))
    channel = matrix_of(mechanism)
    shares = np.array([[0.99, 0.005, 0.005], [0.01, 0.7, 0.29]])
    before, after = (outcomes(row @ channel, 5) for row in shares)
    covered = np.zeros(3)
    for chance, first in before:
        for other, then in after:
            spans = (values((mechanism, statistic, 5)) for statistic in (first, then))
            change = estimate_change(*spans, devices="different", **POPULATION)
            truth = shares[1] - shares[0]
            covered += chance * other * ((change.low <= truth) & (truth <= change.high))
    assert (covered > 0.93).all()


def test_of_few_reports_any_change_of_a_mean_is_possible():
    mechanism, weights = Binary(1.0, 1.0), np.array([[0.0, 3.0]])

    def mean(statistic: Any) -> Any:
        return lambda options: estimate_linear(mechanism, statistic, 3, weights, **options)

    spans = mean(np.array([1, 2])), mean(np.array([2, 1]))
    change = estimate_change(*spans, devices="different", reach=3.0, **POPULATION)
    assert (change.low.tolist(), change.high.tolist()) == ([-3.0], [3.0])


def test_quantiles_that_may_be_anywhere_may_have_moved_anywhere():
    p, low, high = np.array([0.5]), np.array([0.0]), np.array([9.0])
    spans = (Quantiles(p, np.array([value]), low, high) for value in (2.0, 6.0))
    before, after = ((lambda _, each=each: each) for each in spans)
    change = quantile_change(before, after, devices="different", last=9, correlation=0.0)
    assert (change.low.tolist(), change.high.tolist()) == ([-9.0], [9.0])
