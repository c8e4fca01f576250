"""Rows of bits, packed eight to a byte: step functions, and independent coins.

Bit i of a row is bit `i mod 8`, counted from the lowest, of byte `i div 8`; bits beyond the row's
width are 0.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.exact.entropy import WORD, Entropy

Bytes = NDArray[np.uint8]

# Bytes whose bits from s on are 1, for s = 0..8.
_FROM = np.array([0xFF << s & 0xFF for s in range(9)], dtype=np.uint8)


def row_bytes(width: int) -> int:
    """Return the number of bytes of a row of `width` bits."""
    return -(-width // 8)


def ones_from(starts: NDArray[np.int64], size: int) -> Bytes:
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
