"""Sums over the hyperplanes of a projective space, one coordinate at a time.

For every point x the sum of a vector over all points y orthogonal to it, in `O(K q t)` steps, or
`O(K t log q)` for large q, and exact in integers, where the direct product takes `K^2`. As in
Feldman et al. 2022, tables run over a part of y, a part of x and what these must add up to. Here
the points whose leading 1 is at one place are an array over all their other coordinates, so that
each step adds whole slices, for all places of x's last 1 at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.exact.walsh import Number
from ldpstream.mechanisms.families.design.geometry import Geometry, count_points

_DIRECT_PRIMES = 60
"""Up to here a sum over each line of a plane takes less time than Fourier transforms."""
_SHORT = 8
"""Fourier transforms take less time where slices are shorter than q less this many."""
_EXACT_TOTAL = 1 << 40
_NARROW_TOTAL = 1 << 31
"""Counts that add up to less are added in half the memory."""
_LARGE = 1 << 17
"""Vectors of this many entries go one by one: what lies between them and their sums is as large."""
_TOGETHER = 16
"""Vectors: from this many on, each entry's of all of them lie in a row."""

Table = NDArray[Any]


def hyperplane_sums(
    geometry: Geometry, values: NDArray[Number], points: int | None = None
) -> NDArray[Number]:
    """Return, for every point, the sum over the points orthogonal to it: `(g, K)` -> `(g, K)`.

    Or for the first `points` of them, and for others anything; of few counts as int32.

    Points x whose vector, read backward, ends with `t - 1 - m` zeros do not see the last
    coordinates of y: they are the points of a space of `m + 1` coordinates, over sums of y.
    Points y that are 0 in all coordinates that x sees are orthogonal to it.

    Points y with coordinates `(y_1 .. y_m, z)` are orthogonal to `x = (x_1 .. x_m, 1)` where
    `z = -sum_i x_i y_i`. Where the leading 1 is `y_j`, that is `-x_j` and what the coordinates
    after it add up to; the coordinates before it do not matter. Those of one x_m are the points of
    a space without this coordinate, over sums of y along a line.
    """
    q, t, g = geometry.q, geometry.dimension, len(values)
    counts = np.issubdtype(values.dtype, np.integer) and values.min() >= 0
    narrow = counts and values.sum(axis=1, dtype=np.int64).max() < _NARROW_TOTAL
    tables = _Tables(np.dtype(np.int32) if narrow else values.dtype, in_rows=g >= _TOGETHER)
    last = count_points(q, t - 1)
    lines = min(q, -(-(max(last, points or geometry.points) - last) // q ** (t - 2)))
    along, spaces, sums = _seen(q, t, tables, tables.of(values), lines)
    out = np.zeros(values.shape, tables.dtype)
    for m in range(t - 1):
        first, size = count_points(q, m), q**m
        if m:
            led = [along[:, :, (first - 1) // q :][:, :, : size // q]]
            led += [space[:, first : first + size].reshape(g, -1, q) for space in spaces]
            led[1:] = [part.swapaxes(1, 2) for part in led[1:]]
            sums = (_all_led_sums(q, m, tables, led) + sums[:, None]).reshape(-1, size)
        _put(q, m, out[:, first:], sums[-g:])
        if spaces:
            spaces.pop()
        sums = sums[:-g]
    _put(q, t - 2, out[:, last:], sums)
    return out


def _seen(
    q: int, t: int, tables: "_Tables", points: Table, lines: int
) -> tuple[Table, list[Table], Table]:
    """Return what x sees, and `(.., 1)` the sums that it does not see, by descending m.

    First those of all coordinates, for the first `lines` of x_m: `_lines_of`.
    """
    along = _lines_of(q, tables, points, lines)
    spaces = []
    unseen = [points[:, 1 + (-np.arange(lines) % q)].T.reshape(-1, 1)]
    left, below = points[:, :1], _sum_last(q, points[:, 1:])
    for _ in range(t - 1):
        spaces.append(below)
        unseen.append(left)
        left = left + below[:, :1]
        below = _sum_last(q, below[:, 1:])
    return along, spaces, tables.join(unseen)


def _put(q: int, m: int, out: Table, sums: Table) -> None:
    """Write sums by x_1 to x_m, those of one more digit after each other: `(c g, q^m)`.

    In the points' numbers x_m is the first of these digits.
    """
    g, front, back = len(out), q ** (m // 2), q ** (m - m // 2)
    ordered = sums.reshape(-1, g, front, back)
    if m > 1:
        ordered = ordered[:, :, _reversed(q, m // 2)][..., _reversed(q, m - m // 2)]
    ordered = ordered.transpose(1, 0, 3, 2)
    out[:, : ordered[0].size].reshape(ordered.shape)[...] = ordered


@lru_cache(maxsize=64)
def _reversed(q: int, digits: int) -> Integers:
    """Return the numbers of this many digits, each read backward."""
    return np.arange(q**digits).reshape((q,) * digits).transpose().ravel()


@dataclass(frozen=True)
class _Tables:
    """How tables `(b, ...)` of b vectors lie in memory: each entry's of all in a row, or apart."""

    dtype: np.dtype[Any]
    in_rows: bool

    def empty(self, shape: tuple[int, ...]) -> Table:
        """Return a new table, whose entries are not set."""
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
    """Sum along the lines of the first x_m: `(g, K)` -> `(lines g, q, points of a hyperplane)`.

    What is left of y are `(.. y_(m-1), z)`, and z comes first; what leads with z is not used.
    """
    g = len(points)
    table = points[:, 1 + q :].reshape(g, -1, q, q)
    state = tables.empty((g, q, 1, q, table.shape[1]))
    state[:, :, 0] = table.transpose(0, 3, 2, 1)
    summed = _sum_lines(q, tables, state, lines)[:, :, 0]
    out: Table = summed.transpose(2, 0, 1, 3).reshape(lines * g, q, -1)
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


def _all_led_sums(q: int, m: int, tables: _Tables, parts: Sequence[Table]) -> Table:
    """Return `_led_sums` of the vectors of all parts."""
    size = q**m
    if tables.in_rows or size < _LARGE:
        return _led_sums(q, m, tables, parts)
    out = tables.empty((sum(len(part) for part in parts), q, size // q))
    for place, vector in enumerate(vector for part in parts for vector in part):
        out[place] = _led_sums(q, m, tables, [vector[None]])[0]
    return out


def _led_sums(q: int, m: int, tables: _Tables, parts: Sequence[Table]) -> Table:
    """Sum points `(1, y_2 .. y_m, z)` over those orthogonal to x: `(b, q, q^(m-1))`, z first.

    The result is by x_1, then by x_2 to x_m. Each step replaces one y_i by x_i where it is. Slices
    are as long as what follows it: so the last half of the coordinates comes first in its turn.
    """
    b = sum(len(part) for part in parts)
    back = 0 if tables.in_rows else (m - 1) // 2
    halves = q ** (m - 1 - back), q**back
    state = tables.empty((b, q, halves[0] * halves[1]))
    np.concatenate(parts, out=state)
    for half, rest in (halves, halves[::-1]):
        done = 1
        while done < half:
            state = state.reshape(b, q, done, q, half // done // q * rest)
            state = _sum_lines(q, tables, state, q)
            done *= q
        if back:
            turned = tables.empty((b, q, rest, half))
            turned[...] = state.reshape(b, q, half, rest).swapaxes(2, 3)
            state = turned
    state = state.reshape(b, q, -1)
    out = tables.empty(state.shape)
    out[:, 0] = state[:, 0]
    out[:, 1:] = state[:, :0:-1]
    return out


def _sum_lines(q: int, tables: _Tables, table: Table, lines: int) -> Table:
    """Replace a coordinate w of y by x's: `(b, z, l, w, r)` -> `(b, z, l, x, r)`.

    `new[z, .., x] = sum_w old[z - x w, .., w]`, for the first `lines` of x.
    """
    b, _, left, _, right = table.shape
    if table.size == 0:
        return tables.empty((b, q, left, lines, right))
    if (q > _DIRECT_PRIMES or b * left * right + _SHORT < q) and (
        table.dtype == np.float64 or np.abs(table).sum(axis=(1, 3)).max() < _EXACT_TOTAL
    ):
        return _lines_by_fourier(q, table)[:, :, :, :lines]
    new = tables.empty((b, q, left, lines, right))
    turned = table
    if lines > 1:
        # All z, and all but the last again: a slice for each shift.
        turned = tables.empty((b, 2 * q - 1, left, q, right))
        turned[:, :q] = table
        turned[:, q:] = table[:, : q - 1]
    for x in range(lines):
        first, second, *others = (turned[:, -x * w % q :][:, :q, :, w] for w in range(q))
        line = new[:, :, :, x]
        np.add(first, second, out=line)
        for other in others:
            line += other
    return new


def _lines_by_fourier(q: int, table: Table) -> Table:
    """Return the same in `q^2 log q` steps: z's frequency f of line x is table's at `(x f, f)`.

    Rounded to whole numbers where the table holds such: the error stays below `n log(q^2)` units of
    double precision, n being the table's total, hence far below 1/2.
    """
    frequencies = np.fft.rfft2(table.transpose(0, 2, 4, 3, 1))
    f = np.arange(frequencies.shape[4])
    lines = frequencies[..., np.arange(q)[:, None] * f % q, f]
    sums = np.fft.irfft(lines, n=q, axis=4).transpose(0, 4, 1, 3, 2)
    whole = np.issubdtype(table.dtype, np.integer)
    return (np.rint(sums) if whole else sums).astype(table.dtype)
