"""Packed coins decide by exact comparisons, and `l1-bits` draws them as the vectors do."""

from fractions import Fraction

import numpy as np
import pytest

from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.l1.bits import L1Bits, packed_bernoulli, unpack
from tests.seeded import SeededEntropy


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
