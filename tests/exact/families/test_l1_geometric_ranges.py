"""The error of ranges under `l1-geometric`: closed forms."""

import math
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.queries import range_values
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from tests.exact.enumeration import boxes
from tests.exact.geometric_channel import alpha_of, by_definition, printed_inverse

N = 1000


def closed_noise(alpha: Fraction, m: int, first: int, last: int) -> list[Fraction]:
    """A range's noise in one dimension: `h^2 - h` is `w (1 + w)` beside each end inside the line.

    So it is `sum of w_y (1 + w_y) Q[x, y]` over the two outputs at each of these ends, for ranges
    and complements of two values or more.
    """
    channel = by_definition(alpha, m)
    at = [y for end in (first - 1, last) if 0 <= end < m - 1 for y in (end, end + 1)]
    assert len(set(at)) == len(at)
    weight = [alpha / (1 - alpha) ** (1 if y in (0, m - 1) else 2) for y in range(m)]
    return [sum((weight[y] * (1 + weight[y]) * row[y] for y in at), Fraction(0)) for row in channel]


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_one_dimension_in_closed_form(epsilon: float):
    mechanism = L1Geometric(epsilon, (9,))
    p = np.arange(1.0, 10.0) / 45.0
    for first, last in [(0, 2), (3, 5), (2, 6), (5, 8), (0, 0), (8, 8), (1, 7), (0, 8)]:
        noise = np.array([float(v) for v in closed_noise(alpha_of(mechanism), 9, first, last)])
        members = np.arange(first, last + 1)
        (found,) = predicted_set_variances(mechanism, [members], shares=p) / N
        assert found * N == pytest.approx(float(p @ noise), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_two_dimensions_in_closed_form(epsilon: float):
    mechanism = L1Geometric(epsilon, (7, 5))
    p = np.arange(1.0, 36.0) / np.arange(1.0, 36.0).sum()
    for bounds in ([(0, 2), (1, 3)], [(2, 4), (0, 4)], [(5, 6), (3, 4)]):
        inside, second = np.ones(1), np.ones(1)
        for m, (first, last) in zip((7, 5), bounds, strict=True):
            noise = closed_noise(alpha_of(mechanism), m, first, last)
            in_axis = (first <= np.arange(m)) & (np.arange(m) <= last)
            second = np.multiply.outer(second, in_axis + np.array([float(v) for v in noise]))
            inside = np.multiply.outer(inside, in_axis)
        members = range_values((7, 5), bounds)
        (found,) = predicted_set_variances(mechanism, [members], shares=p) / N
        assert found * N == pytest.approx(float(p @ (second - inside).ravel()), rel=1e-9)


def test_a_prefix_decodes_reports_within_the_stated_range():
    epsilon, m = 1.0, 8
    mechanism, alpha = L1Geometric(epsilon, (m,)), math.exp(-epsilon)
    widest = (1 + alpha**2) / (1 - alpha) ** 2
    prefixes = Prefixes.of(mechanism)
    spread = prefixes.prepared.sums(mechanism.empty()).spread
    np.testing.assert_allclose(spread[1 : m - 2], widest, rtol=1e-12)
    # Beside an end of the line one of the two outputs has the smaller weight a/(1 - a).
    np.testing.assert_allclose(
        spread[[0, m - 2]], 1 + alpha / (1 - alpha) + alpha / (1 - alpha) ** 2, rtol=1e-12
    )
    assert widest > (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
    statistic = np.arange(1, m + 1) * 10
    found = prefixes.estimate(statistic, int(statistic.sum()))
    np.testing.assert_allclose(found.influence[1 : m - 2], widest / statistic.sum(), rtol=1e-12)


# Population, uniform shares: mean variance a report over all ranges.
STATED = [(16, 1.0, 0.55803), (64, 1.0, 0.27589), (16, 0.3, 24.465), (24, 0.2, 81.195)]


@pytest.mark.grid
@pytest.mark.parametrize(("m", "epsilon", "stated"), STATED)
def test_all_ranges_of_a_line_have_the_stated_variance(m: int, epsilon: float, stated: float):
    mechanism = L1Geometric(epsilon, (m,))
    ranges = [range_values((m,), bounds) for bounds in boxes((m,))]
    found = predicted_set_variances(mechanism, ranges, estimand="population")
    assert found.mean() == pytest.approx(stated, rel=5e-5)


# [ML]'s bits over this mechanism, respondents, Zipf(1.1).
GAINS = [(16, 1.0, 5.0), (64, 1.0, 20.0), (64, 0.1, 1 / 2.2)]


@pytest.mark.grid
@pytest.mark.parametrize(("m", "epsilon", "gain"), GAINS)
def test_the_gain_over_one_bit_a_position(m: int, epsilon: float, gain: float):
    mechanism = L1Geometric(epsilon, (m,))
    shares = np.arange(1.0, m + 1.0) ** -1.1
    bounds = boxes((m,))
    ranges = [range_values((m,), b) for b in bounds]
    found = predicted_set_variances(mechanism, ranges, shares=shares / shares.sum())
    v = (1 / math.tanh(epsilon / 2) ** 2 - 1) / 2
    ends = np.array([(first > 0) + (last < m - 1) for ((first, last),) in bounds])
    assert (v * ends / 2).mean() / found.mean() == pytest.approx(gain, rel=0.025)


def test_the_gain_in_two_dimensions():
    """A box's second moment is a product, so its mean over all boxes is a square."""
    m, epsilon = 64, 1.0
    alpha = alpha_of(L1Geometric(epsilon, (m,)))
    channel = np.array([[float(q) for q in row] for row in by_definition(alpha, m)])
    inverse = np.array([[float(h) for h in row] for row in printed_inverse(alpha, m)])
    bits = (1 / math.tanh(epsilon / 2) ** 2 - 1) / 2
    shares = np.arange(1.0, m + 1.0) ** -1.1
    shares /= shares.sum()
    sums = np.zeros(3)
    for ((first, last),) in boxes((m,)):
        inside = ((first <= np.arange(m)) & (np.arange(m) <= last)).astype(float)
        ends = (first > 0) + (last < m - 1)
        second = channel @ (inverse @ inside) ** 2
        sums += shares @ second, shares @ (inside + bits * ends / 2), shares @ inside
    geometric, by_bits, inside = (sums / (m * (m + 1) / 2)) ** 2
    assert (by_bits - inside) / (geometric - inside) == pytest.approx(90.0, rel=0.02)
