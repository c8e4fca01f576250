"""The fast Walsh-Hadamard transform, exact on integers.

Sylvester's matrix of order K (a power of two) is `H[r, y] = (-1)^popcount(r & y)`.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", np.int64, np.float64)


def walsh_hadamard(vectors: NDArray[Number]) -> NDArray[Number]:
    """Return `sum_y H[r, y] v[y]` for each row r, along the last axis; int64 or float64.

    The last axis is a power of two. Each pass adds and subtracts neighbours and writes the sums
    before the differences, so that it runs over long contiguous stretches whatever the order; on
    int64 the result is exact while sums of absolute values stay below 2^63.

    Raises:
        ValueError: where the last axis is no power of two.

    >>> walsh_hadamard(np.array([1, 2, 3, 4])).tolist()
    [10, -2, -4, 0]
    """
    order = vectors.shape[-1]
    if order < 1 or order & (order - 1):
        raise ValueError(f"expected a power of two along the last axis, got {order}")
    half = order // 2
    current = vectors.copy()
    for _ in range(order.bit_length() - 1):
        pairs = current.reshape(*vectors.shape[:-1], half, 2)
        following = np.empty_like(current)
        np.add(pairs[..., 0], pairs[..., 1], out=following[..., :half])
        np.subtract(pairs[..., 0], pairs[..., 1], out=following[..., half:])
        current = following
    return current


def sign_order(rows: int) -> int:
    """Return the least power of two above `rows`: enough rows beside the constant row 0.

    >>> [sign_order(k) for k in (1, 2, 3, 4)]
    [2, 4, 4, 8]
    """
    return 1 << rows.bit_length()


def positive(rows: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return where `H[row, position]` is +1, element by element."""
    even: NDArray[np.bool_] = (np.bitwise_count(rows & positions) & 1) == 0
    return even


def move_to_sign(
    rows: NDArray[np.int64], positions: NDArray[np.int64], wanted: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return each position, moved where `H[row, position]` has not the wanted sign (True is +1).

    It moves by flipping the lowest set bit of the row: a bijection between the two signs, so a
    uniform position becomes uniform over the half with the wanted sign. Row 0, which has one sign
    only, moves nothing.
    """
    lowest = rows & -rows
    return positions ^ np.where(positive(rows, positions) != wanted, lowest, 0)
