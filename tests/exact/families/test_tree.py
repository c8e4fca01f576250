"""Levels of a tree: their workload, probabilities, channels, decoders, and what is refused."""

from itertools import product
from math import exp
from pathlib import Path

import numpy as np
import pytest

from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.mechanisms import Blocks, CollectionSpec, SpecError
from ldpstream.mechanisms.domains.blocks import box_blocks
from ldpstream.mechanisms.exact.dyadic import budget, set_threshold
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.design.design import SymmetricDesign
from ldpstream.mechanisms.families.tree.hierarchy import (
    Hierarchy,
    HierarchyLevel,
    NodeChannel,
    choose_channel,
    equal_probabilities,
    level_probabilities,
)
from ldpstream.mechanisms.families.tree.hierarchy_decoder import HierarchyDecoder
from ldpstream.mechanisms.families.tree.tree import Tree
from ldpstream.mechanisms.families.tree.workload import Box, height, mean_squares
from tests.exact.enumeration import boxes

LINES = (2, 3, 5, 8, 13, 16, 17)


def indicator(extents: tuple[int, ...], box: Box) -> np.ndarray:
    out = np.zeros(extents)
    out[tuple(slice(first, last + 1) for first, last in box)] = 1.0
    return out


def parts(weights: np.ndarray) -> np.ndarray:
    """The squares of all parts of a query, straight from their definition."""
    ends = [(0, (1 << height(extent)) - extent) for extent in weights.shape]
    table = np.pad(weights, ends, mode="edge")
    heights = [height(extent) for extent in weights.shape]
    out = np.empty([most + 1 for most in heights])
    for depths in np.ndindex(*out.shape):
        part = table
        for axis, depth in enumerate(depths):
            means = [node_means(part, axis, d) for d in (depth, depth - 1) if d >= 0]
            part = means[0] - means[1] if depth else means[0]
        out[depths] = (part**2).sum()
    return out


def node_means(table: np.ndarray, axis: int, depth: int) -> np.ndarray:
    moved = np.moveaxis(table, axis, -1)
    nodes = moved.reshape(*moved.shape[:-1], 1 << depth, -1)
    means = np.broadcast_to(nodes.mean(axis=-1, keepdims=True), nodes.shape)
    return np.moveaxis(means.reshape(moved.shape), -1, axis)


@pytest.mark.grid
@pytest.mark.parametrize("extents", [*((k,) for k in LINES), (3, 5), (2, 3, 4)])
def test_workloads_are_the_means_of_their_queries(extents: tuple[int, ...]):
    every = [tuple(box) for box in boxes(extents)]
    squares = {box: parts(indicator(extents, box)) for box in every}
    ranges = np.mean(list(squares.values()), axis=0)
    np.testing.assert_allclose(mean_squares("ranges", extents), ranges, atol=1e-12)
    prefixes = np.mean([squares[b] for b in every if not any(i for i, _ in b)], axis=0)
    np.testing.assert_allclose(mean_squares("prefixes", extents), prefixes, atol=1e-12)
    some = tuple(every[:: max(1, len(every) // 5)])
    own = np.mean([squares[box] for box in some], axis=0)
    np.testing.assert_allclose(mean_squares(some, extents), own, atol=1e-12)


def test_probabilities_minimise_the_workloads_error():
    norms, precisions = mean_squares("ranges", (64,)), np.zeros(7)
    for j in range(1, 7):
        precisions[j] = 2 ** (6 - j) / choose_channel(budget(1.0), 2**j).contrast_noise

    def error(shares: np.ndarray) -> float:
        return float((norms[1:] / np.cumsum((shares * precisions)[::-1])[::-1][1:]).sum())

    units = level_probabilities(norms, precisions)
    assert sum(units) == WORD
    assert all(unit % (WORD >> 20) == 0 for unit in units)
    shares = np.array(units) / WORD
    # No neighbour has a smaller error; this one is that of n = 20,000.
    assert np.sqrt(error(shares) / 20_000) == pytest.approx(0.0307, abs=5e-5)
    for i, j in product(range(2, 7), repeat=2):
        moved = shares.copy()
        moved[i] += 0.003
        moved[j] -= 0.003
        assert error(moved) >= error(shares) * (1 - 1e-6)


def test_a_level_is_reported_with_the_least_noise_of_a_contrast():
    for nodes, epsilon in product((2, 4, 8, 64, 1024), (0.5, 1.0, 3.0)):
        channel = choose_channel(budget(epsilon), nodes)
        design, e = channel.design, exp(epsilon)
        K, d = design.order, design.inside
        assert nodes <= K <= 4 * nodes
        formula = (K - 1) * (d * e + K - d) ** 2 / (K * d * (K - d) * (e - 1) ** 2)
        assert float(channel.contrast_noise) == pytest.approx(formula, rel=1e-12)
        plain = (nodes - 1) * (e + nodes - 1) ** 2 / (nodes * (nodes - 1) * (e - 1) ** 2)
        assert formula <= plain * (1 + 1e-12)
        assert (channel.geometry is None) == (d == 1)
        assert channel.geometry is None or channel.geometry.dimension >= 3
    assert choose_channel(budget(1.0), 1024).design.order == 1093


def test_variances_of_uniform_data_are_those_that_probabilities_minimise():
    """Exact where all levels are randomised response: then points are nodes."""
    tree = Tree(4.0, Blocks.one(8))
    (hierarchy,) = tree.layout.trees
    assert all(level.channel.geometry is None for level in hierarchy.levels)
    lambdas = np.zeros(4)
    for level in hierarchy.levels:
        (depth,) = level.depths
        precision = (8 >> depth) / float(level.channel.contrast_noise)
        lambdas[: depth + 1] += level.probability / WORD * precision
    sets = [np.arange(i, j + 1) for i in range(8) for j in range(i, 8)]
    found = predicted_set_variances(tree, sets, estimand="population")
    for members, variance in zip(sets, found, strict=True):
        squares = parts(indicator((8,), ((members[0], members[-1]),)))
        assert variance == pytest.approx((squares / lambdas)[1:].sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("nodes", "inside", "overlap", "noise"),
    [
        (2, 1, 0, 2.341347),
        (4, 1, 0, 2.768741),
        (13, 4, 1, 3.429881),
        (40, 13, 4, 3.656030),
        (121, 40, 13, 3.731985),
    ],
)
def test_contrasts_have_the_noise_of_their_design(
    nodes: int, inside: int, overlap: int, noise: float
):
    threshold = set_threshold(budget(1.0), inside, nodes - inside)
    channel = NodeChannel(nodes, SymmetricDesign(nodes, inside, overlap, threshold), None)
    assert float(channel.contrast_noise) == pytest.approx(noise, abs=5e-7)


def test_equal_levels_have_the_noise_of_their_precisions():
    """Randomised response over 16 values at epsilon 1, all four levels alike."""
    every = range(1, 5)
    designs = [
        SymmetricDesign(1 << j, 1, 0, set_threshold(budget(1.0), 1, (1 << j) - 1)) for j in every
    ]
    channels = [NodeChannel(design.order, design, None) for design in designs]
    starts = np.cumsum([0, *(design.order for design in designs)]).tolist()
    levels = (
        HierarchyLevel((j,), unit, channel, start)
        for j, unit, channel, start in zip(
            every, equal_probabilities(4), channels, starts[:-1], strict=True
        )
    )
    tree = Hierarchy((16,), tuple(levels))
    tree.check()
    precisions = [(16 >> j) / float(channels[j - 1].contrast_noise) / 4 for j in every]
    lambdas = np.cumsum(precisions[::-1])[::-1]
    np.testing.assert_allclose(lambdas, [1.378049, 0.523840, 0.162665, 0.037619], atol=5e-7)
    squares = [parts(indicator((16,), ((0, cut),)))[1:] for cut in range(15)]
    # Variances over uniform data; what is left without the sampling of users is noise.
    variances = np.array([(square / lambdas).sum() for square in squares])
    weights = np.tri(16)[:15]
    noise = variances - weights.mean(axis=1) * (1.0 - weights.mean(axis=1))
    assert noise[7] == pytest.approx(2.652655, abs=5e-7)
    assert noise.mean() == pytest.approx(11.810641, abs=5e-7)
    decoder = HierarchyDecoder(tree)
    moments = decoder.expect(decoder.decode(weights) ** 2)
    np.testing.assert_allclose((moments - weights).mean(axis=1), noise, rtol=1e-9)


@pytest.mark.parametrize("extents", [(2,), (13,), (5, 3), (16, 2, 5)])
def test_levels_are_equally_likely_squares(extents: tuple[int, ...]):
    tree = Hierarchy.of(budget(1.0), extents, "levels")
    tree.check()
    heights = [height(extent) for extent in extents]
    assert len(tree.levels) == max(heights)
    for number, level in enumerate(reversed(tree.levels)):
        assert level.depths == tuple(max(0, most - number) for most in heights)
        assert abs(level.probability * len(tree.levels) - WORD) < WORD >> 15
    assert sum(level.probability for level in tree.levels) == WORD


@pytest.mark.parametrize("extents", [(2,), (13,), (37,), (3, 5), (4, 2, 3)])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_bounds_of_large_trees_hold(extents: tuple[int, ...], epsilon: float):
    tree = Hierarchy.of(budget(epsilon), extents, "ranges")
    decoder = HierarchyDecoder(tree)
    listed, bounded = decoder.singles, decoder._by_level()
    assert not listed.by_level
    assert bounded.by_level
    at, slack = bounded.rows, 1e-9
    assert (bounded.least[at] <= listed.least + slack).all()
    assert (bounded.largest[at] >= listed.largest - slack).all()
    assert (bounded.quietest[at] <= listed.quietest + slack).all()
    assert (bounded.noisiest[at] >= listed.noisiest - slack).all()
    # Of uniform reports the mean of the square is exact.
    for place, level in enumerate(tree.levels):
        mean = listed.squares[:, level.reports].mean(axis=1)
        np.testing.assert_allclose(bounded.squares[at, place], mean, rtol=1e-9)


def test_second_moments_of_large_trees_are_near_those_that_are_listed():
    tree = Hierarchy.of(budget(1.0), (64,), "ranges")
    listed, large = HierarchyDecoder(tree), HierarchyDecoder(tree)
    large.__dict__["singles"] = large._by_level()
    mechanism = Tree(1.0, Blocks.one(64))
    rng = np.random.default_rng(3)
    for shares in (np.full(64, 1 / 64), np.eye(64)[20], 0.5 ** np.arange(1, 65)):
        values = rng.choice(64, 20_000, p=shares / shares.sum())
        counts = np.bincount(mechanism.privatize(values), minlength=tree.order)[None]
        totals = large.totals(counts)
        ratio = np.divide(
            *(each.second_moments(counts, totals, slice(None)) for each in (large, listed))
        )
        assert ratio.min() > 0.85
        assert ratio.max() < 1.7


@pytest.mark.grid
@pytest.mark.parametrize("dimensions", [(), (5, 13)])
def test_the_proof_by_structure_gives_the_channels_own_ratio(dimensions: tuple[int, ...]):
    tree = Tree(3.0, Blocks.one(65), dimensions)
    certificate = tree.certify()
    assert (certificate.proof, certificate.passed) == ("structure", True)
    (ratio,) = tree.channel().worst_ratios(tree.policy).values()
    assert certificate.losses[0].ratio == ratio


def test_the_proof_by_structure_checks_the_levels():
    tree = Tree(1.0, Blocks.one(100))
    assert tree.certify().proof == "structure"
    (hierarchy,) = tree.layout.trees
    for field, other in (("probability", 5), ("start", 7)):
        broken = Tree(1.0, Blocks.one(100))
        level = hierarchy.levels[1]
        changed = type(level)(**{**vars(level), field: other})
        broken.layout.trees = (Hierarchy(hierarchy.extents, (hierarchy.levels[0], changed)),)
        with pytest.raises(ValueError, match="proof"):
            broken.certify()


def collection(**keys: object) -> CollectionSpec:
    table = {"mechanism": "tree", "epsilon": 1.0, "domain": {"size": 12}, **keys}
    return CollectionSpec.from_mapping("c", table, base=Path())


def test_a_workload_of_ones_own_gives_other_probabilities():
    plain, prefixes = collection(), collection(workload="prefixes")
    own, levels = collection(workload=[[0, 3], [4, 11]]), collection(workload="levels")
    assert len({spec.fingerprint for spec in (plain, prefixes, own, levels)}) == 4
    assert plain.fingerprint == collection(workload="ranges").fingerprint
    grid = {"domain": {"grid": [3, 4]}}
    assert collection(**grid, workload=[[[0, 1], [2, 3]]]).mechanism.outputs > 12
    # The whole domain needs no report: all levels are as good.
    everything = collection(workload=[[0, 11]]).mechanism
    assert isinstance(everything, Tree)
    assert len(everything.layout.trees[0].levels) == 4


@pytest.mark.parametrize(
    ("keys", "path", "expected"),
    [
        ({"workload": "values"}, "workload", '"ranges", "prefixes" or "levels"'),
        ({"workload": []}, "workload", "a list of at most"),
        ({"workload": [[0, 12]]}, "workload[0]", "0 <= first <= last <= 11"),
        ({"workload": [[0, 3], [5, 4]]}, "workload[1]", "got 5 and 4"),
        ({"workload": [[0, 3, 4]]}, "workload[0]", "got a list of 3"),
        ({"domain": {"grid": [3, 4]}, "workload": [[0, 3]]}, "workload[0]", "[first, last]"),
        ({"domain": {"grid": [3, 4]}, "workload": [[[0, 3]]]}, "workload[0]", "2 pairs"),
        ({"domain": {"size": 12, "blocks": 4}, "workload": [[0, 3]]}, "workload", "ranges"),
        ({"domain": {"grid": [6, 9], "blocks": [4, 6]}}, "domain.blocks", "blocks of one shape"),
        ({"domain": {"values": ["a", "b", "c"]}}, "domain", "an ordered domain"),
        ({"domain": {"sizes": [257, 129, 129]}}, "domain", "fewer values"),
        ({"domain": {"sizes": [2] * 12}}, "domain", "fewer dimensions"),
        ({"epsilon": 1e-25}, "epsilon", "a larger number"),
        ({"sensitive": [1]}, "sensitive", "no such key with tree"),
    ],
)
def test_impossible_keys_are_refused(keys: dict[str, object], path: str, expected: str):
    with pytest.raises(SpecError) as caught:
        collection(**keys)
    assert caught.value.path == f"collection.c.{path}"
    assert expected in caught.value.expected


IN_BOXES = Tree(1.3, box_blocks((5, 6), (2, 3), "blocks"), (5, 6))
"""Blocks of 2 x 3 cells, and two of 1 x 3 at the lower edge."""


def test_each_block_of_several_is_a_tree_in_its_own_dimensions():
    assert [tree.extents for tree in IN_BOXES.layout.trees] == [(3,), (2, 3)]
    assert IN_BOXES.certify().passed
    alone = Tree(1.3, Blocks.one(6), (2, 3))
    rows, columns = IN_BOXES.coordinates
    grid = np.arange(30).reshape(5, 6)
    for block in (grid[0:2, 0:3], grid[2:4, 3:6]):
        # Ranges of the block have the noise that they have in a tree of this block alone.
        for weights in ([1, 1, 0, 1, 1, 0], [0, 1, 1, 0, 0, 0]):
            wide = np.zeros(30)
            wide[block.ravel()] = weights
            noise = IN_BOXES.decoder.noise(wide)
            expected = alone.decoder.noise(np.array(weights, dtype=np.float64))
            assert noise[block.ravel()] == pytest.approx(expected, abs=1e-12)
            assert np.delete(noise, block.ravel()).max() == 0.0
        assert rows[block].tolist() == [[0, 0, 0], [1, 1, 1]]
        assert columns[block].tolist() == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize(
    ("blocks", "dimensions", "message"),
    [
        (Blocks(np.array([0, 0, 1, 1, 1, 0])), (2, 3), "boxes of the domain"),
        (box_blocks((6, 9), (4, 6), "blocks"), (6, 9), "got 12 values as 4 x 3 and as 2 x 6"),
    ],
)
def test_blocks_in_dimensions_are_boxes_of_one_shape(
    blocks: Blocks, dimensions: tuple[int, ...], message: str
):
    with pytest.raises(SpecError, match=message):
        Tree(1.0, blocks, dimensions)
