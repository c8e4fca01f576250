"""Sums over the hyperplanes of a projective space, by dynamic programming.

For every point x the sum of a vector over all points y orthogonal to it, in `O(K q t)` steps, or
`O(K t log q)` for large q, and exact in integers, where the direct product takes `K^2`. As in
Feldman et al. 2022, tables run over a prefix of y, a suffix of x and what these must add up to;
here one coordinate at a time for all points of all blocks, in the numbering of `geometry`.
"""

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.exact.walsh import Number
from ldpstream.mechanisms.families.design.geometry import Geometry, count_points

_DIRECT_PRIMES = 60
"""Up to here a sum over each line of a plane takes less time than Fourier transforms."""
_EXACT_TOTAL = 1 << 40


def hyperplane_sums(geometry: Geometry, values: NDArray[Number]) -> NDArray[Number]:
    """Return, for every point, the sum over the points orthogonal to it: `(g, K)` -> `(g, K)`.

    Points x whose vector, read backward, ends with `t - 1 - m` zeros do not see the last
    coordinates of y: they are the points of a space of `m + 1` coordinates, over sums of y.
    Points y that are 0 in all coordinates that x sees are orthogonal to it.
    """
    q = geometry.q
    out = np.empty_like(values)
    unseen = np.zeros((len(values), 1), dtype=values.dtype)
    seen = values
    for m in range(geometry.dimension - 1, -1, -1):
        first = count_points(q, m)
        out[:, first : first + q**m] = _full_sums(q, m, seen) + unseen
        unseen = unseen + seen[:, :1]
        seen = seen[:, 1:].reshape(len(values), first, q).sum(axis=2)
    return out


def _full_sums(q: int, m: int, points: NDArray[Number]) -> NDArray[Number]:
    """Return the sums for the `q^m` points x that see all `m + 1` coordinates: `(g, q^m)`.

    y with coordinates `(y_1 .. y_m, z)` is orthogonal to `x = (x_1 .. x_m, 1)` where
    `z = -sum_i x_i y_i`. `state[y_1 .. y_i, x_m .. x_(i+1), z]` is the sum over `y_(i+1) .. y_m`,
    z being what `x_1 y_1 + .. + x_i y_i` must cancel; y's leading 1 may end at any i, and what
    begins with it goes to the result at once.
    """
    g = len(points)
    sums = np.zeros((g, q**m), dtype=points.dtype)
    if m == 0:
        return sums
    negative = -np.arange(q) % q
    state = points[:, 1:].reshape(g, count_points(q, m), 1, q)
    for i in range(m - 1, -1, -1):
        led = state[:, 0][:, :, negative].reshape(g, -1)
        sums = sums + np.repeat(led, q**i, axis=1)
        if i:
            state = _sum_coordinate(q, state[:, 1:])
    return sums


def _sum_coordinate(q: int, state: NDArray[Number]) -> NDArray[Number]:
    """Replace y's last coordinate w by x's: `(g, P q, b, q)` -> `(g, P, b q, q)`.

    `new[.., x, z] = sum_w old[.., w, .., z - x w]`.
    """
    g, rows, b, _ = state.shape
    table = state.reshape(g, rows // q, q, b, q).transpose(0, 1, 3, 2, 4).reshape(-1, q, q)
    small = state.dtype != np.int64 or np.abs(table).sum(axis=(1, 2)).max() < _EXACT_TOTAL
    sums = _lines_by_fourier(q, table) if q > _DIRECT_PRIMES and small else _lines(q, table)
    return sums.reshape(g, rows // q, b * q, q)


def _lines(q: int, table: NDArray[Number]) -> NDArray[Number]:
    """Return `new[r, x, z] = sum_w table[r, w, z - x w]`, in q^3 steps for each r."""
    w, z = np.arange(q)[:, None], np.arange(q)
    flat = table.reshape(-1, q * q)
    new = np.empty_like(table)
    for x in range(q):
        new[:, x] = flat[:, w * q + (z - x * w) % q].sum(axis=1)
    return new


def _lines_by_fourier(q: int, table: NDArray[Number]) -> NDArray[Number]:
    """Return the same in `q^2 log q` steps: z's frequency f of line x is table's at `(x f, f)`.

    Rounded to whole numbers where the table holds such: the error stays below `n log(q^2)` units of
    double precision, n being the table's total, hence far below 1/2.
    """
    frequencies = np.fft.rfft2(table)
    f = np.arange(frequencies.shape[2])
    lines = frequencies[:, np.arange(q)[:, None] * f % q, f]
    sums = np.fft.irfft(lines, n=q, axis=2)
    whole = np.issubdtype(table.dtype, np.integer)
    return (np.rint(sums) if whole else sums).astype(table.dtype)
