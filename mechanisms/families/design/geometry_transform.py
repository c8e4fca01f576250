"""Sums over the hyperplanes of a projective space, one coordinate at a time.

For every point x the sum of a vector over all points y orthogonal to it, in `O(K q t)` steps, or
`O(K t log q)` for large q, and exact in integers, where the direct product takes `K^2`. As in
Feldman et al. 2022, tables run over a part of y, a part of x and what these must add up to. Here
the points whose leading 1 is at one place are an array over all their other coordinates, so that
each step adds whole slices, for all places of x's last 1 at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.exact.walsh import Number
from ldpstream.mechanisms.families.design.geometry import Geometry, count_points

_DIRECT_PRIMES = 60
"""Up to here a sum over each line of a plane takes less time than Fourier transforms."""
_SHORT = 8
"""Where slices are shorter than q less so many, Fourier transforms take less time all the same."""
_EXACT_TOTAL = 1 << 40
_NARROW_TOTAL = 1 << 31
"""Counts that add up to less are added in half the memory."""
_LARGE = 1 << 17
"""Vectors of so many entries go one by one: what lies between them and their sums is as large."""
_TOGETHER = 16
"""Vectors: from so many on, each entry's of all of them lie in a row."""

Table = NDArray[Any]


def hyperplane_sums(
    geometry: Geometry, values: NDArray[Number], points: int | None = None
) -> NDArray[Number]:
    """Return, for every point, the sum over the points orthogonal to it: `(g, K)` -> `(g, K)`.

    Or for the first `points` of them, and for others the same or 0.

    Points x whose vector, read backward, ends with `t - 1 - m` zeros do not see the last
    coordinates of y: they are the points of a space of `m + 1` coordinates, over sums of y.
    Points y that are 0 in all coordinates that x sees are orthogonal to it.

    Points y with coordinates `(y_1 .. y_m, z)` are orthogonal to `x = (x_1 .. x_m, 1)` where
    `z = -sum_i x_i y_i`. Where the leading 1 is `y_j`, that is `-x_j` and what the coordinates
    after it add up to; the coordinates before it do not matter. Those of one x_m are the points of
    a space without this coordinate, over sums of y along a line.
    """
    q, t, g = geometry.q, geometry.dimension, len(values)
    counts = values.dtype == np.int64 and values.min() >= 0
    narrow = counts and values.sum(axis=1).max() < _NARROW_TOTAL
    tables = _Tables(np.dtype(np.int32) if narrow else values.dtype, in_rows=g >= _TOGETHER)
    last = count_points(q, t - 1)
    lines = min(q, -(-(max(last, points or geometry.points) - last) // q ** (t - 2)))
    spaces, sums = _seen(q, t, tables, tables.of(values), lines)
    out = np.zeros_like(values)
    for m in range(t - 1):
        first, size = count_points(q, m), q**m
        if m:
            led = [space[:, first : first + size] for space in spaces]
            sums = (_all_led_sums(q, tables, led) + sums[:, None]).reshape(-1, size)
        _put(q, m, out[:, first:], sums[-g:])
        spaces.pop()
        sums = sums[:-g]
    _put(q, t - 2, out[:, last:], sums)
    return out


def _seen(
    q: int, t: int, tables: "_Tables", points: Table, lines: int
) -> tuple[list[Table], Table]:
    """Return what x sees, and `(.., 1)` the sums that it does not see, by descending m.

    First those of all coordinates, for the first `lines` of x_m.
    """
    spaces = [_lines_of(q, tables, points, lines)]
    unseen = [points[:, 1 + (-np.arange(lines) % q)].T.reshape(-1, 1)]
    left, below = points[:, :1], _sum_last(q, points[:, 1:])
    for _ in range(t - 1):
        spaces.append(below)
        unseen.append(left)
        left = left + below[:, :1]
        below = _sum_last(q, below[:, 1:])
    return spaces, tables.join(unseen)


def _put(q: int, m: int, out: Table, sums: Table) -> None:
    """Write sums by x_1 to x_m, those of one more digit after each other: `(c g, q^m)`.

    In the points' numbers x_m is the first of these digits.
    """
    g, digits = len(out), (q,) * m
    many = len(sums) // g
    ordered = sums.reshape(many, g, *digits).transpose(1, 0, *range(m + 1, 1, -1))
    out[:, : many * q**m].reshape(ordered.shape)[...] = ordered


@dataclass(frozen=True)
class _Tables:
    """How tables `(b, ...)` of b vectors lie in memory: each entry's of all in a row, or apart."""

    dtype: np.dtype[Any]
    in_rows: bool

    def empty(self, shape: tuple[int, ...]) -> Table:
        """Return a new one."""
        if not self.in_rows:
            return np.empty(shape, dtype=self.dtype)
        return np.moveaxis(np.empty((*shape[1:], shape[0]), dtype=self.dtype), -1, 0)

    def of(self, vectors: Table) -> Table:
        """Return vectors as such a table: themselves where they are one."""
        if not self.in_rows:
            return vectors.astype(self.dtype, copy=False)
        return self.join([vectors])

    def join(self, parts: Sequence[Table]) -> Table:
        """Return the vectors of all parts, `(b, n)` each, in one table."""
        out = self.empty((sum(len(part) for part in parts), parts[0].shape[1]))
        np.concatenate(parts, out=out)
        return out


def _lines_of(q: int, tables: _Tables, points: Table, lines: int) -> Table:
    """Sum along the lines of the first x_m: `(g, K)` -> `(lines g, points of a hyperplane)`.

    What is left of y are `(.. y_(m-1), z)`; the first point is not used.
    """
    g = len(points)
    table = points[:, 1 + q :].reshape(g, -1, q, q).transpose(0, 3, 1, 2)
    rest = table.shape[2]
    out = tables.empty((lines * g, 1 + rest * q))
    if rest and lines:
        sums = _sum_lines(q, tables, table, lines).transpose(2, 0, 3, 1)
        out[:, 1:].reshape(sums.shape)[...] = sums
    return out


def _sum_last(q: int, points: Table) -> Table:
    """Sum over the last coordinate: `(b, n q)` -> `(b, n)`."""
    table = points.reshape(len(points), -1, q)
    if q > _DIRECT_PRIMES:
        summed: Table = table.sum(axis=2, dtype=points.dtype)
        return summed
    out = table[:, :, 0] + table[:, :, 1]
    for w in range(2, q):
        out += table[:, :, w]
    return out


def _all_led_sums(q: int, tables: _Tables, parts: Sequence[Table]) -> Table:
    """Return `_led_sums` of the vectors of all parts."""
    size = parts[0].shape[1]
    if tables.in_rows or size < _LARGE:
        return _led_sums(q, tables, tables.join(parts))
    out = tables.empty((sum(len(part) for part in parts), q, size // q))
    for place, vector in enumerate(vector for part in parts for vector in part):
        out[place] = _led_sums(q, tables, vector[None])[0]
    return out


def _led_sums(q: int, tables: _Tables, points: Table) -> Table:
    """Sum points `(1, y_2 .. y_m, z)` over those orthogonal to x: `(b, q^m)` -> `(b, q, q^(m-1))`.

    The result is by x_1, then by x_2 to x_m.
    """
    b = len(points)
    state = points.reshape(b, -1, q).swapaxes(1, 2)
    rest = state.shape[2]
    while rest > 1:
        rest //= q
        state = _sum_lines(q, tables, state.reshape(b, q, -1, q), q).reshape(b, q, -1)
    out = tables.empty(state.shape)
    out[:, 0] = state[:, 0]
    out[:, 1:] = state[:, :0:-1]
    return out


def _sum_lines(q: int, tables: _Tables, table: Table, lines: int) -> Table:
    """Replace y's last coordinate w by x's, as the first one: `(b, z, r, w)` -> `(b, z, x, r)`.

    `new[z, x] = sum_w old[z - x w, .., w]`, for the first `lines` of x.
    """
    b, _, rest, _ = table.shape
    if (q > _DIRECT_PRIMES or b * rest + _SHORT < q) and (
        table.dtype == np.float64 or np.abs(table).sum(axis=(1, 3)).max() < _EXACT_TOTAL
    ):
        return _lines_by_fourier(q, table)[:, :, :lines]
    # Of each w all z, and all but the last again: a slice for each shift.
    turned = [tables.empty((b, 2 * q - 1, rest)) for _ in range(q)]
    for w, column in enumerate(turned):
        column[:, :q] = table[..., w]
        column[:, q:] = column[:, : q - 1]
    new = tables.empty((b, q, lines, rest))
    for x in range(lines):
        first, second, *others = (c[:, -x * w % q :][:, :q] for w, c in enumerate(turned))
        line = new[:, :, x]
        np.add(first, second, out=line)
        for other in others:
            line += other
    return new


def _lines_by_fourier(q: int, table: Table) -> Table:
    """Return the same in `q^2 log q` steps: z's frequency f of line x is table's at `(x f, f)`.

    Rounded to whole numbers where the table holds such: the error stays below `n log(q^2)` units of
    double precision, n being the table's total, hence far below 1/2.
    """
    frequencies = np.fft.rfft2(table.transpose(0, 2, 3, 1))
    f = np.arange(frequencies.shape[3])
    lines = frequencies[:, :, np.arange(q)[:, None] * f % q, f]
    sums = np.fft.irfft(lines, n=q, axis=3).transpose(0, 3, 2, 1)
    whole = np.issubdtype(table.dtype, np.integer)
    return (np.rint(sums) if whole else sums).astype(table.dtype)
