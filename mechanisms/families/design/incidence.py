"""Which reports of a block support which of its values, and sums over these.

Vectors lie in rows, `(g, order)` -> `(g, order)`, the value of place i in the i-th column. Sums are
exact in integers; of few counts they are int32.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.exact.walsh import Number
from ldpstream.mechanisms.families.design.geometry import Geometry
from ldpstream.mechanisms.families.design.geometry_transform import hyperplane_sums

_MOST_LISTED: Final = 1 << 13
"""Points times reports that support each: so few are added up one by one."""


class Sums(Protocol):
    """One of the two sums."""

    def __call__(self, vectors: NDArray[Number], /) -> NDArray[Number]:
        """Return the sums."""
        ...


class Incidence(Protocol):
    """The reports that support each value of a block."""

    def supporting(self, place: int) -> Indices:
        """Return the reports that support the value at a place of the block."""
        ...

    def to_values(self, vectors: NDArray[Number], /) -> NDArray[Number]:
        """Sum over the reports that support each value; places without a value hold anything."""
        ...

    def to_reports(self, vectors: NDArray[Number], /) -> NDArray[Number]:
        """Sum over the values that each report supports."""
        ...


class Own:
    """Each report supports the value of its number alone."""

    def supporting(self, place: int) -> Indices:
        """Return the value's own report."""
        return np.array([place], dtype=np.int64)

    def to_values(self, vectors: NDArray[Number], /) -> NDArray[Number]:
        """Return the reports themselves."""
        return vectors

    to_reports = to_values


OWN: Final = Own()


@dataclass(frozen=True)
class Hyperplanes:
    """The first `values` points of a space; a report supports those that it is orthogonal to."""

    geometry: Geometry
    values: int

    def supporting(self, place: int) -> Indices:
        """Return the points orthogonal to the value's."""
        numbers = np.arange(self.geometry.inside, dtype=np.int64)
        return self.geometry.complete(np.full_like(numbers, place), numbers)

    def to_values(self, vectors: NDArray[Number], /) -> NDArray[Number]:
        """Sum over hyperplanes, for the values alone."""
        return hyperplane_sums(self.geometry, vectors, self.values)

    def to_reports(self, vectors: NDArray[Number], /) -> NDArray[Number]:
        """Sum over hyperplanes, for every point."""
        return hyperplane_sums(self.geometry, vectors)


@dataclass(frozen=True)
class ListedHyperplanes(Hyperplanes):
    """The same of small spaces, added up point by point."""

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
    """Return the faster way to add up over the hyperplanes of a space."""
    few = geometry.points * geometry.inside <= _MOST_LISTED
    return (ListedHyperplanes if few else Hyperplanes)(geometry, values)
