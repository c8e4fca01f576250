"""`l1-bits` against its definition and its closed forms, in exact rationals."""

import math
from itertools import product

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.estimators.queries import range_values
from ldpstream.mechanisms.families.l1.bits import L1Bits
from tests.exact.enumeration import accumulated, boxes, predicted_value_variances
from tests.exact.l1_bits_reference import (
    cells,
    closed_noise,
    contrast_of,
    decoded,
    inside,
    probabilities,
    reports,
)

N = 1000
CASES = [
    L1Bits(1.0, (6,)),
    L1Bits(0.3, (2,)),
    L1Bits(3.0, (5,)),
    L1Bits(1.0, (3, 4)),
    L1Bits(0.5, (3, 1, 2)),
    L1Bits(2.0, (2, 3, 2)),
]
EVERY = pytest.mark.parametrize("mechanism", CASES, ids=lambda m: f"{m.epsilon}-{m.shape}")


@EVERY
def test_the_channel_flips_every_entry_by_itself(mechanism: L1Bits):
    rows = mechanism.channel().rows
    for row, cell in zip(rows, cells(mechanism), strict=True):
        assert [row[y] for y in range(len(row))] == probabilities(mechanism, cell)


@pytest.mark.grid
@EVERY
def test_every_box_has_no_bias_and_the_closed_variance(mechanism: L1Bits):
    """In rationals, by summing over all reports; then the decoder's numbers against them."""
    channel = [probabilities(mechanism, cell) for cell in cells(mechanism)]
    possible, decoder = reports(mechanism), mechanism.decoder
    for bounds in boxes(mechanism.shape):
        h = [decoded(mechanism, report, bounds) for report in possible]
        noise = []
        for row, cell in zip(channel, cells(mechanism), strict=True):
            truth = inside(cell, bounds)
            assert sum(p * d for p, d in zip(row, h, strict=True)) == truth
            noise.append(sum(p * d**2 for p, d in zip(row, h, strict=True)) - truth)
        assert noise == closed_noise(mechanism, bounds)
        weights = np.zeros(mechanism.size)
        weights[range_values(mechanism.shape, bounds)] = 1.0
        found = decoder.noise(weights)
        np.testing.assert_allclose(found, [float(v) for v in noise], rtol=1e-13, atol=0)
        span = decoder.span(weights)
        np.testing.assert_allclose(span, [float(min(h)), float(max(h))], rtol=1e-13, atol=1e-15)


@pytest.mark.grid
@EVERY
def test_reports_decode_as_defined(mechanism: L1Bits):
    decoder, ranges = mechanism.decoder, boxes(mechanism.shape)
    rows = mechanism.possible_reports()
    for y, report in enumerate(reports(mechanism)):
        statistic = accumulated(mechanism, rows[y : y + 1])
        for bounds in ranges:
            weights = np.zeros(mechanism.size)
            weights[range_values(mechanism.shape, bounds)] = 1.0
            exact = float(decoded(mechanism, report, bounds))
            assert decoder.total(weights, statistic) == pytest.approx(exact, rel=1e-12, abs=1e-12)


@EVERY
def test_the_plug_in_is_the_variance_on_average_and_the_estimate_the_truth(mechanism: L1Bits):
    """Both are linear in the sums, so the expected sums give their exact means."""
    scale, t = 10**6, contrast_of(mechanism)
    users = [7 + 3 * x for x in range(mechanism.size)]
    expected = []
    for entry in cells(mechanism):
        noisy = sum(j < m - 1 for j, m in zip(entry, mechanism.shape, strict=True))
        products = (
            count * math.prod(1 if j >= x else -1 for x, j in zip(cell, entry, strict=True))
            for count, cell in zip(users, cells(mechanism), strict=True)
        )
        expected.append(round(scale * t**noisy * sum(products)))
    statistic, p = np.array(expected), np.array(users) / sum(users)
    n = int(statistic[-1])
    assert n == scale * sum(users)
    peak = mechanism.decoder.extremes()[1].max()
    values = estimate_values(mechanism, statistic, n)
    np.testing.assert_allclose(values.value, p, atol=1e-6 * peak)
    variances = predicted_value_variances(mechanism, range(mechanism.size), shares=p) / n
    np.testing.assert_allclose(values.se**2, variances, rtol=1e-4)
    ranges = [range_values(mechanism.shape, bounds) for bounds in boxes(mechanism.shape)]
    sets = estimate_sets(mechanism, statistic, n, ranges)
    np.testing.assert_allclose(sets.value, [p[s].sum() for s in ranges], atol=1e-6 * peak)
    variances = predicted_set_variances(mechanism, ranges, shares=p) / n
    np.testing.assert_allclose(sets.se**2, variances, rtol=1e-4, atol=1e-15)


def test_the_published_bound_does_not_hold_in_two_dimensions():
    """[ML] Theorems 2 and 3 with constant 1: `t^(-2D) 2^-D (1 - t^(2D)) n`.

    It drops the covariance of cells that share a coordinate; for D = 1 it is exact.
    """
    t = math.tanh(0.5)

    def claimed(dimensions: int) -> float:
        return t ** (-2 * dimensions) * 2.0**-dimensions * (1.0 - t ** (2 * dimensions))

    for shape, true in (((9,), 1.84), ((9, 9), 7.07)):
        mechanism = L1Bits(1.0, shape)
        box = range_values(shape, [(2, 6)] * len(shape))
        everyone = np.zeros(mechanism.size)
        everyone[range_values(shape, [(4, 4)] * len(shape))] = 1.0
        (found,) = predicted_set_variances(mechanism, [box], shares=everyone)
        assert found == pytest.approx(true, abs=0.005)
        if len(shape) == 1:
            assert found == pytest.approx(claimed(1), rel=1e-12)
        else:
            assert claimed(2) == pytest.approx(5.23, abs=0.005)
            assert found > 1.35 * claimed(2)


def test_spans_of_weights_that_are_not_boxes_are_outward():
    mechanism = L1Bits(1.0, (3, 3))
    weights = np.eye(3).ravel()
    rows = mechanism.possible_reports()
    decoder, totals = mechanism.decoder, []
    for y in range(len(rows)):
        statistic = accumulated(mechanism, rows[y : y + 1])
        totals.append(decoder.total(weights, statistic))
    least, largest = decoder.span(weights)
    assert least < min(totals) - 0.1
    assert largest >= max(totals) - 1e-12
    assert decoder.span(np.zeros(9)) == (0.0, 0.0)
    assert decoder.span(np.ones(9)) == (1.0, 1.0)
    ends = decoder.span(np.multiply.outer([1.0, 0.5, -2.0], [0.25, 3.0, 1.0]).ravel())
    factor = L1Bits(1.0, (3,)).decoder
    pairs = product(
        factor.span(np.array([1.0, 0.5, -2.0])), factor.span(np.array([0.25, 3.0, 1.0]))
    )
    products = [a * b for a, b in pairs]
    np.testing.assert_allclose(ends, [min(products), max(products)], rtol=1e-12)
