"""`l1-bits` against its definition and its closed forms, in exact rationals.

Entries, reports and decoders are enumerated from section 5 of the theory, apart from the code.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.predict import predicted_set_variances, predicted_value_variances
from ldpstream.estimators.ranges import range_values
from ldpstream.mechanisms import SeededEntropy, SpecError
from ldpstream.mechanisms.entropy import WORD
from ldpstream.mechanisms.l1_bits import L1Bits

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
Bounds = list[tuple[int, int]]


def contrast_of(mechanism: L1Bits) -> Fraction:
    return Fraction(2 * mechanism.threshold - WORD, WORD)


def cells(mechanism: L1Bits) -> list[tuple[int, ...]]:
    return list(product(*map(range, mechanism.shape)))


def boxes(shape: tuple[int, ...]) -> list[Bounds]:
    axes = [[(a, b) for a in range(m) for b in range(a, m)] for m in shape]
    return [list(bounds) for bounds in product(*axes)]


def signs(mechanism: L1Bits, cell: tuple[int, ...]) -> list[int]:
    """The entries that are sent, before any flip."""
    pairs = zip(cell, mechanism.shape, strict=True)
    return [1 if j >= x else -1 for x, m in pairs for j in range(m - 1)]


def reports(mechanism: L1Bits) -> list[tuple[int, ...]]:
    """All reports as signs, numbered as in `possible_reports`."""
    noisy = sum(mechanism.shape) - len(mechanism.shape)
    return [tuple(2 * (y >> i & 1) - 1 for i in range(noisy)) for y in range(1 << noisy)]


def probabilities(mechanism: L1Bits, cell: tuple[int, ...]) -> list[Fraction]:
    keep, plain = Fraction(mechanism.threshold, WORD), signs(mechanism, cell)
    out = []
    for report in reports(mechanism):
        flips = sum(a != b for a, b in zip(plain, report, strict=True))
        out.append(keep ** (len(plain) - flips) * (1 - keep) ** flips)
    return out


def decoded(mechanism: L1Bits, report: tuple[int, ...], bounds: Bounds) -> Fraction:
    """`prod_d (R[r]/t - R[l-1]/t)/2`, `R[0] = -1` and `R[m] = +1` exact."""
    t, rest, out = contrast_of(mechanism), list(report), Fraction(1)
    for m, (first, last) in zip(mechanism.shape, bounds, strict=True):
        entries = [Fraction(-1), *(sign / t for sign in rest[: m - 1]), Fraction(1)]
        rest = rest[m - 1 :]
        out *= (entries[last + 1] - entries[first]) / 2
    return out


def inside(cell: tuple[int, ...], bounds: Bounds) -> bool:
    return all(a <= x <= b for x, (a, b) in zip(cell, bounds, strict=True))


def ends_noise(mechanism: L1Bits, bounds: Bounds) -> list[Fraction]:
    """v of each dimension: `(1/t^2 - 1)/2` with two noisy ends, half of it with one."""
    unit = (1 / contrast_of(mechanism) ** 2 - 1) / 4
    pairs = zip(mechanism.shape, bounds, strict=True)
    return [unit * ((a > 0) + (b < m - 1)) for m, (a, b) in pairs]


def closed_noise(mechanism: L1Bits, bounds: Bounds) -> list[Fraction]:
    """`prod_d (v_d + 1{in}) - prod_d 1{in}` for a user of each value."""
    noise = ends_noise(mechanism, bounds)
    out = []
    for cell in cells(mechanism):
        hits = [a <= x <= b for x, (a, b) in zip(cell, bounds, strict=True)]
        second = math.prod(v + hit for v, hit in zip(noise, hits, strict=True))
        out.append(Fraction(second) - all(hits))
    return out


@EVERY
def test_the_channel_flips_every_entry_by_itself(mechanism: L1Bits):
    rows = mechanism.channel().rows
    for row, cell in zip(rows, cells(mechanism), strict=True):
        assert [row[y] for y in range(len(row))] == probabilities(mechanism, cell)


@EVERY
def test_every_box_has_no_bias_and_the_closed_variance(mechanism: L1Bits):
    """In rationals, by summing over all reports; then the decoder's numbers against them."""
    channel = [probabilities(mechanism, cell) for cell in cells(mechanism)]
    possible, decoder = reports(mechanism), mechanism.decoder()
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


@EVERY
def test_reports_decode_as_defined(mechanism: L1Bits):
    decoder, ranges = mechanism.decoder(), boxes(mechanism.shape)
    rows = mechanism.possible_reports()
    for y, report in enumerate(reports(mechanism)):
        statistic = mechanism.empty()
        mechanism.absorb(statistic, rows[y : y + 1])
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
    peak = mechanism.decoder().extremes()[1].max()
    values = estimate_values(mechanism, statistic, n)
    np.testing.assert_allclose(values.value, p, atol=1e-6 * peak)
    variances = predicted_value_variances(mechanism, n, range(mechanism.size), shares=p)
    np.testing.assert_allclose(values.se**2, variances, rtol=1e-4)
    ranges = [range_values(mechanism.shape, bounds) for bounds in boxes(mechanism.shape)]
    sets = estimate_sets(mechanism, statistic, n, ranges)
    np.testing.assert_allclose(sets.value, [p[s].sum() for s in ranges], atol=1e-6 * peak)
    variances = predicted_set_variances(mechanism, n, ranges, shares=p)
    np.testing.assert_allclose(sets.se**2, variances, rtol=1e-4, atol=1e-15)


def test_the_published_bound_is_none_in_two_dimensions():
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
        (found,) = predicted_set_variances(mechanism, 1, [box], shares=everyone)
        assert found == pytest.approx(true, abs=0.005)
        if len(shape) == 1:
            assert found == pytest.approx(claimed(1), rel=1e-12)
        else:
            assert claimed(2) == pytest.approx(5.23, abs=0.005)
            assert found > 1.35 * claimed(2)


def test_weights_that_are_no_boxes_have_outward_spans():
    mechanism = L1Bits(1.0, (3, 3))
    weights = np.eye(3).ravel()
    rows = mechanism.possible_reports()
    decoder, totals = mechanism.decoder(), []
    for y in range(len(rows)):
        statistic = mechanism.empty()
        mechanism.absorb(statistic, rows[y : y + 1])
        totals.append(decoder.total(weights, statistic))
    least, largest = decoder.span(weights)
    assert least < min(totals) - 0.1
    assert largest >= max(totals) - 1e-12
    assert decoder.span(np.zeros(9)) == (0.0, 0.0)
    assert decoder.span(np.ones(9)) == (1.0, 1.0)
    ends = decoder.span(np.multiply.outer([1.0, 0.5, -2.0], [0.25, 3.0, 1.0]).ravel())
    factor = L1Bits(1.0, (3,)).decoder()
    pairs = product(
        factor.span(np.array([1.0, 0.5, -2.0])), factor.span(np.array([0.25, 3.0, 1.0]))
    )
    products = [a * b for a, b in pairs]
    np.testing.assert_allclose(ends, [min(products), max(products)], rtol=1e-12)


@pytest.mark.parametrize("shape", [(2,), (9,), (3, 4), (2, 3, 4), (2, 2, 2, 3), (40, 3)])
def test_the_statistic_sums_products_of_signs(shape: tuple[int, ...]):
    mechanism = L1Bits(0.7, shape)
    values = np.random.default_rng(1).integers(0, mechanism.size, 300)
    values[100:] = mechanism.size - 1
    rows = mechanism.privatize(values, entropy=SeededEntropy(1))
    statistic = mechanism.empty()
    mechanism.absorb(statistic, rows)
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    assert not bits[:, mechanism.report_bits :].any()
    expected = np.zeros(shape, dtype=np.int64)
    for row in bits.astype(np.int64):
        products, start = np.ones(()), 0
        for m in shape:
            entries = np.append(2 * row[start : start + m - 1] - 1, 1)
            products = np.multiply.outer(products, entries)
            start += m - 1
        expected += products.astype(np.int64)
    assert np.array_equal(statistic, expected.ravel())
    assert statistic.min() < 0


def test_more_reports_than_one_matrix_product_takes():
    mechanism = L1Bits(50.0, (2, 2))
    values = np.random.default_rng(2).integers(0, 4, 150_000)
    statistic = mechanism.empty()
    mechanism.absorb(statistic, mechanism.privatize(values))
    counts = np.bincount(values, minlength=4)
    # At eps = 50 nothing is ever flipped.
    found = mechanism.decoder().shares(statistic)
    np.testing.assert_allclose(found, counts, rtol=1e-12)
    assert mechanism.count(statistic) == 150_000


def test_a_dimension_of_one_value_changes_nothing():
    flat, line = L1Bits(1.0, (1, 5, 1)), L1Bits(1.0, (5,))
    assert flat.channel() == line.channel()
    assert (flat.report_bytes, flat.statistic_size) == (1, 5)
    statistic = np.array([-3, 4, -1, 1, 9])
    np.testing.assert_array_equal(
        flat.decoder().shares(statistic), line.decoder().shares(statistic)
    )


def test_reports_with_unused_bits_are_marked():
    mechanism = L1Bits(1.0, (6,))
    payload = np.array([[0b00011111], [0b00100000], [0b10000001], [0]], dtype=np.uint8)
    decoded_rows, valid = mechanism.decode(payload)
    assert valid.tolist() == [True, False, False, True]
    assert np.array_equal(decoded_rows[valid], payload[valid])
    whole = L1Bits(1.0, (9,))
    assert whole.decode(np.full((3, 1), 255, dtype=np.uint8))[1].all()


def test_large_domains_are_prepared_without_a_matrix():
    for shape in ((65_536,), (256, 256), (40, 40, 40)):
        mechanism = L1Bits(0.5, shape)
        bounds = [(m // 4, m // 2) for m in shape]
        weights = np.zeros(mechanism.size)
        weights[range_values(shape, bounds)] = 1.0
        v = (1 / math.tanh(0.25) ** 2 - 1) / 2
        noise = mechanism.decoder().noise(weights)
        assert noise.max() == pytest.approx((1 + v) ** len(shape) - 1, rel=1e-12)
        assert noise.min() == pytest.approx(v ** len(shape), rel=1e-12)
        assert mechanism.certify().proof == "structure"


@pytest.mark.parametrize("epsilon", [0, -1.0, math.inf, -math.inf, math.nan, True, "1", 10**400])
def test_an_impossible_epsilon_is_refused_by_name(epsilon: float):
    with pytest.raises(SpecError, match=r"^epsilon: expected a finite number above 0"):
        L1Bits(epsilon, (4,))


def test_an_epsilon_whose_channel_says_nothing_is_refused():
    with pytest.raises(SpecError, match=r"^epsilon: expected a number of at least 1e-18"):
        L1Bits(1e-20, (4,))
    assert L1Bits(1e-18, (4,)).certify().passed
    with pytest.raises(SpecError, match=r"^epsilon: expected a larger number in 5 dimensions"):
        L1Bits(1e-18, (4, 4, 4, 4, 4))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (0, 3), (-2, 3), (2.5,), (10**4, 10**4)])
def test_an_impossible_shape_is_refused_by_name(shape: tuple[int, ...]):
    with pytest.raises(SpecError, match=r"^shape"):
        L1Bits(1.0, shape)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((65_538,), "at most 65536 bits a report, one a position, got 65537"),
        ((1200, 1200), "at most 1048576 values in 2 dimensions, as every report adds to a sum"),
        ((2,) * 14, "at most 1024 values in 14 dimensions"),
    ],
)
def test_domains_out_of_proportion_are_refused_with_the_reason(shape: tuple, expected: str):
    with pytest.raises(SpecError, match=f"^shape: expected {expected}"):
        L1Bits(1.0, shape)
