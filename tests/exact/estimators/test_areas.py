"""Areas that could be shown, their sums, and which of them are named."""

import numpy as np
import pytest

from ldpstream.estimators.areas.areas import NamedAreas, bound_areas, estimate_areas
from ldpstream.estimators.areas.tree import AreaTree, build_tree, prepare_tree
from ldpstream.estimators.estimate import estimate_sets
from ldpstream.mechanisms.domains.blocks import Blocks, box_blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from tests.exact.enumeration import counted

SHAPE = (7, 10)
SPOTTED = Blocks(np.arange(70) * 7 % 5 // 2)
"""Blocks that are not boxes."""
LOUD = np.concatenate([np.arange(7_000) % 70, np.full(4_000, 23)])
"""Values of a city with one loud place in the block of 35 values, and all else even."""


def boxes(epsilon: float = 1.0) -> BlockHadamard:
    return BlockHadamard(epsilon, box_blocks(SHAPE, (4, 5), "blocks"))


def inside(tree: AreaTree, area: int) -> set[int]:
    return set(tree.values(area).tolist())


@pytest.mark.parametrize("blocks", [box_blocks(SHAPE, (4, 5), "blocks"), SPOTTED, Blocks.one(70)])
def test_every_area_is_partitioned_by_those_below_it(blocks: Blocks) -> None:
    tree = build_tree(blocks.of_value, SHAPE, most=1_000)
    assert sorted(tree.order.tolist()) == list(range(70))
    roots = np.flatnonzero(tree.level == 0)
    assert [inside(tree, r) for r in roots] == [
        set(np.flatnonzero(blocks.of_value == b).tolist()) for b in range(blocks.count)
    ]
    for area in range(tree.start.size):
        below = range(area + 1, tree.last(area))
        assert all(inside(tree, one) < inside(tree, area) for one in below)
        singles = {int(tree.order[tree.start[o]]) for o in below if len(inside(tree, o)) == 1}
        assert singles == (inside(tree, area) if len(inside(tree, area)) > 1 else set())


def test_fewer_decoders_leave_out_levels_and_never_a_value() -> None:
    blocks = Blocks.one(70)
    sizes = [build_tree(blocks.of_value, SHAPE, most=most).start.size for most in (0, 4, 20, 500)]
    assert sizes[0] == 1 + 70
    assert sizes[1] == 1 + 4 + 70
    assert sizes == sorted(sizes)
    assert build_tree(blocks.of_value, None, most=500).start.size == 1 + 70


@pytest.mark.parametrize("blocks", [box_blocks(SHAPE, (4, 5), "blocks"), SPOTTED])
@pytest.mark.parametrize("estimand", ["respondents", "population"])
@pytest.mark.parametrize("method", ["normal", "exact"])
def test_areas_of_all_blocks_at_once_are_estimated_as_each_alone(
    blocks: Blocks, estimand: str, method: str
) -> None:
    """With proved bounds, from the counts of the reports of each area alone."""
    mechanism = BlockHadamard(1.0, blocks)
    statistic = counted(mechanism, np.arange(3_000) % 70)
    tree = prepare_tree(mechanism, SHAPE, ordered=True)
    options = {"estimand": estimand, "method": method}
    estimates = bound_areas(mechanism, statistic, 3_000, tree, **options)
    for level in range(int(tree.level.max()) + 1):
        places = np.flatnonzero(tree.level == level)
        levels = tree.levels + (estimand == "population")
        alone = estimate_sets(
            mechanism,
            statistic,
            3_000,
            [tree.values(place) for place in places],
            confidence=1.0 - 0.05 / levels,
            simultaneous=True,
            **options,
        )
        for name in ("value", "se", "low", "high", "lowest", "highest", "influence"):
            of_these = getattr(estimates, name)[places]
            np.testing.assert_allclose(of_these, getattr(alone, name), rtol=1e-9, atol=1e-12)
        assert estimates.form[places].tolist() == alone.form.tolist()
    assert ("e-value" in estimates.form) == (method == "exact")


def spot() -> tuple[BlockHadamard, AreaTree, NamedAreas]:
    """Return a mechanism, the tree of areas, and those that are shown of the loud place."""
    mechanism = boxes(3.0)
    tree = prepare_tree(mechanism, SHAPE, ordered=True)
    return mechanism, tree, estimate_areas(mechanism, counted(mechanism, LOUD), LOUD.size, tree)


def test_a_loud_place_is_named_and_what_is_left_is_even() -> None:
    mechanism, tree, found = spot()
    sets = [tree.values(place).tolist() for place in found.places]
    assert [23] in sets
    place = sets.index([23])
    assert found.estimate.low[place] <= 4_100 / 11_000 <= found.estimate.high[place]
    root = int(np.flatnonzero((found.inside == -1) & [23 in one for one in sets])[0])
    assert found.rest_size[root] < len(sets[root])
    assert found.rest_low[root] <= found.rest[root] <= found.rest_high[root]
    blocks = mechanism.decoder.groups()
    assert blocks is not None
    # Districts are exact among respondents.
    roots = found.inside == -1
    assert (found.estimate.form[roots] == "known").all()
    np.testing.assert_array_equal(found.estimate.low[roots], found.estimate.high[roots])


def test_rests_and_what_is_named_add_up() -> None:
    _, tree, found = spot()
    for entry, whole in enumerate(found.estimate.value):
        named = np.flatnonzero(found.inside == entry)
        assert found.rest[entry] + found.estimate.value[named].sum() == pytest.approx(whole)
        sizes = tree.end - tree.start
        size = sizes[found.places[entry]]
        assert found.rest_size[entry] + sizes[found.places[named]].sum() == size


def test_undivided_areas_are_shown_whole() -> None:
    mechanism, tree, _ = spot()
    whole = np.zeros(4, dtype=np.bool_)
    statistic = counted(mechanism, LOUD)
    none = estimate_areas(mechanism, statistic, LOUD.size, tree, divided=whole)
    assert none.places.size == 4


def test_without_reports_districts_have_no_numbers() -> None:
    mechanism = boxes()
    tree = prepare_tree(mechanism, SHAPE, ordered=True)
    found = estimate_areas(mechanism, mechanism.empty(), 0, tree)
    assert found.places.size == 4
    assert np.isnan(found.estimate.value).all()


def test_labels_are_named_or_in_the_rest() -> None:
    mechanism = BlockHadamard(3.0, Blocks.one(200))
    values = np.concatenate([np.arange(4_000) % 200, np.full(3_000, 7), np.full(2_000, 90)])
    tree = prepare_tree(mechanism, (200,), ordered=False)
    found = estimate_areas(mechanism, counted(mechanism, values), values.size, tree)
    named = [tree.values(place).tolist() for place in found.places[1:]]
    assert named == [[7], [90]]
    assert (found.family, found.levels) == (201, 1)
    assert found.rest_size[0] == 198
