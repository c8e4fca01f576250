"""Points of a finite projective space, and the hyperplanes orthogonal to them.

The space with t coordinates over the integers modulo a prime q has `K = (q^t - 1)/(q - 1)` points:
vectors of t coordinates whose first nonzero coordinate is 1. A point's number is
`sum_i (c_i + 1) q^i` over the coordinates `c_i` after that leading 1, counted from the last. Points
with fewer such coordinates come first; those with equally many are in lexicographic order.

Reports y and values x are both points, and y is *orthogonal* to x if
`sum_i x_i y_(t+1-i) = 0 mod q`: the coordinates of x are read backward, so that its last nonzero
one is 1. Feldman et al. 2022 read both forward. Reading one backward only renames the values; it
keeps the relation symmetric, and an orthogonal point can be completed without a division.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldpstream.mechanisms.base.arrays import Bools, Integers


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
