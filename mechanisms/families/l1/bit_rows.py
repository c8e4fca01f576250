"""Rows of bits, packed eight to a byte: the reports of `l1-bits`, and the sums of its statistic.

Bit i of a row is bit `i mod 8`, counted from the lowest, of byte `i div 8`; bits beyond the row's
width are 0. In a report, 1 stands for +1 and 0 for -1. It holds the entries `0..m_d - 2` of one
dimension after the other; the last entry of every dimension is +1 and not sent. The statistic is
the tensor `o[j_1, .., j_D] = sum_i prod_d R_i[d, j_d]` of exact sums, in row-major order.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.exact.entropy import WORD, Entropy
from ldpstream.mechanisms.interface.mechanism import Statistic

Bytes = NDArray[np.uint8]
_Signs = NDArray[np.float32]

# Bytes whose bits from s on are 1, for s = 0..8.
_FROM = np.array([0xFF << s & 0xFF for s in range(9)], dtype=np.uint8)
# Sums of float32 signs are exact below 2^24, and sums of float64 ones, with up to 2^24 repetitions
# each, below 2^53.
_MOST_ROWS = 1 << 16
_CHUNK_ENTRIES = 1 << 22


def row_bytes(width: int) -> int:
    """Return the number of bytes of a row of `width` bits."""
    return -(-width // 8)


def ones_from(starts: Integers, size: int) -> Bytes:
    """Return rows of `size` bytes that are 1 from bit `start` on: uint8 of shape `(n, size)`.

    >>> ones_from(np.array([0, 3, 9, 16]), 2).tolist()
    [[255, 255], [248, 255], [0, 254], [0, 0]]
    """
    first = 8 * np.arange(size, dtype=np.int64)
    rows: Bytes = _FROM[np.clip(starts[:, None] - first, 0, 8)]
    return rows


def unpack(rows: Bytes, width: int) -> Bytes:
    """Return the bits of rows as 0 and 1: uint8 of shape `(n, width)`."""
    return np.unpackbits(rows, axis=1, count=width, bitorder="little")


def packed_bernoulli(entropy: Entropy, probability: Fraction, n: int) -> Bytes:
    """Return `n` bytes of independent bits, each 1 with exactly this probability < 1.

    Each bit compares a uniform number with the probability, digit by digit from the highest. A
    digit below the probability's decides for 1, a digit above it for 0. Bits that are still
    undecided once the probability's digits have ended, after a multiple of 64, are 0. A word holds
    one digit for each of 64 bits, and another is drawn only while one of the 64 is undecided. Since
    each digit decides half of them, 64 bits take some 8 words instead of 64.
    """
    count = -(-n // 8)
    ones = np.zeros(count, dtype=np.uint64)
    undecided = np.full(count, ~np.uint64(0))
    active, rest = np.arange(count), probability
    while active.size and rest:
        threshold, rest = divmod(rest * WORD, 1)
        for place in reversed(range(64)):
            if not active.size:
                break
            digits, still = entropy.words(active.size), undecided[active]
            if threshold >> place & 1:
                ones[active] |= still & ~digits
                still &= digits
            else:
                still &= ~digits
            undecided[active] = still
            active = active[still != 0]
    return ones.astype("<u8", copy=False).view(np.uint8)[:n]


def add_products(
    statistic: Statistic,
    rows: Bytes,
    extents: Sequence[int],
    times: Integers | None = None,
) -> None:
    """Add the products of n reports, uint8 `(n, bytes)`, to the statistic of sizes `extents`.

    Report i counts once, or `times[i]` times, int64 `(n,)` in 0..2^24. This is one matrix product
    of the entries of the first dimensions with those of the others, split where both are smallest.
    """
    split = min(range(len(extents)), key=lambda d: prod(extents[:d]) + prod(extents[d:]))
    entries = prod(extents[:split]) + prod(extents[split:])
    table = statistic.reshape(prod(extents[:split]), prod(extents[split:]))
    step = max(1, min(_MOST_ROWS, _CHUNK_ENTRIES // entries))
    for start in range(0, len(rows), step):
        chunk = rows[start : start + step]
        signs = list(_signs(chunk, extents))
        first, second = _products(signs[:split], len(chunk)), _products(signs[split:], len(chunk))
        if times is None:
            table += (first.T @ second).astype(np.int64)
        else:
            repeated = first.astype(np.float64) * times[start : start + step, None]
            table += (repeated.T @ second.astype(np.float64)).astype(np.int64)


def _signs(rows: Bytes, extents: Sequence[int]) -> Iterator[_Signs]:
    """Yield each dimension's entries as +1 and -1, float32 `(n, m_d)`, the last one +1."""
    bits = unpack(rows, sum(extents) - len(extents))
    start = 0
    for extent in extents:
        signs = np.ones((len(rows), extent), dtype=np.float32)
        np.multiply(bits[:, start : start + extent - 1], np.float32(2.0), out=signs[:, :-1])
        signs[:, :-1] -= 1.0
        yield signs
        start += extent - 1


def _products(signs: Sequence[_Signs], n: int) -> _Signs:
    """Return the products of n reports over some dimensions, float32 `(n, product of sizes)`."""
    table = np.ones((n, 1), dtype=np.float32)
    for following in signs:
        table = (table[:, :, None] * following[:, None, :]).reshape(n, -1)
    return table
