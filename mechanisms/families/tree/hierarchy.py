"""Trees over the places of a line or a box, and how each level is reported.

A level has randomised response or projective geometry response, whichever has less noise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from math import isqrt, prod
from typing import Final

import numpy as np

from ldpstream.mechanisms.base.arrays import Bools, Floats, Indices
from ldpstream.mechanisms.exact.dyadic import set_threshold
from ldpstream.mechanisms.exact.entropy import WORD, Entropy, Words, uniform_below
from ldpstream.mechanisms.families.design.design import SymmetricDesign
from ldpstream.mechanisms.families.design.geometry_transform import Geometry
from ldpstream.mechanisms.families.design.incidence import OWN, Incidence, hyperplanes
from ldpstream.mechanisms.families.design.projective_geometry import (
    draw_points,
    hyperplane_design,
    primes_up_to,
)
from ldpstream.mechanisms.families.tree.workload import LEVELS, Workload, height, mean_squares

_MOST_POINTS = 4
"""Most points for each node of a level."""
_COORDINATES = 3
"""Fewest coordinates; with two, a space is randomised response on more points than nodes."""

Depths = tuple[int, ...]
"""How often a level halves each dimension: it has `2^sum` nodes, in row-major order."""

_STEPS: Final = 200
_UNITS: Final = 1 << 20
"""Probabilities are multiples of `1 / _UNITS`, which is coarser than the rounding of floats."""
_RARE: Final = 2.0**-10
_FINEST: Final = 2.0**-6
"""Least probability of the finest level, the only one that contributes to every query."""


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

    def draw(self, source: Entropy, nodes: Indices, supporting: Bools) -> Indices:
        """Return a report for each node, uniform among those that support it or, else, do not.

        `supporting` says which. Randomised response reports the node itself, or else another one.
        """
        if self.geometry is not None:
            return draw_points(self.geometry, source, nodes, supporting)
        reports = nodes.copy()
        rest = np.flatnonzero(~supporting)
        drawn = uniform_below(source, self.nodes - 1, rest.size)
        reports[rest] = drawn + (drawn >= nodes[rest])
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
        channel = NodeChannel(nodes, hyperplane_design(epsilon, geometry), geometry)
        gaps = channel.design.support.gap, best.design.support.gap
        if gaps[0] > 0 and (gaps[1] <= 0 or channel.contrast_noise < best.contrast_noise):
            best = channel
    return best


def small_spaces(nodes: int) -> Iterator[Geometry]:
    """Yield the spaces of at least three coordinates and `nodes` to four times as many points."""
    for q in primes_up_to(isqrt(_MOST_POINTS * nodes)).tolist():
        geometry = Geometry(q, _COORDINATES)
        while geometry.points < nodes:
            geometry = Geometry(q, geometry.dimension + 1)
        if geometry.points <= _MOST_POINTS * nodes:
            yield geometry


@dataclass(frozen=True)
class HierarchyLevel:
    """A level that is reported with `probability / 2^64`; its reports begin at `start`."""

    depths: Depths
    probability: int
    channel: NodeChannel
    start: int

    @property
    def reports(self) -> slice:
        """The slice of the level's reports among those of the tree."""
        return slice(self.start, self.start + self.channel.design.order)


@dataclass(frozen=True)
class Hierarchy:
    """A tree over `extents`, 2 or more values in each dimension; no dimensions are a single place.

    Each dimension is padded to a power of two; nodes beyond its last value stay empty.
    """

    extents: tuple[int, ...]
    levels: tuple[HierarchyLevel, ...]

    @classmethod
    def of(cls, epsilon: Fraction, extents: Sequence[int], workload: Workload) -> "Hierarchy":
        """Return the tree with the channels and probabilities that are best for a workload."""
        heights = tuple(height(extent) for extent in extents)
        if not heights:
            return cls((), ())
        every: Sequence[Depths] = list(product(*(range(most + 1) for most in heights)))[1:]
        if workload == LEVELS:
            every = square_depths(heights)
        channels = {depths: choose_channel(epsilon, 1 << sum(depths)) for depths in every}
        if any(channel.design.support.gap <= 0 for channel in channels.values()):
            return cls(tuple(extents), ())
        if workload == LEVELS:
            units = equal_probabilities(len(every))
        else:
            precisions = np.zeros([most + 1 for most in heights])
            for depths, channel in channels.items():
                precisions[depths] = (1 << sum(heights) - sum(depths)) / channel.contrast_noise
            _, *units = level_probabilities(mean_squares(workload, extents), precisions)
        levels, start = [], 0
        for depths, unit in zip(every, units, strict=True):
            if unit:
                levels.append(HierarchyLevel(depths, unit, channels[depths], start))
                start += channels[depths].design.order
        return cls(tuple(extents), tuple(levels))

    def stronger(self, epsilon: Fraction) -> "Hierarchy":
        """Return the tree with another budget and the levels and reports of this one."""
        levels = (replace(lv, channel=lv.channel.stronger(epsilon)) for lv in self.levels)
        return replace(self, levels=tuple(levels))

    @property
    def heights(self) -> Depths:
        """The depths of the finest level."""
        return tuple(height(extent) for extent in self.extents)

    @property
    def size(self) -> int:
        """Number of values."""
        return prod(self.extents)

    @cached_property
    def order(self) -> int:
        """Number of reports."""
        return 1 if not self.extents else sum(lv.channel.design.order for lv in self.levels)

    @cached_property
    def ends(self) -> Words:
        """The first word that no longer draws a level, for each level but the last."""
        ends = np.cumsum([0, *(level.probability for level in self.levels)], dtype=object)
        return np.array(ends[1:-1], dtype=np.uint64)

    def nodes(self, level: HierarchyLevel, places: Indices) -> Indices:
        """Return the nodes of places, int64 `(n,)`, in row-major order of the values."""
        node, rest = np.zeros_like(places), places
        axes = zip(self.extents, self.heights, level.depths, strict=True)
        stride = 1
        for extent, most, depth in reversed(list(axes)):
            node += (rest % extent >> (most - depth)) * stride
            rest, stride = rest // extent, stride << depth
        return node

    def check(self) -> None:
        """Check what the proof by structure assumes."""
        starts = np.cumsum([0, *(level.channel.design.order for level in self.levels)])
        sound = all(
            level.start == start
            and level.channel.nodes == 1 << sum(level.depths)
            and level.channel.design.order >= level.channel.nodes
            and level.probability > 0
            for level, start in zip(self.levels, starts.tolist()[:-1], strict=True)
        )
        if not sound or sum(level.probability for level in self.levels) != WORD:
            raise ValueError("the levels of the tree are not what its proof assumes")


def square_depths(heights: Depths) -> list[Depths]:
    """Return levels whose nodes are equally wide in each dimension, or as wide as it is.

    Of a line these are all levels. The widest nodes come first, the single places last.

    >>> square_depths((1, 3))
    [(0, 1), (0, 2), (1, 3)]
    """
    halvings = reversed(range(max(heights)))
    return [tuple(max(0, most - times) for most in heights) for times in halvings]


def equal_probabilities(levels: int) -> list[int]:
    """Return the same probability for every level in units of 2^-64, the rest for the last one."""
    unit = _UNITS // levels
    units = [unit] * (levels - 1) + [_UNITS - unit * (levels - 1)]
    return [unit * (WORD // _UNITS) for unit in units]


def level_probabilities(mean_squares: Floats, precisions: Floats) -> list[int]:
    """Return the probability of each level in units of 2^-64, in row-major order; 0 if unused.

    For the workload's mean squares N_l, the least-squares decoder has the variance
    `sum_l N_l / lambda_l` with `lambda_l = sum_(j >= l) pi_j p_j`, where p_j is the precision of
    level j. This is convex in pi, and minimal where `g_j = p_j sum_(l <= j) N_l / lambda_l^2` is
    equal for all levels in use.

    `mean_squares` are N and `precisions` are p, of shape `(L_1 + 1, ..)`: in each dimension, index
    0 is the root and index L the finest level. Uses only ordered sums, products and roots of
    floats, so that the result is the same on every machine.
    """
    used = precisions > 0.0
    squares = np.where(used, mean_squares, 0.0)
    if not squares.any():
        squares = used.astype(np.float64)
    precision = precisions / precisions.max()
    shares = used / used.sum()
    for _ in range(_STEPS):
        lambdas = np.maximum(shares * precision, used * np.finfo(np.float64).tiny)
        gains = precision * _below(squares / _above(lambdas) ** 2)
        shares = shares * np.sqrt(gains)
        shares /= np.cumsum(shares)[-1]
    usable = np.where(shares < _RARE, 0.0, shares).ravel()
    usable[-1] = max(usable[-1], _FINEST)
    units = np.floor(usable / np.cumsum(usable)[-1] * _UNITS).astype(np.int64)
    units[-1] += _UNITS - units.sum()
    return [unit * (WORD // _UNITS) for unit in units.tolist()]


def _below(table: Floats) -> Floats:
    """Return the sums over all levels that are nowhere finer."""
    for axis in range(table.ndim):
        table = np.cumsum(table, axis=axis)
    return table


def _above(table: Floats) -> Floats:
    """Return the sums over all levels that are nowhere coarser."""
    return np.flip(_below(np.flip(table)))
