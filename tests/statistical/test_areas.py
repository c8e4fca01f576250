"""All bounds of areas cover the truth together, and their picture is nearer to it than others.

Seeds are fixed. With other seeds the coverage falls short with probability below 1e-6 as long as
the true one is 0.993.
"""

from functools import cache

import numpy as np
import pytest
from benchmarks.accuracy.repeated import privatized

from ldpstream.estimators.areas.areas import NamedAreas, estimate_areas
from ldpstream.estimators.areas.tree import AreaTree, prepare_tree
from ldpstream.estimators.bounds.options import Estimand, Method
from ldpstream.mechanisms.domains.blocks import box_blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from tests.soak import chosen

SHAPE = (16, 32)
WINDOWS = chosen(80, soak=200)
LEAST = chosen(0.9, soak=0.95)
REPORTS = 12_000
MECHANISM = BlockHadamard(3.0, box_blocks(SHAPE, (8, 8), "blocks"))
SLACK = 1e-12


@cache
def city() -> np.ndarray:
    """Return shares of places: denser in the middle, with six spots."""
    rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]]
    dense = np.exp(-(((rows - 8) / 5) ** 2) - ((columns - 16) / 9) ** 2) + 0.05
    for row, column in ((2, 3), (5, 20), (9, 9), (12, 27), (13, 13), (6, 14)):
        dense[row : row + 2, column : column + 2] += 4.0
    return (dense / dense.sum()).ravel()


@cache
def even() -> np.ndarray:
    """Return shares that are even in every block."""
    blocks = MECHANISM.decoder.groups()
    assert blocks is not None
    of_block = np.linspace(1.0, 3.0, 8)
    return of_block[blocks] / of_block[blocks].sum()


def picture(tree: AreaTree, found: NamedAreas) -> np.ndarray:
    """Return the share of every place as it is painted."""
    painted = np.zeros(MECHANISM.size)
    for entry, place in enumerate(found.places):
        size = found.rest_size[entry]
        painted[tree.values(place)] = found.rest[entry] / size if size else 0.0
    return painted


def holds(tree: AreaTree, found: NamedAreas, truth: np.ndarray) -> bool:
    """Return whether all shown bounds cover the truth: of areas, and of the rest inside them."""
    shares = np.array([truth[tree.values(place)].sum() for place in found.places])
    rests = shares.copy()
    inside = found.inside >= 0
    np.subtract.at(rests, found.inside[inside], shares[inside])
    low, high = found.estimate.low, found.estimate.high
    whole = (low - SLACK <= shares) & (shares <= high + SLACK)
    rest = (found.rest_low - SLACK <= rests) & (rests <= found.rest_high + SLACK)
    return bool((whole & rest).all())


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """Return the total variation distance."""
    return float(np.abs(one - other).sum()) / 2.0


@pytest.mark.soak
@pytest.mark.parametrize(
    ("method", "estimand", "windows"),
    [("normal", "respondents", WINDOWS), ("padded", "population", WINDOWS // 4)],
)
def test_all_bounds_hold_together_and_the_picture_is_nearer(
    method: Method, estimand: Estimand, windows: int
) -> None:
    counts = np.random.default_rng(7).multinomial(REPORTS, city(), windows)
    tree = prepare_tree(MECHANISM, SHAPE, ordered=True)
    covered, distances = 0, []
    blocks = MECHANISM.decoder.groups()
    assert blocks is not None
    for count, statistic in zip(counts, privatized(MECHANISM, counts, 3), strict=True):
        options = {"method": method, "estimand": estimand}
        found = estimate_areas(MECHANISM, statistic, REPORTS, tree, **options)
        truth = count / REPORTS if estimand == "respondents" else city()
        covered += holds(tree, found, truth)
        flat = (np.bincount(blocks, count) / np.bincount(blocks) / REPORTS)[blocks]
        cells = MECHANISM.decoder.totals(statistic) / REPORTS
        distances.append([distance(one, truth) for one in (picture(tree, found), flat, cells)])
    ours, of_blocks, of_cells = np.mean(distances, axis=0)
    assert covered >= LEAST * windows
    assert ours < 0.8 * of_blocks
    assert ours < 0.5 * of_cells


def test_hardly_any_area_is_shown_where_blocks_are_even() -> None:
    counts = np.random.default_rng(8).multinomial(REPORTS, even(), 100)
    tree = prepare_tree(MECHANISM, SHAPE, ordered=True)
    invented = 0
    for statistic in privatized(MECHANISM, counts, 4):
        found = estimate_areas(MECHANISM, statistic, REPORTS, tree, method="normal")
        invented += found.places.size > 8
    # Respondents are not exactly even: some areas stand out truly.
    assert invented <= 5
