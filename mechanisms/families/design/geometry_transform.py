"""Sums over the hyperplanes of a projective space, one coordinate at a time.

For every point x the sum of a vector over all points y orthogonal to it, in `O(K q t)` steps, or
`O(K t log q)` for large q, and exact in integers, where the direct product takes `K^2`. As in
Feldman et al. 2022, tables run over a part of y, a part of x and what these must add up to. Here
the points whose leading 1 is at one place are an array over all their other coordinates, so that
each step adds whole slices.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.exact.walsh import Number
from ldpstream.mechanisms.families.design.geometry import Geometry, count_points

_DIRECT_PRIMES = 60
"""Up to here a sum over each line of a plane takes less time than Fourier transforms."""
_EXACT_TOTAL = 1 << 40
_NARROW_TOTAL = 1 << 31
"""Whole numbers that add up to less are added in half the memory."""
_SLICE = 200
"""Slices of so many entries or more are added as they are."""
_TOGETHER = 16
"""Vectors: from so many on, all are added at once, each entry's of all of them in a row."""


def hyperplane_sums(geometry: Geometry, values: NDArray[Number]) -> NDArray[Number]:
    """Return, for every point, the sum over the points orthogonal to it: `(g, K)` -> `(g, K)`.

    Points x whose vector, read backward, ends with `t - 1 - m` zeros do not see the last
    coordinates of y: they are the points of a space of `m + 1` coordinates, over sums of y.
    Points y that are 0 in all coordinates that x sees are orthogonal to it.
    """
    if 1 < len(values) < _TOGETHER and geometry.points > _SLICE * _TOGETHER:
        return np.concatenate([hyperplane_sums(geometry, row[None]) for row in values])
    q = geometry.q
    narrow = values.dtype == np.int64 and np.abs(values).sum(axis=1).max() < _NARROW_TOTAL
    seen: NDArray[Any] = np.ascontiguousarray((values.astype(np.int32) if narrow else values).T)
    out = np.empty_like(seen)
    unseen = np.zeros(len(values), dtype=seen.dtype)
    for m in range(geometry.dimension - 1, -1, -1):
        first = count_points(q, m)
        out[first : first + q**m] = _full_sums(q, m, seen) + unseen
        unseen = unseen + seen[0]
        seen = seen[1:].reshape(first, q, len(values)).sum(axis=1, dtype=seen.dtype)
    return np.ascontiguousarray(out.T).astype(values.dtype, copy=False)


def _full_sums(q: int, m: int, points: NDArray[Any]) -> NDArray[Any]:
    """Return the sums for the `q^m` points x that see all `m + 1` coordinates: `(q^m, g)`.

    y with coordinates `(y_1 .. y_m, z)` is orthogonal to `x = (x_1 .. x_m, 1)` where
    `z = -sum_i x_i y_i`. Where the leading 1 is `y_j`, that is `-x_j` and what the coordinates
    after it add up to; the coordinates before it do not matter.
    """
    g = points.shape[1]
    sums = np.zeros((q**m, g), dtype=points.dtype)
    negative = -np.arange(q) % q
    for free in range(1, m + 1):
        first, size = count_points(q, free), q**free
        state = points[first : first + size].reshape(-1, q, g).swapaxes(0, 1)
        for _ in range(free - 1):
            state = _sum_coordinate(q, state)
        led = sums.reshape(-1, size, g)
        led += state[negative].reshape(size, g)
    digits = sums.reshape(*[q] * m, g)
    return digits.transpose(*range(m - 1, -1, -1), m).reshape(q**m, g)


def _sum_coordinate(q: int, state: NDArray[Any]) -> NDArray[Any]:
    """Replace y's first coordinate w by x's, as the last one: `(q, w r, g)` -> `(q, r x, g)`.

    `new[z, .., x] = sum_w old[z - x w, w, ..]`.
    """
    g = state.shape[2]
    table = np.ascontiguousarray(state).reshape(q, q, -1, g)
    rest = table.shape[2]
    if q > _DIRECT_PRIMES and (
        state.dtype == np.float64 or np.abs(table).sum(axis=(0, 1)).max() < _EXACT_TOTAL
    ):
        return _lines_by_fourier(q, table).reshape(q, -1, g)
    new = np.empty((q, rest, q, g), dtype=state.dtype)
    if rest * g < _SLICE:
        numbers = np.arange(q)
        for x in range(q):
            lines = table[(numbers[:, None] - x * numbers) % q, numbers]
            new[:, :, x] = lines.sum(axis=1, dtype=table.dtype)
        return new.reshape(q, -1, g)
    for x in range(q):
        line = table[:, 0].copy()
        for w in range(1, q):
            split = x * w % q
            line[split:] += table[: q - split, w]
            if split:
                line[:split] += table[q - split :, w]
        new[:, :, x] = line
    return new.reshape(q, -1, g)


def _lines_by_fourier(q: int, table: NDArray[Any]) -> NDArray[Any]:
    """Return the same in `q^2 log q` steps: z's frequency f of line x is table's at `(x f, f)`.

    Rounded to whole numbers where the table holds such: the error stays below `n log(q^2)` units of
    double precision, n being the table's total, hence far below 1/2.
    """
    frequencies = np.fft.rfft2(table.transpose(2, 3, 1, 0))
    f = np.arange(frequencies.shape[3])
    lines = frequencies[:, :, np.arange(q)[:, None] * f % q, f]
    sums = np.fft.irfft(lines, n=q, axis=3).transpose(3, 0, 2, 1)
    whole = np.issubdtype(table.dtype, np.integer)
    return np.ascontiguousarray(np.rint(sums) if whole else sums).astype(table.dtype)
