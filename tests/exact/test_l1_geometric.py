"""`l1-geometric` against its definition and its closed forms, in exact rationals.

The realised alpha is a rational, so channel, inverse, bias and variances are enumerated without any
rounding; only what the decoder computes in floating point is compared with a tolerance.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.predict import predicted_set_variances, predicted_value_variances
from ldpstream.estimators.prefixes import Prefixes
from ldpstream.estimators.ranges import range_values
from ldpstream.mechanisms import SpecError
from ldpstream.mechanisms.entropy import WORD
from ldpstream.mechanisms.l1_geometric import L1Geometric

Matrix = list[list[Fraction]]
N = 1000


def alpha_of(mechanism: L1Geometric) -> Fraction:
    return Fraction(mechanism.threshold, WORD)


def by_definition(alpha: Fraction, m: int) -> Matrix:
    """clamp(x + G - G') of two geometrics: `P(D = d) = sum_g P(g + d) P(g)`, summed exactly."""

    def difference(d: int) -> Fraction:
        return (1 - alpha) ** 2 * alpha ** abs(d) / (1 - alpha**2)

    def beyond(d: int) -> Fraction:
        return difference(d) / (1 - alpha)  # P(D >= d), d >= 0

    rows = []
    for x in range(m):
        inner = [difference(y - x) for y in range(1, m - 1)]
        rows.append([beyond(x), *inner, beyond(m - 1 - x)] if m > 1 else [Fraction(1)])
    return rows


def kron(first: Matrix, second: Matrix) -> Matrix:
    return [[a * b for a in row for b in other] for row in first for other in second]


def printed_inverse(alpha: Fraction, m: int) -> Matrix:
    """The tridiagonal inverse as section 8 of the theory prints it."""
    if m == 1:
        return [[Fraction(1)]]
    out = [[Fraction(0)] * m for _ in range(m)]
    for y in range(m):
        end = y in (0, m - 1)
        scale = 1 / (1 - alpha) if end else 1 / (1 - alpha) ** 2
        out[y][y] = scale if end else (1 + alpha**2) * scale
        for beside in (y - 1, y + 1):
            if 0 <= beside < m:
                out[y][beside] = -alpha * scale
    return out


def times(matrix: Matrix, vector: list[Fraction]) -> list[Fraction]:
    return [sum((a * b for a, b in zip(row, vector, strict=True)), Fraction(0)) for row in matrix]


def over_shape(build: Callable[[Fraction, int], Matrix], mechanism: L1Geometric) -> Matrix:
    out: Matrix = [[Fraction(1)]]
    for length in mechanism.shape:
        out = kron(out, build(alpha_of(mechanism), length))
    return out


def boxes(shape: tuple[int, ...]):
    axes = [[(a, b) for a in range(m) for b in range(a, m)] for m in shape]
    return [list(bounds) for bounds in product(*axes)]


CASES = [
    L1Geometric(1.0, (6,)),
    L1Geometric(0.3, (2,)),
    L1Geometric(0.4, (7,)),
    L1Geometric(3.0, (5,)),
    L1Geometric(1.0, (3, 4)),
    L1Geometric(0.5, (3, 1, 2)),
    L1Geometric(2.0, (2, 3, 2)),
]
EVERY = pytest.mark.parametrize("mechanism", CASES, ids=lambda m: f"{m.epsilon}-{m.shape}")


@EVERY
def test_the_channel_is_the_clamped_difference_of_two_geometrics(mechanism: L1Geometric):
    rows = mechanism.channel().rows
    exact = over_shape(by_definition, mechanism)
    assert [[row[y] for y in range(mechanism.size)] for row in rows] == exact


@EVERY
def test_the_printed_inverse_is_the_inverse_and_the_decoders(mechanism: L1Geometric):
    channel = over_shape(by_definition, mechanism)
    inverse = over_shape(printed_inverse, mechanism)
    for value in range(mechanism.size):
        column = [row[value] for row in inverse]
        assert times(channel, column) == [Fraction(x == value) for x in range(mechanism.size)]
        unit = np.zeros(mechanism.size)
        unit[value] = 1.0
        decoded = mechanism.decoder().decode(unit)
        np.testing.assert_allclose(decoded, [float(h) for h in column], rtol=1e-13, atol=1e-300)


@EVERY
def test_every_range_has_no_bias_and_the_variance_of_the_enumeration(mechanism: L1Geometric):
    channel = over_shape(by_definition, mechanism)
    inverse = over_shape(printed_inverse, mechanism)
    shares = [Fraction(1, x + 1) for x in range(mechanism.size)]
    shares = [share / sum(shares) for share in shares]
    p = np.array([float(share) for share in shares])
    ranges = [range_values(mechanism.shape, bounds) for bounds in boxes(mechanism.shape)]
    exact = []
    for members in ranges:
        w = [Fraction(0)] * mechanism.size
        for value in members:
            w[value] = Fraction(1)
        h = times(inverse, w)
        assert times(channel, h) == w
        second = times(channel, [entry**2 for entry in h])
        noise = (q * (s - v) for q, s, v in zip(shares, second, w, strict=True))
        exact.append((sum(noise), sum(a * b for a, b in zip(shares, w, strict=True))))
    respondents = np.array([float(noise) for noise, _ in exact])
    drawn = np.array([float(noise + mean * (1 - mean)) for noise, mean in exact])
    for estimand, expected in (("respondents", respondents), ("population", drawn)):
        found = predicted_set_variances(mechanism, N, ranges, shares=p, estimand=estimand)
        np.testing.assert_allclose(found * N, expected, rtol=1e-9, atol=1e-12)


@EVERY
def test_the_plug_in_is_the_variance_on_average_and_the_estimate_the_truth(mechanism: L1Geometric):
    """Both are linear in the counts, so the expected counts give their exact means."""
    scale = 10**6
    channel = over_shape(by_definition, mechanism)
    users = [7 + 3 * x for x in range(mechanism.size)]
    expected = times([list(column) for column in zip(*channel, strict=True)], users)
    counts = np.array([round(scale * float(count)) for count in expected])
    n = int(counts.sum())
    p = np.array(users) / sum(users)
    values = estimate_values(mechanism, counts, n)
    every = range(mechanism.size)
    peak = mechanism.decoder().extremes()[1].max()
    np.testing.assert_allclose(values.value, p, atol=1e-5 * peak)
    variances = predicted_value_variances(mechanism, n, every, shares=p)
    np.testing.assert_allclose(values.se**2, variances, rtol=1e-4)
    boxes_ = [range_values(mechanism.shape, b) for b in boxes(mechanism.shape)[:-1]]
    sets = estimate_sets(mechanism, counts, n, boxes_)
    np.testing.assert_allclose(sets.value, [p[s].sum() for s in boxes_], atol=1e-5 * peak)
    inexact = np.array([len(s) < mechanism.size for s in boxes_])
    variances = predicted_set_variances(mechanism, n, boxes_, shares=p)
    np.testing.assert_allclose(sets.se[inexact] ** 2, variances[inexact], rtol=1e-3)


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
        (found,) = predicted_set_variances(mechanism, N, [members], shares=p)
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
        (found,) = predicted_set_variances(mechanism, N, [members], shares=p)
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


# docs/theory.md section 8, population, uniform shares: mean variance a report over all ranges.
STATED = [(16, 1.0, 0.55803), (64, 1.0, 0.27589), (16, 0.3, 24.465), (24, 0.2, 81.195)]


@pytest.mark.parametrize(("m", "epsilon", "stated"), STATED)
def test_all_ranges_of_a_line_have_the_stated_variance(m: int, epsilon: float, stated: float):
    mechanism = L1Geometric(epsilon, (m,))
    ranges = [range_values((m,), bounds) for bounds in boxes((m,))]
    found = predicted_set_variances(mechanism, 1, ranges, estimand="population")
    assert found.mean() == pytest.approx(stated, rel=5e-5)


# The same section: [ML]'s bits over this mechanism, respondents, Zipf(1.1).
GAINS = [(16, 1.0, 5.0), (64, 1.0, 20.0), (64, 0.1, 1 / 2.2)]


@pytest.mark.parametrize(("m", "epsilon", "gain"), GAINS)
def test_the_gain_over_one_bit_a_position(m: int, epsilon: float, gain: float):
    mechanism = L1Geometric(epsilon, (m,))
    shares = np.arange(1.0, m + 1.0) ** -1.1
    bounds = boxes((m,))
    ranges = [range_values((m,), b) for b in bounds]
    found = predicted_set_variances(mechanism, 1, ranges, shares=shares / shares.sum())
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


def test_a_dimension_of_one_value_changes_nothing():
    flat, line = L1Geometric(1.0, (1, 5, 1)), L1Geometric(1.0, (5,))
    assert flat.channel() == line.channel()
    counts = np.array([4, 0, 9, 1, 2])
    np.testing.assert_array_equal(flat.decoder().shares(counts), line.decoder().shares(counts))


def test_a_large_domain_is_decoded_without_a_matrix():
    mechanism = L1Geometric(0.01, (1000, 1000))
    weights = np.zeros(mechanism.size)
    weights[range_values((1000, 1000), [(10, 400), (3, 999)])] = 1.0
    decoder = mechanism.decoder()
    np.testing.assert_allclose(decoder.expect(decoder.decode(weights)), weights, atol=1e-6)


@pytest.mark.parametrize("epsilon", [0, -1.0, math.inf, -math.inf, math.nan, True, "1", 10**400])
def test_an_impossible_epsilon_is_refused_by_name(epsilon: float):
    with pytest.raises(SpecError, match=r"^epsilon: expected a finite number above 0"):
        L1Geometric(epsilon, (4,))


def test_an_epsilon_whose_channel_says_nothing_is_refused():
    with pytest.raises(SpecError, match=r"^epsilon: expected a number of at least 1e-18"):
        L1Geometric(1e-20, (4,))
    assert L1Geometric(1e-18, (4,)).certify().passed
    with pytest.raises(SpecError, match=r"^epsilon: expected a larger number in 4 dimensions"):
        L1Geometric(1e-18, (4, 4, 4, 4))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (0, 3), (-2, 3), (2.5,), (10**4, 10**4)])
def test_an_impossible_shape_is_refused_by_name(shape: tuple[int, ...]):
    with pytest.raises(SpecError, match=r"^shape"):
        L1Geometric(1.0, shape)
