"""`l1-bits` against its definition, in exact rationals: its channel, what it sends and sums."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from ldpstream.mechanisms import SpecError
from ldpstream.mechanisms.domains.queries import range_values
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.l1.bits import L1Bits
from tests.exact.enumeration import accumulated
from tests.seeded import SeededEntropy

CASES = [
    L1Bits(1.0, (6,)),
    L1Bits(0.3, (2,)),
    L1Bits(3.0, (5,)),
    L1Bits(1.0, (3, 4)),
    L1Bits(0.5, (3, 1, 2)),
    L1Bits(2.0, (2, 3, 2)),
]
EVERY = pytest.mark.parametrize("mechanism", CASES, ids=lambda m: f"{m.epsilon}-{m.shape}")


def cells(mechanism: L1Bits) -> list[tuple[int, ...]]:
    return list(product(*map(range, mechanism.shape)))


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


@EVERY
def test_the_channel_flips_every_entry_by_itself(mechanism: L1Bits):
    rows = mechanism.channel().rows
    for row, cell in zip(rows, cells(mechanism), strict=True):
        assert [row[y] for y in range(len(row))] == probabilities(mechanism, cell)


@pytest.mark.parametrize("shape", [(2,), (9,), (3, 4), (2, 3, 4), (2, 2, 2, 3), (40, 3)])
def test_the_statistic_sums_products_of_signs(shape: tuple[int, ...]):
    mechanism = L1Bits(0.7, shape)
    values = np.random.default_rng(1).integers(0, mechanism.size, 300)
    values[100:] = mechanism.size - 1
    rows = mechanism.privatize(values, entropy=SeededEntropy(1))
    statistic = accumulated(mechanism, rows)
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
    statistic = accumulated(mechanism, mechanism.privatize(values))
    counts = np.bincount(values, minlength=4)
    # At eps = 50 nothing is ever flipped.
    found = mechanism.decoder.totals(statistic)
    np.testing.assert_allclose(found, counts, rtol=1e-12)
    assert mechanism.count(statistic) == 150_000


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
        noise = mechanism.decoder.noise(weights)
        assert noise.max() == pytest.approx((1 + v) ** len(shape) - 1, rel=1e-12)
        assert noise.min() == pytest.approx(v ** len(shape), rel=1e-12)
        assert mechanism.certify().proof == "structure"


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
