"""`l1-geometric` against its definition: channel, inverse, bias and variances.

The realised alpha is a rational, so all of them are enumerated without any rounding; only what the
decoder computes in floating point is compared with a tolerance. Last, what it and `l1-bits` refuse.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.estimators.queries import range_values
from ldpstream.mechanisms import SpecError
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from tests.exact.enumeration import boxes, predicted_value_variances
from tests.exact.geometric_channel import by_definition, matrix_times, over_shape, printed_inverse

N = 1000
CASES = [
    L1Geometric(1.0, (6,)),
    L1Geometric(0.3, (2,)),
    L1Geometric(0.4, (7,)),
    L1Geometric(3.0, (5,)),
    L1Geometric(1.0, (3, 4)),
    L1Geometric(0.5, (3, 1, 2)),
    L1Geometric(2.0, (2, 3, 2)),
]
Kind = type[L1Bits] | type[L1Geometric]
KINDS = pytest.mark.parametrize("kind", [L1Bits, L1Geometric])
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
        assert matrix_times(channel, column) == [
            Fraction(x == value) for x in range(mechanism.size)
        ]
        unit = np.zeros(mechanism.size)
        unit[value] = 1.0
        decoded = mechanism.decoder.decode(unit)
        np.testing.assert_allclose(decoded, [float(h) for h in column], rtol=1e-13, atol=1e-300)


@pytest.mark.grid
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
        h = matrix_times(inverse, w)
        assert matrix_times(channel, h) == w
        second = matrix_times(channel, [entry**2 for entry in h])
        noise = (q * (s - v) for q, s, v in zip(shares, second, w, strict=True))
        exact.append((sum(noise), sum(a * b for a, b in zip(shares, w, strict=True))))
    respondents = np.array([float(noise) for noise, _ in exact])
    drawn = np.array([float(noise + mean * (1 - mean)) for noise, mean in exact])
    for estimand, expected in (("respondents", respondents), ("population", drawn)):
        found = predicted_set_variances(mechanism, ranges, shares=p, estimand=estimand) / N
        np.testing.assert_allclose(found * N, expected, rtol=1e-9, atol=1e-12)


@EVERY
def test_the_plug_in_is_the_variance_on_average_and_the_estimate_the_truth(mechanism: L1Geometric):
    """Both are linear in the counts, so the expected counts give their exact means."""
    scale = 10**6
    channel = over_shape(by_definition, mechanism)
    users = [7 + 3 * x for x in range(mechanism.size)]
    expected = matrix_times([list(column) for column in zip(*channel, strict=True)], users)
    counts = np.array([round(scale * float(count)) for count in expected])
    n = int(counts.sum())
    p = np.array(users) / sum(users)
    values = estimate_values(mechanism, counts, n)
    every = range(mechanism.size)
    peak = mechanism.decoder.extremes()[1].max()
    np.testing.assert_allclose(values.value, p, atol=1e-5 * peak)
    variances = predicted_value_variances(mechanism, every, shares=p) / n
    np.testing.assert_allclose(values.se**2, variances, rtol=1e-4)
    boxes_ = [range_values(mechanism.shape, b) for b in boxes(mechanism.shape)[:-1]]
    sets = estimate_sets(mechanism, counts, n, boxes_)
    np.testing.assert_allclose(sets.value, [p[s].sum() for s in boxes_], atol=1e-5 * peak)
    inexact = np.array([len(s) < mechanism.size for s in boxes_])
    variances = predicted_set_variances(mechanism, boxes_, shares=p) / n
    np.testing.assert_allclose(sets.se[inexact] ** 2, variances[inexact], rtol=1e-3)


def test_a_dimension_of_one_value_changes_nothing():
    flat, line = L1Geometric(1.0, (1, 5, 1)), L1Geometric(1.0, (5,))
    assert flat.channel() == line.channel()
    counts = np.array([4, 0, 9, 1, 2])
    np.testing.assert_array_equal(flat.decoder.totals(counts), line.decoder.totals(counts))


def test_a_large_domain_is_decoded_without_a_matrix():
    mechanism = L1Geometric(0.01, (1000, 1000))
    weights = np.zeros(mechanism.size)
    weights[range_values((1000, 1000), [(10, 400), (3, 999)])] = 1.0
    decoder = mechanism.decoder
    np.testing.assert_allclose(decoder.expect(decoder.decode(weights)), weights, atol=1e-6)


@KINDS
@pytest.mark.parametrize("epsilon", [0, -1.0, math.inf, -math.inf, math.nan, True, "1", 10**400])
def test_an_impossible_epsilon_is_refused_by_name(kind: Kind, epsilon: float):
    with pytest.raises(SpecError, match=r"^epsilon: expected a finite number above 0"):
        kind(epsilon, (4,))


@pytest.mark.parametrize(("kind", "most"), [(L1Geometric, 3), (L1Bits, 4)])
def test_an_epsilon_whose_channel_says_nothing_is_refused(kind: Kind, most: int):
    with pytest.raises(SpecError, match=r"^epsilon: expected a number of at least 1e-18"):
        kind(1e-20, (4,))
    assert kind(1e-18, (4,)).certify().passed
    said = rf"^epsilon: expected a larger number in {most + 1} dimensions"
    with pytest.raises(SpecError, match=said):
        kind(1e-18, (4,) * (most + 1))


@KINDS
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (0, 3), (-2, 3), (2.5,), (10**4, 10**4)])
def test_an_impossible_shape_is_refused_by_name(kind: Kind, shape: tuple[int, ...]):
    with pytest.raises(SpecError, match=r"^shape"):
        kind(1.0, shape)
