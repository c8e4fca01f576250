"""Pyramids: an array for each level of a tree, with sums and means up and down the tree.

A pyramid maps the depths of each level to an array `(b, 2^d_1, 2^d_2, ..)`: b functions that are
constant on its nodes. Each sweep goes along one dimension after the other.
"""

from collections.abc import Iterator

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.families.tree.hierarchy import Depths

Pyramid = dict[Depths, Floats]


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
    for upper, lower, axis in reversed(list(_downward(heights))):
        pyramid[upper] = pyramid[upper] + np.repeat(pyramid[lower], 2, axis=axis)


def add_from_below(pyramid: Pyramid, heights: Depths) -> None:
    """Add to each level the means over its nodes of all levels that are nowhere coarser."""
    for upper, lower, axis in _downward(heights):
        pyramid[lower] = pyramid[lower] + _halved(pyramid[upper], axis)


def _downward(heights: Depths) -> Iterator[tuple[Depths, Depths, int]]:
    """Yield each level, the next coarser one along an axis, and that axis of its array.

    Goes axis by axis from the finest level on, so that a sweep uses a level before changing it.
    """
    for axis, most in enumerate(heights):
        for depth in range(most, 0, -1):
            others = (*heights[:axis], 0, *heights[axis + 1 :])
            for place in np.ndindex(*(other + 1 for other in others)):
                upper = (*place[:axis], depth, *place[axis + 1 :])
                lower = (*place[:axis], depth - 1, *place[axis + 1 :])
                yield upper, lower, axis + 1


def _halved(array: Floats, axis: int) -> Floats:
    """Return the means of neighbouring pairs along an axis."""
    shape = array.shape
    pairs = array.reshape(*shape[:axis], shape[axis] // 2, 2, *shape[axis + 1 :])
    first, second = np.moveaxis(pairs, axis + 1, 0)
    halved: Floats = (first + second) * 0.5
    return halved
