"""Linear queries of one tree: least squares over its levels, in closed form.

Let W_j be the number of places of a node of level j, v_j the noise of its channel, and
`p_j = W_j/v_j`. A query w is decoded by `h(j, y) = mean(w) + p_j sum_v c_j[v] h_v(y)` with
`c_j = sum_(l <= j) u_l/lambda_l`. Here u_l is the change of w's node means at level l from those
above, and `lambda_l` is the sum of `pi_j p_j` over the levels j that are nowhere coarser than l.
Then `Q h = w` for any v and pi: on level j, which has the probability `pi_j`, `h_v` has mean 1 for
the value's own node and 0 for others, so that `u_l` counts `sum_j pi_j p_j/lambda_l = 1` times, and
all changes and `mean(w)` sum to w. Weights beyond the last value of a dimension repeat the last
one, so that a constant is decoded without noise.

A pyramid has an array for each level of the tree, with sums and means up and down the tree. It maps
the depths of each level to an array `(b, 2^d_1, 2^d_2, ..)`: b functions that are constant on its
nodes. Each sweep goes along one dimension after the other.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from typing import Self

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Indices, Integers
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.design.incidence import Incidence
from ldpstream.mechanisms.families.tree.hierarchy import Depths, Hierarchy, HierarchyLevel
from ldpstream.mechanisms.interface.decoder import Statistic
from ldpstream.mechanisms.interface.symbols import remove_rounding

Pyramid = dict[Depths, Floats]

_MOST_LISTED = 1 << 23
"""Up to this many values times reports, the decoders of all single values are tables."""
_PART = 1 << 20


def means(finest: Floats, heights: Depths) -> Pyramid:
    """Return the means over the nodes of every level, for functions on the finest level."""
    pyramid = {heights: finest}
    for upper, lower, axis in _downward(heights):
        if upper in pyramid:
            pyramid[lower] = _halved(pyramid[upper], axis)
    return pyramid


def keep_changes(pyramid: Pyramid, heights: Depths) -> None:
    """Replace means of nodes by their change from the level above, in every dimension."""
    for upper, lower, axis in _downward(heights):
        pyramid[upper] = pyramid[upper] - np.repeat(pyramid[lower], 2, axis=axis)


def project_changes(pyramid: Pyramid, heights: Depths) -> None:
    """Replace each level's functions by their parts that sum to 0 over each parent node."""
    for upper, _, axis in _downward(heights):
        parents = _halved(pyramid[upper], axis)
        pyramid[upper] = pyramid[upper] - np.repeat(parents, 2, axis=axis)


def add_from_above(pyramid: Pyramid, heights: Depths) -> None:
    """Add to each level all levels that are nowhere finer; the finest gets the sum of all."""
    for upper, lower, axis in reversed(_downward(heights)):
        pyramid[upper] = pyramid[upper] + np.repeat(pyramid[lower], 2, axis=axis)


def add_from_below(pyramid: Pyramid, heights: Depths) -> None:
    """Add to each level the means over its nodes of all levels that are nowhere coarser."""
    for upper, lower, axis in _downward(heights):
        pyramid[lower] = pyramid[lower] + _halved(pyramid[upper], axis)


@lru_cache(maxsize=64)
def _downward(heights: Depths) -> tuple[tuple[Depths, Depths, int], ...]:
    """Return each level, the next coarser one along an axis, and that axis of its array.

    Goes axis by axis from the finest level on, so that a sweep uses a level before changing it.
    """
    steps = []
    for axis, most in enumerate(heights):
        for depth in range(most, 0, -1):
            rest = (*heights[:axis], 0, *heights[axis + 1 :])
            for place in np.ndindex(*(height + 1 for height in rest)):
                upper = (*place[:axis], depth, *place[axis + 1 :])
                lower = (*place[:axis], depth - 1, *place[axis + 1 :])
                steps.append((upper, lower, axis + 1))
    return tuple(steps)


def _halved(array: Floats, axis: int) -> Floats:
    """Return the means of neighbouring pairs along an axis."""
    before = (slice(None),) * axis
    first, second = (array[(*before, slice(place, None, 2))] for place in (0, 1))
    halved: Floats = (first + second) * 0.5
    return halved


@dataclass(frozen=True)
class Singles:
    """What second moments and bounds of the m single values of a tree are computed from.

    Value x uses row `rows[x]` of the other tables. `squares` is h^2 of each report, `(r, order)`,
    or, with `by_level`, its mean over uniform reports of each level, `(r, levels)`. The extremes of
    h and of the noise that a user adds are `(r,)`.
    """

    rows: Indices
    by_level: bool
    squares: Floats
    least: Floats
    largest: Floats
    quietest: Floats
    noisiest: Floats


@dataclass(frozen=True)
class LevelTable:
    """A level in floats: `share` is pi, `noise` is v, and `precision` is p.

    A node's decoder is `low + step` at reports that support it, and `low` at others. A report has
    the probability `unlikely + excess` if it supports the user's node, else `unlikely`.
    """

    depths: Depths
    reports: slice
    nodes: int
    order: int
    incidence: Incidence
    share: float
    noise: float
    precision: float
    low: float
    step: float
    unlikely: float
    excess: float

    @classmethod
    def of(cls, level: HierarchyLevel, heights: Depths) -> Self:
        """Return the table of a level in a tree whose finest level has these depths."""
        channel, design = level.channel, level.channel.design
        noise = float(channel.contrast_noise)
        return cls(
            depths=level.depths,
            reports=level.reports,
            nodes=channel.nodes,
            order=design.order,
            incidence=channel.incidence,
            share=level.probability / WORD,
            noise=noise,
            precision=float(1 << (sum(heights) - sum(level.depths))) / noise,
            low=float(design.support.low),
            step=float(1 / design.support.gap),
            unlikely=float(design.unlikely),
            excess=float(design.likely - design.unlikely),
        )


class HierarchyDecoder:
    """Decodes b queries at once: weights `(b, m)` in row-major order, reports `(b, order)`."""

    def __init__(self, tree: Hierarchy) -> None:
        self._tree = tree
        self._full = tuple(1 << most for most in tree.heights)
        self._levels = [LevelTable.of(level, tree.heights) for level in tree.levels]
        self._every = list(product(*(range(most + 1) for most in tree.heights)))
        self._lambda = {depths: self._precision_from(depths) for depths in self._every}

    def _precision_from(self, depths: Depths) -> float:
        return sum(
            level.share * level.precision
            for level in self._levels
            if all(depth >= least for depth, least in zip(level.depths, depths, strict=True))
        )

    def _scale(self, pyramid: Pyramid) -> None:
        for depths in self._every:
            weight = 1.0 / self._lambda[depths] if any(depths) else 0.0
            pyramid[depths] = pyramid[depths] * weight

    def decode(self, weights: Floats) -> Floats:
        """Return h of each query, float64 `(b, m)` -> `(b, order)`."""
        if not self._tree.extents:
            return weights.copy()
        centre, nodes = self._nodes(weights)
        decoded = np.empty((len(weights), self._tree.order))
        for level, on_nodes in zip(self._levels, nodes, strict=True):
            points = np.zeros((len(weights), level.order))
            points[:, : level.nodes] = on_nodes * level.step
            moved = centre + level.low * on_nodes.sum(axis=1)
            decoded[:, level.reports] = level.incidence.to_reports(points) + moved[:, None]
        return decoded

    def _nodes(self, weights: Floats) -> tuple[Floats, list[Floats]]:
        """Return each query's mean, `(b,)`, and its `p_j c_j` on the nodes of each level."""
        heights, b = self._tree.heights, len(weights)
        table = weights.reshape(b, *self._tree.extents)
        ends = zip(self._full, self._tree.extents, strict=True)
        padded = np.pad(table, [(0, 0), *((0, full - m) for full, m in ends)], mode="edge")
        pyramid = means(padded, heights)
        centre = pyramid[(0,) * len(heights)].reshape(b)
        keep_changes(pyramid, heights)
        self._scale(pyramid)
        add_from_above(pyramid, heights)
        return centre, [lv.precision * pyramid[lv.depths].reshape(b, -1) for lv in self._levels]

    def expect(self, functions: Floats) -> Floats:
        """Return the mean for each value of functions of the report, `(b, order)` -> `(b, m)`."""
        if not self._tree.extents:
            return functions.copy()
        b, pyramid = len(functions), self._zeros(len(functions))
        for level in self._levels:
            columns = np.ascontiguousarray(functions[:, level.reports])
            everywhere = level.unlikely * columns.sum(axis=1)[:, None]
            sums = level.incidence.to_values(columns)[:, : level.nodes]
            mean = level.excess * sums + everywhere
            pyramid[level.depths] = level.share * mean.reshape(pyramid[level.depths].shape)
        add_from_above(pyramid, self._tree.heights)
        cut = (slice(None), *(slice(extent) for extent in self._tree.extents))
        return np.ascontiguousarray(pyramid[self._tree.heights][cut]).reshape(b, -1)

    def totals(self, counts: Statistic) -> Floats:
        """Return `sum_y N[y] h_x(y)` of every value, counts `(b, order)` -> `(b, m)`."""
        if not self._tree.extents:
            return counts.astype(np.float64)
        heights, b, pyramid = self._tree.heights, len(counts), self._zeros(len(counts))
        for level in self._levels:
            columns = np.ascontiguousarray(counts[:, level.reports])
            everywhere = level.low * columns.sum(axis=1)[:, None]
            sums = level.step * level.incidence.to_values(columns)[:, : level.nodes] + everywhere
            pyramid[level.depths] = sums.reshape(pyramid[level.depths].shape) / level.noise
        add_from_below(pyramid, heights)
        project_changes(pyramid, heights)
        self._scale(pyramid)
        add_from_above(pyramid, heights)
        total = counts.sum(axis=1) / prod(self._full)
        padded: Floats = pyramid[heights] + total.reshape(b, *(1 for _ in heights))
        # The last value of a dimension also owns the places beyond it.
        for axis, extent in enumerate(self._tree.extents, start=1):
            padded = np.add.reduceat(padded, np.arange(extent), axis=axis)
        return padded.reshape(b, -1)

    def _zeros(self, b: int) -> Pyramid:
        return {depths: np.zeros((b, *(1 << depth for depth in depths))) for depths in self._every}

    def second_moments(self, counts: Statistic, totals: Floats, at: slice | Integers) -> Floats:
        """Return `sum_y N[y] h_x(y)^2` of values, counts `(b, order)` -> `(b, q)`.

        `totals` are those of the counts, `(b, m)`, and `at` chooses values. For large trees this is
        approximate: reports count as uniform in their level, except those of x and its siblings
        below one parent, which count with the most noise that they may have.
        """
        of = self.singles
        # einsum adds in one fixed order; a dot product would depend on the BLAS in use.
        if not of.by_level:
            if isinstance(at, slice) or 2 * at.size > of.rows.size:
                # Copying so many rows would take longer than adding all of them up.
                listed: Floats = np.einsum("bo,ro->br", counts, of.squares)[:, at]
            else:
                listed = np.einsum("bo,ro->br", counts, of.squares[at])
            return listed
        levels = np.stack([counts[:, lv.reports].sum(axis=1) for lv in self._levels], axis=1)
        uniform = np.einsum("bo,ro->br", levels, of.squares)
        near = totals.reshape(-1, *self._tree.extents)
        for axis, extent in enumerate(self._tree.extents, start=1):
            pairs = np.add.reduceat(near, np.arange(0, extent, 2), axis=axis)
            near = np.repeat(pairs, 2, axis=axis).take(np.arange(extent), axis=axis)
        near = np.clip(near.reshape(len(counts), -1), 0.0, counts.sum(axis=1)[:, None])
        mean = (of.squares * [level.share for level in self._levels]).sum(axis=1)
        rows = of.rows[at]
        moments: Floats = uniform[:, rows] + near[:, at] * (of.noisiest - mean)[rows]
        return moments

    @cached_property
    def singles(self) -> Singles:
        """The decoders of single values, listed up to 2^23 values times reports."""
        tree = self._tree
        if tree.size * tree.order > _MOST_LISTED:
            return self._by_level()
        step = max(1, _PART // tree.order)
        every = np.arange(tree.size)
        batches = [self._listed(every[first : first + step]) for first in every[::step].tolist()]
        return Singles(
            every, False, *(np.concatenate(column) for column in zip(*batches, strict=True))
        )

    def _own(self, values: Indices) -> Floats:
        indicators = np.zeros((len(values), self._tree.size))
        indicators[np.arange(len(values)), values] = 1.0
        return indicators

    def _listed(self, values: Indices) -> tuple[Floats, ...]:
        indicators = self._own(values)
        decoded = self.decode(indicators)
        squares = decoded**2
        moments = self.expect(squares)
        noise = np.stack([remove_rounding(*row) for row in zip(moments, indicators, strict=True)])
        ends = decoded.min(axis=1), decoded.max(axis=1), noise.min(axis=1), noise.max(axis=1)
        return squares, *ends

    def _by_level(self) -> Singles:
        """Return bounds of the extremes for large trees, whose tables would be too long.

        In each dimension the decoders of all values but the last are translations of one another.
        Over uniform reports of a level the mean of h^2 is `mean(w)^2 + v_j sum_v (p_j c_j[v])^2`,
        since any two points share equally many reports. For a user, the probability of a report
        differs from uniform by a factor between `order unlikely` and `order likely`.
        """
        tree = self._tree
        axes = [np.array([0, extent - 1]) for extent in tree.extents]
        corners = np.stack(np.meshgrid(*axes, indexing="ij")).reshape(len(axes), -1)
        centre, nodes = self._nodes(self._own(np.ravel_multi_index(tuple(corners), tree.extents)))
        reach, low, high = np.zeros((3, centre.size))
        squares = np.empty((centre.size, len(self._levels)))
        for place, (level, on_nodes) in enumerate(zip(self._levels, nodes, strict=True)):
            spread = level.noise * (on_nodes**2).sum(axis=1)
            squares[:, place] = centre**2 + spread
            most = np.abs(on_nodes).sum(axis=1) / 2.0 * level.step
            reach = np.maximum(reach, np.minimum(most, np.sqrt(level.order * spread)))
            mean = level.share * level.order * squares[:, place]
            low += level.unlikely * mean
            high += (level.unlikely + level.excess) * mean
        rows = np.zeros(tree.extents, dtype=np.int64)
        for axis, extent in enumerate(tree.extents):
            ends = (np.arange(extent) == extent - 1).astype(np.int64)
            rows = 2 * rows + ends.reshape([-1 if at == axis else 1 for at in range(rows.ndim)])
        quietest = np.maximum(low - 1.0, 0.0)
        return Singles(rows.ravel(), True, squares, centre - reach, centre + reach, quietest, high)
