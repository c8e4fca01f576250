"""`l1-bits` against its definition, in exact rationals: its channel, coins, draws and sums."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from ldpstream.mechanisms import SpecError
from ldpstream.mechanisms.domains.queries import range_values
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.l1.bits import L1Bits, packed_bernoulli, unpack
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


class Digits:
    """Hands out the binary digits of given numbers, 64 numbers a word, the highest digit first."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers, self.place = numbers, 64

    def words(self, n: int) -> np.ndarray:
        assert n == 1
        self.place -= 1
        return np.array(
            [sum((u >> self.place & 1) << bit for bit, u in enumerate(self.numbers))],
            dtype=np.uint64,
        )


@pytest.mark.parametrize(
    "threshold", [0, 1, WORD // 2, WORD // 2 + 1, 0xBB26A7AEAD15E6CA, WORD - 2, WORD - 1]
)
def test_a_coin_is_one_where_its_number_is_below_the_threshold(threshold: int):
    rng = np.random.default_rng(1)
    near = [threshold + step for step in range(-8, 9)] + [0, 1, WORD - 1, WORD // 2]
    prefixes = [threshold ^ (1 << place) for place in range(0, 64, 3)]
    numbers = [u for u in (*near, *prefixes) if 0 <= u < WORD][:64]
    numbers += rng.integers(0, WORD, 64 - len(numbers), dtype=np.uint64).tolist()
    packed = packed_bernoulli(Digits(numbers), Fraction(threshold, WORD), 8)
    assert unpack(packed[None], 64)[0].tolist() == [u < threshold for u in numbers]


def reference(threshold: int, n: int, entropy: SeededEntropy) -> list[int]:
    """The coins of n bytes, 1 where a bit is kept, one bit at a time, in plain integers.

    The bytes, unused bits included and the last group padded, form groups of 64 bits. Round by
    round, for the digits of T from the highest of 64 on, each group of which a bit is undecided
    draws a word; its bit i, from the lowest, belongs to bit i of the group. An undecided bit whose
    digit differs from T's is decided: kept if the digit is 0, else flipped. A bit undecided after
    all 64 is flipped. Many values are taken in parts of 4 MiB of reports. Under `hold` the next 64
    digits of the probability follow, until they end or all bits are decided.
    """
    count = -(-n // 8)
    decided: list[dict[int, int]] = [{} for _ in range(count)]
    for place in reversed(range(64)):
        drawing = [i for i in range(count) if len(decided[i]) < 64]
        if not drawing:
            break
        words = entropy.words(len(drawing)).tolist()
        for i, word in zip(drawing, words, strict=True):
            for bit in set(range(64)) - decided[i].keys():
                digit = word >> bit & 1
                if digit != threshold >> place & 1:
                    decided[i][bit] = int(digit == 0)
    return [coins.get(bit, 0) for coins in decided for bit in range(64)][: 8 * n]


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 3.0, 60.0])
@pytest.mark.parametrize("shape", [(2,), (9,), (10,), (3, 1, 7), (70, 5)])
def test_reports_are_drawn_as_specified(epsilon: float, shape: tuple[int, ...]):
    mechanism = L1Bits(epsilon, shape)
    values = np.random.default_rng(3).integers(0, mechanism.size, 41)
    found = mechanism.privatize(values, entropy=SeededEntropy(11))
    size = mechanism.report_bytes
    kept = reference(mechanism.threshold, 41 * size, SeededEntropy(11))
    for row, value in enumerate(values.tolist()):
        plain = [
            int(j >= x)
            for x, m in zip(np.unravel_index(value, shape), shape, strict=True)
            for j in range(m - 1)
        ]
        coins = kept[8 * size * row :]
        bits = [b if keep else 1 - b for b, keep in zip(plain, coins, strict=False)]
        expected = sum(b << i for i, b in enumerate(bits)).to_bytes(size, "little")
        assert found[row].tobytes() == expected


def test_many_reports_are_those_of_several_parts(monkeypatch: pytest.MonkeyPatch):
    """Values are taken in parts, each with its own coins: the parts' reports in a row."""
    mechanism, values = L1Bits(1.0, (30,)), np.arange(30)
    monkeypatch.setattr("ldpstream.mechanisms.families.l1.bits._CHUNK_BYTES", 40)
    entropy = SeededEntropy(5)
    parts = [mechanism.privatize(values[i : i + 10], entropy=entropy) for i in (0, 10, 20)]
    whole = mechanism.privatize(values, entropy=SeededEntropy(5))
    assert np.array_equal(whole, np.concatenate(parts))
