"""The cone of a policy: the columns that a channel may have (docs/theory.md section 8).

Also what cones share: scale and gain of columns, and the sets of values that seeds are made of.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.families.design.projective_geometry import choose_geometry


class DesignError(ValueError):
    """There is no design; the message says what did not converge or what is impossible."""


class Cone(ABC):
    """The vectors `v >= 0` that may be a column of a channel over k values.

    Columns are the rows of arrays `(n, k)`, scaled to `p.v = 1` for a design prior p.
    """

    climbs: ClassVar[int]
    """How many climbs a round of the search starts; fewer if they are expensive."""
    perturbations: ClassVar[int] = 0
    """How many columns of the design a round disturbs."""

    @abstractmethod
    def best(self, directions: Floats, prior: Floats) -> Floats:
        """Return the column with the largest `c.v` for each direction c, `(n, k)` both."""

    @abstractmethod
    def seeds(self) -> Floats:
        """Return columns of the cone, `(n, k)`, of any scale, that distinguish all values."""

    @abstractmethod
    def contains(self, column: Floats) -> bool:
        """Return whether a column, `(k,)`, of any scale is in the cone."""

    def improve(self, columns: Floats, prior: Floats, form: Floats, multipliers: Floats) -> Floats:
        """Return columns of no smaller gain, by local search; by default the columns themselves."""
        del prior, form, multipliers
        return columns

    def perturb(self, columns: Floats, prior: Floats, rng: np.random.Generator) -> Floats:
        """Return extreme columns near the given ones, by default none."""
        del prior, rng
        return columns[:0]

    def rays(self, most: int) -> Iterator[Floats] | None:
        """Return all extreme rays in arrays `(n, k)` of any scale, or None for more than `most`."""
        del most
        return None


def scaled(columns: Floats, prior: Floats) -> Floats:
    """Return columns `(n, k)` scaled to `p.v = 1`."""
    out: Floats = columns / (columns @ prior)[:, None]
    return out


def gains(columns: Floats, form: Floats, multipliers: Floats) -> Floats:
    """Return `v^T M v - lambda.v` of columns with `p.v = 1`, float64 `(n,)`."""
    out: Floats = np.einsum("ij,ij->i", columns @ form, columns) - columns @ multipliers
    return out


def hyperplanes(size: int, epsilon: float) -> Floats:
    """Return 1 where a value is on a hyperplane, 0 elsewhere: `(n, k)`, sets of 1..k-1 values.

    Under classical LDP with uniform shares, a channel whose reports support these sets is close to
    the best one at any size (projective geometry response). As seeds they save a search much time
    with hundreds of values, since it adds only a few columns in each round.
    """
    geometry = choose_geometry(budget(epsilon), size)
    points, values = np.arange(geometry.points), np.arange(size)
    members = np.stack(
        [geometry.orthogonal(values, np.full(size, point)) for point in points.tolist()]
    )
    proper = members[members.any(axis=1) & ~members.all(axis=1)]
    return np.unique(proper, axis=0).astype(np.float64)
