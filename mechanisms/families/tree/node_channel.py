"""The channel of one level of a tree: randomised response or projective geometry response."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from math import isqrt

import numpy as np

from ldpstream.mechanisms.base.arrays import Bools, Indices
from ldpstream.mechanisms.exact.dyadic import set_threshold
from ldpstream.mechanisms.exact.entropy import Entropy, uniform_below
from ldpstream.mechanisms.families.design.design import SymmetricDesign
from ldpstream.mechanisms.families.design.geometry import Geometry
from ldpstream.mechanisms.families.design.incidence import OWN, Incidence, hyperplanes
from ldpstream.mechanisms.families.design.projective_geometry import (
    draw_points,
    hyperplane_design,
    primes_up_to,
)

_MOST_POINTS = 4
"""Most points for each node of a level."""
_COORDINATES = 3
"""Fewest coordinates; with two, a space is randomised response on more points than nodes."""


@dataclass(frozen=True)
class NodeChannel:
    """A symmetric design whose first `nodes` points are a level's nodes.

    Without a geometry it is randomised response, whose reports are the nodes.
    """

    nodes: int
    design: SymmetricDesign
    geometry: Geometry | None

    @property
    def contrast_noise(self) -> Fraction:
        """Variance of `sum_v a_v h_v` over uniform reports, for `sum a = 0` and `sum a^2 = 1`.

        `v = (inside - overlap)/(order (own - other)^2)`: the constant part of `h_v` cancels, and
        the products of different a sum to -1.
        """
        design = self.design
        spread = Fraction(design.inside - design.overlap, design.order)
        return spread / design.support.gap**2

    def stronger(self, epsilon: Fraction) -> "NodeChannel":
        """Return the channel with another budget and the points of this one."""
        inside, outside = self.design.inside, self.design.outside
        threshold = set_threshold(epsilon, inside, outside)
        return replace(self, design=replace(self.design, threshold=threshold))

    @cached_property
    def incidence(self) -> Incidence:
        """Which reports support which nodes."""
        return OWN if self.geometry is None else hyperplanes(self.geometry, self.nodes)

    def draw(self, source: Entropy, nodes: Indices, wanted: Bools) -> Indices:
        """Return a uniform report for each node, supporting it if `wanted`, else not supporting it.

        Randomised response draws the latter among all nodes but the own one.
        """
        if self.geometry is not None:
            return draw_points(self.geometry, source, nodes, wanted)
        reports = nodes.copy()
        others = np.flatnonzero(~wanted)
        drawn = uniform_below(source, self.nodes - 1, others.size)
        reports[others] = drawn + (drawn >= nodes[others])
        return reports


@lru_cache(maxsize=1024)
def choose_channel(epsilon: Fraction, nodes: int) -> NodeChannel:
    """Return the channel of least `contrast_noise` for two nodes or more, the same on all machines.

    A space has the fewest coordinates, but at least three, that give a point to each node, and at
    most four points for each node. Ties go to randomised response, then to the smaller prime. If no
    channel carries information, randomised response is returned; the caller refuses the epsilon.
    """
    best = NodeChannel(
        nodes, SymmetricDesign(nodes, 1, 0, set_threshold(epsilon, 1, nodes - 1)), None
    )
    for geometry in small_spaces(nodes):
        found = NodeChannel(nodes, hyperplane_design(epsilon, geometry), geometry)
        gaps = found.design.support.gap, best.design.support.gap
        if gaps[0] > 0 and (gaps[1] <= 0 or found.contrast_noise < best.contrast_noise):
            best = found
    return best


def small_spaces(nodes: int) -> Iterator[Geometry]:
    """Yield the spaces of at least three coordinates and `nodes` to four times as many points."""
    for q in primes_up_to(isqrt(_MOST_POINTS * nodes)).tolist():
        geometry = Geometry(q, _COORDINATES)
        while geometry.points < nodes:
            geometry = Geometry(q, geometry.dimension + 1)
        if geometry.points <= _MOST_POINTS * nodes:
            yield geometry
