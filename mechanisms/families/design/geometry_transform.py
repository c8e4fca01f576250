"""Points of a finite projective space, and sums over the hyperplanes orthogonal to them.

A transform computes, for every point x, the sum of a vector over all points y orthogonal to it, in
`O(K q t)` steps, or `O(K t log q)` for large q, and exactly in integers; the direct product takes
`K^2`. As in Feldman et al. 2022, tables run over a part of y, a part of x, and what the remaining
products must add up to. Here the points with the leading 1 at the same place form an array over all
their other coordinates, so that each step adds whole slices, for all places of x's last 1 at once.

The space with t coordinates over the integers modulo a prime q has `K = (q^t - 1)/(q - 1)` points:
vectors of t coordinates whose first nonzero coordinate is 1. A point's number is
`sum_i (c_i + 1) q^i` over the coordinates `c_i` after that leading 1, counted from the last. Points
with fewer such coordinates come first; those with equally many are in lexicographic order.

Reports y and values x are both points, and y is *orthogonal* to x if
`sum_i x_i y_(t+1-i) = 0 mod q`: the coordinates of x are read backward, so that its last nonzero
one is 1. Feldman et al. 2022 read both forward. Reading one backward only renames the values; it
keeps the relation symmetric, and an orthogonal point can be completed without a division.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Bools, Integers
from ldpstream.mechanisms.exact.walsh import Number

_DIRECT_PRIMES = 60
"""Up to this prime, sums over the lines of a plane take less time than Fourier transforms."""
_SHORT = 8
"""Fourier transforms take less time if slices are shorter than q minus this."""
_EXACT_TOTAL = 1 << 40
_NARROW_TOTAL = 1 << 31
"""Counts with a smaller sum are added as int32, in half the memory."""
_LARGE = 1 << 17
"""Vectors of this many entries are transformed one by one, since temporaries are as large."""
_TOGETHER = 16
"""From this many vectors on, the same entry of all vectors is stored contiguously."""

Table = NDArray[Any]


@dataclass(frozen=True)
class Geometry:
    """The projective space with t = `dimension` >= 2 coordinates over the integers modulo q.

    q is prime, and `t q^2` is below 2^63.
    """

    q: int
    dimension: int

    @property
    def points(self) -> int:
        """Number of points K."""
        return count_points(self.q, self.dimension)

    @property
    def inside(self) -> int:
        """Number of points orthogonal to a given one: the points of a hyperplane."""
        return count_points(self.q, self.dimension - 1)

    @property
    def overlap(self) -> int:
        """Number of points orthogonal to both of any two different points."""
        return count_points(self.q, self.dimension - 2)

    @cached_property
    def _powers(self) -> Integers:
        return np.array([self.q**i for i in range(self.dimension)], dtype=np.int64)

    @cached_property
    def _firsts(self) -> Integers:
        """The first point with each number of coordinates after the leading 1."""
        return np.array([count_points(self.q, i) for i in range(self.dimension)], dtype=np.int64)

    def vectors(self, points: Integers) -> Integers:
        """Return the coordinates of points, int64 `(n,)` -> `(n, t)`."""
        after = np.searchsorted(self._firsts, points, side="right") - 1
        digits = (points - self._firsts[after])[:, None] // self._powers[::-1] % self.q
        digits[np.arange(len(points)), self.dimension - 1 - after] = 1
        return digits

    def numbers(self, vectors: Integers) -> Integers:
        """Return the numbers of points given by coordinates, int64 `(n, t)` -> `(n,)`."""
        after = self.dimension - 1 - np.argmax(vectors > 0, axis=1)
        out: Integers = vectors @ self._powers[::-1] + (self._firsts - self._powers)[after]
        return out

    def orthogonal(self, values: Integers, reports: Integers) -> Bools:
        """Return whether each report is orthogonal to its value: bool `(n,)`."""
        products = self.vectors(values)[:, ::-1] * self.vectors(reports)
        out: Bools = products.sum(axis=1) % self.q == 0
        return out

    def complete(self, values: Integers, lower: Integers) -> Integers:
        """Return, for each value, the orthogonal point number `lower` in `0..inside-1`: `(n,)`.

        For each value this is a bijection. `lower` is a point with one coordinate less. The result
        has its coordinates, and one more at the place where the value, read backward, has its last
        nonzero coordinate. That one follows from the coordinates before it and is 0 if they all
        are, so that the result still has a leading 1.
        """
        forward = self.vectors(values)
        pivot = self.dimension - 1 - np.argmax(forward > 0, axis=1)[:, None]
        backward, free = forward[:, ::-1], self._hyperplane.vectors(lower)
        columns = np.arange(self.dimension)
        before = np.where(columns[:-1] < pivot, backward[:, :-1] * free, 0).sum(axis=1)
        source = np.minimum(columns - (columns > pivot), self.dimension - 2)
        vectors = np.take_along_axis(free, source, axis=1)
        vectors[np.arange(len(values)), pivot[:, 0]] = -before % self.q
        return self.numbers(vectors)

    @cached_property
    def _hyperplane(self) -> "Geometry":
        """The points of a hyperplane: the space with one coordinate less."""
        return Geometry(self.q, self.dimension - 1)


def count_points(q: int, dimension: int) -> int:
    """Return `(q^t - 1)/(q - 1)`, the number of points of t coordinates; 0 for t = 0."""
    return int((q**dimension - 1) // (q - 1))


def hyperplane_sums(
    geometry: Geometry, values: NDArray[Number], points: int | None = None
) -> NDArray[Number]:
    """Return, for every point, the sum over the points orthogonal to it: `(g, K)` -> `(g, K)`.

    With `points`, only the first `points` entries of the result are meaningful. Small counts return
    int32.

    Points x whose vector, read backward, ends with `t - 1 - m` zeros do not depend on the last
    coordinates of y: they are points of a space with `m + 1` coordinates, over sums of y. Points y
    that are 0 in all coordinates on which x depends are orthogonal to it.

    A point y with coordinates `(y_1 .. y_m, z)` is orthogonal to `x = (x_1 .. x_m, 1)` if
    `z = -sum_i x_i y_i`. If the leading 1 is `y_j`, the sum is x_j plus the terms after it, and the
    coordinates of x before it do not matter. The points x with one given x_m are the points of a
    space without this coordinate, over sums of y along a line.
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
            led[1:] = [table.swapaxes(1, 2) for table in led[1:]]
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
    """Return the sums on which x depends, and those on which it does not, by descending m.

    The first result is for all coordinates, and for the first `lines` values of x_m (`_lines_of`).
    """
    along = _lines_of(q, tables, points, lines)
    spaces = []
    unseen = [points[:, 1 + (-np.arange(lines) % q)].T.reshape(-1, 1)]
    first, below = points[:, :1], _sum_last(q, points[:, 1:])
    for _ in range(t - 1):
        spaces.append(below)
        unseen.append(first)
        first = first + below[:, :1]
        below = _sum_last(q, below[:, 1:])
    return along, spaces, tables.join(unseen)


def _put(q: int, m: int, out: Table, sums: Table) -> None:
    """Write sums that are indexed by x_1 to x_m, `(c g, q^m)`, in the order of the points.

    In the numbers of points, x_m is the first of these digits.
    """
    g, front, back = len(out), q ** (m // 2), q ** (m - m // 2)
    ordered = sums.reshape(-1, g, front, back)
    if m > 1:
        ordered = ordered[:, :, _reversed(q, m // 2)][..., _reversed(q, m - m // 2)]
    ordered = ordered.transpose(1, 0, 3, 2)
    out[:, : ordered[0].size].reshape(ordered.shape)[...] = ordered


@lru_cache(maxsize=64)
def _reversed(q: int, digits: int) -> Integers:
    """Return the numbers with this many base-q digits, each read backward."""
    return np.arange(q**digits).reshape((q,) * digits).transpose().ravel()


@dataclass(frozen=True)
class _Tables:
    """The memory layout of tables `(b, ...)` of b vectors.

    With `in_rows` the same entry of all vectors is contiguous, otherwise each vector is.
    """

    dtype: np.dtype[Any]
    in_rows: bool

    def empty(self, shape: tuple[int, ...]) -> Table:
        """Return a new table with unset entries."""
        if not self.in_rows:
            return np.empty(shape, dtype=self.dtype)
        return np.moveaxis(np.empty((*shape[1:], shape[0]), dtype=self.dtype), -1, 0)

    def of(self, vectors: Table) -> Table:
        """Return vectors in this layout, without a copy if they already have it."""
        if not self.in_rows:
            return vectors.astype(self.dtype, copy=False)
        return self.join([vectors])

    def join(self, tables: Sequence[Table]) -> Table:
        """Return the vectors of all tables, `(b, n)` each, in one."""
        out = self.empty((sum(len(table) for table in tables), tables[0].shape[1]))
        np.concatenate(tables, out=out)
        return out


def _lines_of(q: int, tables: _Tables, points: Table, lines: int) -> Table:
    """Sum along the lines of the first x_m: `(g, K)` -> `(lines g, q, points of a hyperplane)`.

    Of y the coordinates `(.. y_(m-1), z)` remain, with z first; points that lead with z are unused.
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


def _all_led_sums(q: int, m: int, tables: _Tables, blocks: Sequence[Table]) -> Table:
    """Return `_led_sums` of all blocks, vector by vector if they are large."""
    size = q**m
    if tables.in_rows or size < _LARGE:
        return _led_sums(q, m, tables, blocks)
    out = tables.empty((sum(len(block) for block in blocks), q, size // q))
    for place, vector in enumerate(vector for block in blocks for vector in block):
        out[place] = _led_sums(q, m, tables, [vector[None]])[0]
    return out


def _led_sums(q: int, m: int, tables: _Tables, blocks: Sequence[Table]) -> Table:
    """Sum over the points `(1, y_2 .. y_m, z)` orthogonal to x: `(b, q, q^(m-1))`, z first.

    The result is indexed by x_1, then by x_2 to x_m. Each step replaces one y_i by x_i in place and
    works on slices as long as the coordinates after it. To keep these long, the two halves of the
    coordinates are swapped in between.
    """
    b = sum(len(block) for block in blocks)
    back = 0 if tables.in_rows else (m - 1) // 2
    halves = q ** (m - 1 - back), q**back
    state = tables.empty((b, q, halves[0] * halves[1]))
    np.concatenate(blocks, out=state)
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
    """Replace a coordinate w of y by the one of x: `(b, z, l, w, r)` -> `(b, z, l, x, r)`.

    `new[z, .., x] = sum_w old[z - x w, .., w]`, for the first `lines` values of x.
    """
    b, _, before, _, right = table.shape
    if table.size == 0:
        return tables.empty((b, q, before, lines, right))
    if (q > _DIRECT_PRIMES or b * before * right + _SHORT < q) and (
        table.dtype == np.float64 or np.abs(table).sum(axis=(1, 3)).max() < _EXACT_TOTAL
    ):
        return _lines_by_fourier(q, table)[:, :, :, :lines]
    new = tables.empty((b, q, before, lines, right))
    turned = table
    if lines > 1:
        # All z, then all but the last again, so that each shift is one slice.
        turned = tables.empty((b, 2 * q - 1, before, q, right))
        turned[:, :q] = table
        turned[:, q:] = table[:, : q - 1]
    for x in range(lines):
        shifts = (-x * w % q for w in range(q))
        first, second, *rest = (turned[:, z : z + q, :, w] for w, z in enumerate(shifts))
        line = new[:, :, :, x]
        np.add(first, second, out=line)
        for other in rest:
            line += other
    return new


def _lines_by_fourier(q: int, table: Table) -> Table:
    """Do the same as `_sum_lines` in `q^2 log q` steps, by Fourier transforms.

    Frequency f of line x is the table's frequency `(x f, f)`. Results for integer tables are
    rounded: with n the total of the table, the error stays below `n log(q^2)` units of double
    precision, far below 1/2.
    """
    frequencies = np.fft.rfft2(table.transpose(0, 2, 4, 3, 1))
    f = np.arange(frequencies.shape[4])
    lines = frequencies[..., np.arange(q)[:, None] * f % q, f]
    sums = np.fft.irfft(lines, n=q, axis=4).transpose(0, 4, 1, 3, 2)
    whole = np.issubdtype(table.dtype, np.integer)
    return (np.rint(sums) if whole else sums).astype(table.dtype)
