"""Projective geometry response inside blocks (docs/theory.md section 8).

Feldman, Nelson, Nguyen, Talwar 2022, *Private Frequency Estimation via Projective Geometry*. The
block is reported exactly; its values and reports are points of a projective space (`geometry`).
With probability `T / 2^64` a report is uniform over the points orthogonal to the value's, otherwise
over all others. The variance is close to the least that epsilon allows, in `log2 K` bits, with K a
little above k.

Two differences from the paper: the space is chosen by the exact variance of the realised channel
(`geometry_choice`) instead of a prime near `e^eps + 1`, and values' coordinates are read backward.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.exact.entropy import (
    Entropy,
    bernoulli_each,
    uniform_below,
)
from ldpstream.mechanisms.families.design.design import SymmetricDesign
from ldpstream.mechanisms.families.design.geometry import Geometry
from ldpstream.mechanisms.families.design.geometry_choice import choose, realise
from ldpstream.mechanisms.families.design.incidence import OWN, Hyperplanes, Incidence
from ldpstream.mechanisms.families.design.mechanism import DesignMechanism
from ldpstream.mechanisms.interface.mechanism import Json, Reports


@dataclass(frozen=True)
class ProjectiveGeometry(DesignMechanism):
    """Projective geometry response with budget `epsilon` inside each block of a partition."""

    id: ClassVar[str] = "projective-geometry"

    def geometry(self, size: int) -> Geometry:
        """Return the space for blocks of this many values, two or more."""
        return choose(budget(self.epsilon), size)

    def design(self, size: int) -> SymmetricDesign:
        return realise(budget(self.epsilon), self.geometry(size))

    def stronger(self, epsilon: float) -> "Stronger":
        return Stronger(epsilon, self.blocks, self)

    def incidence(self, size: int, /) -> Incidence:
        """Return points and hyperplanes; a block of one value has one report."""
        return OWN if size == 1 else Hyperplanes(self.geometry(size), size)

    def parameters(self) -> Mapping[str, Json]:
        spaces: list[Json] = [
            {
                "size": size,
                "q": self.geometry(size).q,
                "dimension": self.geometry(size).dimension,
                "threshold": hex(design.threshold),
            }
            for size, design in zip(self.sizes, self.layout.designs, strict=True)
            if size > 1
        ]
        return {
            "epsilon": float(self.epsilon),
            "spaces": spaces,
            "blocks": {"count": self.blocks.count, "sha256": self.blocks.digest},
        }

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports of shape `(n,)`.

        n words decide which reports are orthogonal points. Then, by ascending size of block, the
        points of all values in blocks of that size are drawn.
        """
        layout, block = self.layout, self.blocks.of_value[values]
        wanted = bernoulli_each(entropy, layout.thresholds[block])
        place = self.blocks.position[values]
        points = np.zeros(len(values), dtype=np.int64)
        kinds = layout.kinds[block]
        for kind in np.unique(kinds).tolist():
            if self.sizes[kind] > 1:
                here = np.flatnonzero(kinds == kind)
                geometry = self.geometry(self.sizes[kind])
                points[here] = draw_points(geometry, entropy, place[here], wanted[here])
        return layout.starts[block] + points


@dataclass(frozen=True)
class Stronger(ProjectiveGeometry):
    """The mechanism of a permanent draw: a larger budget with the spaces of `like`."""

    like: ProjectiveGeometry

    def geometry(self, size: int) -> Geometry:
        return self.like.geometry(size)


def draw_points(
    geometry: Geometry, source: Entropy, values: Reports, wanted: NDArray[np.bool_]
) -> Reports:
    """Return a uniform point for each value, orthogonal to it where `wanted`, else not.

    The former are drawn by number in the hyperplane, the latter by rejection, round by round: at
    least half of all points are not orthogonal to a given one.
    """
    points = np.empty_like(values)
    inside = np.flatnonzero(wanted)
    lower = uniform_below(source, geometry.inside, len(inside))
    points[inside] = geometry.complete(values[inside], lower)
    left = np.flatnonzero(~wanted)
    while left.size:
        drawn = uniform_below(source, geometry.points, left.size)
        points[left] = drawn
        left = left[geometry.orthogonal(values[left], drawn)]
    return points
