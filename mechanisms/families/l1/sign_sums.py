"""Exact sums of products of signs, which are the statistic of `l1-bits`.

A report is a row of bits, 1 standing for +1 and 0 for -1, the entries `0..m_d - 2` of one dimension
after the other; the last entry of every dimension is +1 and not sent. The statistic is the tensor
`o[j_1, .., j_D] = sum_i prod_d R_i[d, j_d]`, in row-major order.
"""

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.families.l1.bit_rows import Bytes, unpack
from ldpstream.mechanisms.interface.mechanism import Statistic

Signs = NDArray[np.float32]

# Sums of float32 signs are exact below 2^24, and sums of float64 ones, with up to 2^24 repetitions
# each, below 2^53.
_MOST_ROWS = 1 << 16
_CHUNK_ENTRIES = 1 << 22


def add_products(
    statistic: Statistic,
    rows: Bytes,
    extents: Sequence[int],
    times: NDArray[np.int64] | None = None,
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
        part = rows[start : start + step]
        signs = list(_signs(part, extents))
        first, others = _products(signs[:split], len(part)), _products(signs[split:], len(part))
        if times is None:
            table += (first.T @ others).astype(np.int64)
        else:
            repeated = first.astype(np.float64) * times[start : start + step, None]
            table += (repeated.T @ others.astype(np.float64)).astype(np.int64)


def _signs(rows: Bytes, extents: Sequence[int]) -> Iterator[Signs]:
    """Yield each dimension's entries as +1 and -1, float32 `(n, m_d)`, the last one +1."""
    bits = unpack(rows, sum(extents) - len(extents))
    start = 0
    for extent in extents:
        signs = np.ones((len(rows), extent), dtype=np.float32)
        np.multiply(bits[:, start : start + extent - 1], np.float32(2.0), out=signs[:, :-1])
        signs[:, :-1] -= 1.0
        yield signs
        start += extent - 1


def _products(signs: Sequence[Signs], n: int) -> Signs:
    """Return the products of n reports over some dimensions, float32 `(n, product of sizes)`."""
    table = np.ones((n, 1), dtype=np.float32)
    for following in signs:
        table = (table[:, :, None] * following[:, None, :]).reshape(n, -1)
    return table
