"""The fast Walsh-Hadamard transform, exact on integers.

Sylvester's matrix of order K (a power of two) is `H[r, y] = (-1)^popcount(r & y)`.
"""

from functools import lru_cache
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", np.int64, np.float64)

_STRETCH: Final = 1 << 14
"""Number of entries that are transformed within the processor's cache."""
_FEW: Final = 1 << 12
"""Up to this many products, a product with the matrix takes less time than passes."""
_FACTOR_BITS: Final = 5
_EXACT: Final = 1 << 53
"""Whole numbers below this are exact in float64."""


def walsh_hadamard(vectors: NDArray[Number]) -> NDArray[Number]:
    """Return `sum_y H[r, y] v[y]` for each row r, along the last axis; int64 or float64.

    The last axis is a power of two. Apart from the result, this takes memory for some ten thousand
    entries. Passes over neighbours come first, chunk by chunk, so that they stay in the processor's
    cache; then pairs of chunks are added and subtracted in place. For int64 the result is exact
    while sums of absolute values stay below 2^63.

    Raises:
        ValueError: if the last axis is not a power of two.

    >>> walsh_hadamard(np.array([1, 2, 3, 4])).tolist()
    [10, -2, -4, 0]
    """
    length = vectors.shape[-1]
    if length < 1 or length & (length - 1):
        raise ValueError(f"expected a power of two along the last axis, got {length}")
    if vectors.size * length <= _FEW:
        product: NDArray[Number] = vectors @ _matrix(length, vectors.dtype)
        return product
    out = np.array(vectors, order="C")
    near = min(length, _STRETCH)
    rows = out.reshape(-1, near)
    step = _STRETCH // near
    spare = np.empty((2, min(step, len(rows)), near), dtype=out.dtype)
    half = near // 2
    # Products of whole numbers are faster, and the same on every machine only because they are
    # exact.
    exact = out.dtype.kind == "i" and length * int(np.abs(out).max(initial=0)) < _EXACT
    for first in range(0, len(rows), step):
        some = current = rows[first : first + step]
        if exact:
            some[...] = _multiply(some)
            continue
        # Each pass adds and subtracts neighbours and writes all sums before all differences, so
        # that it runs over long contiguous stretches.
        for number in range(near.bit_length() - 1):
            pairs = current.reshape(len(some), half, 2)
            current = spare[number % 2, : len(some)]
            np.add(pairs[..., 0], pairs[..., 1], out=current[:, :half])
            np.subtract(pairs[..., 0], pairs[..., 1], out=current[:, half:])
        some[...] = current
    reach = near
    while reach < length:
        for low, high in out.reshape(-1, 2, reach // near, near):
            _combine(low, high, spare[0, 0])
        reach *= 2
    return out


def _multiply(rows: NDArray[Number]) -> NDArray[np.float64]:
    """Transform rows by a product with a small matrix along each of several axes.

    Sylvester's matrix is the Kronecker product of those of lower order.
    """
    out, behind = rows.astype(np.float64), rows.shape[-1]
    while behind > 1:
        order = min(behind, 1 << _FACTOR_BITS)
        behind //= order
        matrix = _matrix(order, out.dtype)
        if behind > 1:
            out = matrix @ out.reshape(-1, order, behind)
        else:
            out = out.reshape(-1, order) @ matrix
    return out.reshape(rows.shape)


@lru_cache(maxsize=32)
def _matrix(length: int, dtype: np.dtype[Number]) -> NDArray[Number]:
    """Return Sylvester's matrix."""
    rows = np.arange(length)
    return np.where(positive(rows[:, None], rows), 1, -1).astype(dtype)


def _combine(low: NDArray[Number], high: NDArray[Number], spare: NDArray[Number]) -> None:
    """Replace two halves by their sum and their difference, in place."""
    for first, second in zip(low, high, strict=True):
        np.subtract(first, second, out=spare)
        first += second
        second[...] = spare


def sign_order(rows: int) -> int:
    """Return the least power of two above `rows`: enough rows besides the constant row 0.

    >>> [sign_order(k) for k in (1, 2, 3, 4)]
    [2, 4, 4, 8]
    """
    return 1 << rows.bit_length()


def positive(rows: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether `H[row, position]` is +1, for each pair of entries."""
    even: NDArray[np.bool_] = (np.bitwise_count(rows & positions) & 1) == 0
    return even


def move_to_sign(
    rows: NDArray[np.int64], positions: NDArray[np.int64], signs: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return each position, moved if `H[row, position]` lacks the wanted sign (True is +1).

    It moves by flipping the lowest set bit of the row. This maps the positions of one sign onto
    those of the other, so that a uniform position becomes uniform over the half with the wanted
    sign. Row 0 has one sign only, so that its positions stay.
    """
    lowest = rows & -rows
    return positions ^ np.where(positive(rows, positions) != signs, lowest, 0)
