"""Which reports of a block support which of its values, and sums over them.

Vectors are rows, `(g, order)` -> `(g, order)`; the value at place i has column i. Sums of integers
are exact; small counts give int32.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.exact.walsh import Number, positive, walsh_hadamard
from ldpstream.mechanisms.families.design.geometry_transform import Geometry, hyperplane_sums

_MOST_LISTED: Final = 1 << 13
"""Up to this many points times supporting reports, sums are taken point by point."""


class IncidenceProduct(Protocol):
    """The signature of `Incidence.to_values` and `Incidence.to_reports`."""

    def __call__(self, vectors: NDArray[Number], /) -> NDArray[Number]:
        """Return the sums, `(g, order)` -> `(g, order)`."""
        ...


class Incidence(Protocol):
    """The reports that support each value of a block."""

    def supporting(self, place: int) -> Indices:
        """Return the reports that support the value at a place of the block."""
        ...

    def to_values(self, vectors: NDArray[Number], /) -> NDArray[Number]:
        """Sum over the reports that support each value; columns without a value are undefined."""
        ...

    def to_reports(self, vectors: NDArray[Number], /) -> NDArray[Number]:
        """Sum over the values that each report supports."""
        ...


class Own:
    """Each report supports only the value with its number."""

    def supporting(self, place: int) -> Indices:
        """Return the value's own report."""
        return np.array([place], dtype=np.int64)

    def to_values(self, vectors: NDArray[Number], /) -> NDArray[Number]:
        """Return the vectors unchanged."""
        return vectors

    to_reports = to_values


OWN: Final = Own()


@dataclass(frozen=True)
class Signs:
    """Positions of Sylvester's matrix of this order; those of sign +1 support a value.

    The value at place i has row i + 1, and the last place has no value.
    """

    order: int

    def supporting(self, place: int) -> Indices:
        """Return the positions of sign +1 in the value's row."""
        return np.flatnonzero(positive(np.array(place + 1), np.arange(self.order)))

    def to_values(self, vectors: NDArray[Number], /) -> NDArray[Number]:
        """Sum over the positions of sign +1 in each row."""
        sums = walsh_hadamard(vectors)
        every = sums[:, :1].copy()
        # The columns move down by one, and the last holds nothing.
        sums[:, :-1] = sums[:, 1:]
        return _half(sums, every)

    def to_reports(self, vectors: NDArray[Number], /) -> NDArray[Number]:
        """Sum over the rows with sign +1 at each position."""
        moved = np.empty_like(vectors)
        moved[:, 0], moved[:, 1:] = vectors[:, -1], vectors[:, :-1]
        return _half(walsh_hadamard(moved), vectors.sum(axis=-1, keepdims=True))


def _half(sums: NDArray[Number], every: NDArray[Number]) -> NDArray[Number]:
    """Replace differences of the two signs, in place, by the sums of sign +1."""
    sums += every
    halve, by = (np.multiply, 0.5) if sums.dtype.kind == "f" else (np.right_shift, 1)
    halve(sums, by, out=sums)
    return sums


@dataclass(frozen=True)
class Hyperplanes:
    """The first `values` points of a space; a report supports the points orthogonal to it."""

    geometry: Geometry
    values: int

    def supporting(self, place: int) -> Indices:
        """Return the points orthogonal to the value's."""
        numbers = np.arange(self.geometry.inside, dtype=np.int64)
        return self.geometry.complete(np.full_like(numbers, place), numbers)

    def to_values(self, vectors: NDArray[Number], /) -> NDArray[Number]:
        """Sum over hyperplanes, for the values only."""
        return hyperplane_sums(self.geometry, vectors, self.values)

    def to_reports(self, vectors: NDArray[Number], /) -> NDArray[Number]:
        """Sum over hyperplanes, for every point."""
        return hyperplane_sums(self.geometry, vectors)


@dataclass(frozen=True)
class ListedHyperplanes(Hyperplanes):
    """Hyperplanes of small spaces, summed point by point."""

    @cached_property
    def _listed(self) -> Indices:
        """The reports that support each point, `(order, inside)`."""
        return np.stack([self.supporting(point) for point in range(self.geometry.points)])

    def to_reports(self, vectors: NDArray[Number], /) -> NDArray[Number]:
        """Sum over the points of each hyperplane."""
        sums: NDArray[Number] = vectors[:, self._listed].sum(axis=2)
        return sums

    to_values = to_reports


def hyperplanes(geometry: Geometry, values: int) -> Hyperplanes:
    """Return the faster of the two ways to sum over the hyperplanes of a space."""
    few = geometry.points * geometry.inside <= _MOST_LISTED
    return (ListedHyperplanes if few else Hyperplanes)(geometry, values)
