"""Projected shares: nearest points, and shares that agree with the order of values."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ldpstream.agents.cli.terminal.tables import describe_bounds
from ldpstream.agents.config import ConfigError
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.build import build_document
from ldpstream.estimators.projection import (
    known_totals,
    project_blocks,
    project_down,
    project_simplex,
)
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.quantiles.quantiles import monotone_shares
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.domains.queries import Linear, Range
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.groups.high_low import HighLow
from tests.exact.enumeration import accumulated
from tests.property.documents import LINE, answer, collection, totals, written

TREE: dict[str, Any] = {"mechanism": "tree", "epsilon": 1.0, "domain": {"size": 40}}
BLOCKED = {**TREE, "domain": {"size": 40, "blocks": 9}}
MAP = {**TREE, "domain": {"grid": [5, 9]}, "workload": "levels"}
ASKED: dict[str, Any] = {
    "top": None,
    "ranges": (Range("low", ((0, 12),)), Range("some", ((7, 30),))),
    "quantiles": (0.1, 0.5, 0.9),
    "linear": (Linear("index", np.arange(40.0)),),
}


def children(box: tuple[tuple[int, int], ...], width: int) -> list[tuple[tuple[int, int], ...]]:
    """The parts of a box `(first, after)` of places that begin at multiples of `width`."""
    axes = [
        [(at, min(at + width, after)) for at in range(first, after, width)] for first, after in box
    ]
    return list(product(*axes))


def nearest(wanted: np.ndarray, total: float) -> np.ndarray:
    """The nearest shares >= 0 with a sum, by trying every set of shares that are not 0."""
    if wanted.size == 2:
        half = np.clip((wanted[0] - wanted[1]) / 2, -total / 2, total / 2)
        return total / 2 + np.array([half, -half])
    found, least = np.zeros_like(wanted), np.inf
    for kept in product([False, True], repeat=wanted.size):
        some = np.array(kept)
        if not some.any():
            continue
        moved = np.where(some, wanted - (wanted[some].sum() - total) / some.sum(), 0.0)
        if (moved >= -1e-15).all() and (distance := ((moved - wanted) ** 2).sum()) < least:
            found, least = moved, distance
    return found


def by_recursion(table: np.ndarray, total: float) -> np.ndarray:
    out = np.zeros_like(table)

    def descend(box: tuple[tuple[int, int], ...], width: int, share: float) -> None:
        if width == 0:
            out[tuple(first for first, _ in box)] = share
            return
        parts = children(box, width)
        sums = [table[tuple(slice(*ends) for ends in part)].sum() for part in parts]
        for part, own in zip(parts, nearest(np.array(sums), share), strict=True):
            descend(part, width // 2, float(own))

    widest = 1 << (max(table.shape) - 1).bit_length()
    descend(tuple((0, extent) for extent in table.shape), widest // 2, total)
    return out


SHAPES = [(1,), (2,), (5,), (16,), (33,), (4, 4), (3, 5), (2, 9), (3, 2, 5)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("total", [1.0, 0.3, 0.0])
def test_each_node_divides_its_share_among_its_children(shape: tuple[int, ...], total: float):
    generator = np.random.default_rng(len(shape))
    for _ in range(8):
        table = generator.normal(0.1, 0.3, shape)
        places = np.stack(np.unravel_index(np.arange(table.size), shape))
        one = np.zeros(table.size, dtype=np.int64)
        found = project_down(table.ravel(), places, one, np.array([total]))
        np.testing.assert_allclose(found, by_recursion(table, total).ravel(), atol=1e-12)


@given(hnp.arrays(np.float64, 40, elements=st.floats(-2, 2)), st.integers(1, 40))
def test_blocks_are_divided_one_by_one(shares: np.ndarray, length: int):
    blocks = Blocks(np.arange(40) // length)
    sizes = blocks.sizes / 40
    found = project_down(shares, blocks.position[None], blocks.of_value, sizes)
    assert (found >= 0.0).all()
    np.testing.assert_allclose(np.bincount(blocks.of_value, found), sizes, atol=1e-12)
    for block in range(blocks.count):
        alone = by_recursion(shares[blocks.of_value == block], sizes[block])
        np.testing.assert_allclose(found[blocks.of_value == block], alone, atol=1e-12)


@pytest.mark.parametrize("table", [TREE, BLOCKED, MAP], ids=["line", "blocks", "map"])
def test_a_tree_publishes_shares_in_order_with_the_bounds_of_the_unbiased_ones(
    table: dict[str, Any],
):
    config = collection(table)
    assert config.options.project == "ordered"
    some = totals(config, 500)
    own = {**ASKED, "quantiles": ()} if table is MAP else ASKED
    if table is MAP:
        box = Range("box", ((1, 3), (2, 8)))
        own |= {"ranges": (box,), "linear": (Linear("index", np.arange(45.0)),)}
    ordered, raw = (answer(config, some, **own, project=one) for one in ("ordered", "none"))
    shares = np.array([entry["share"] for entry in ordered["distribution"]])
    assert (shares >= 0.0).all()
    assert shares.sum() == pytest.approx(1.0)
    assert min(entry["share"] for entry in raw["distribution"]) < 0.0
    for name in ("distribution", "ranges", "linear"):
        for one, other in zip(ordered[name], raw[name], strict=True):
            for kept in ("se", "low", "high", "influence", "forged", "bound"):
                assert one[kept] == other[kept]
    domain = np.arange(config.spec.domain.size).reshape(config.spec.domain.shape)
    for asked, entry in zip(own["ranges"], ordered["ranges"], strict=True):
        within = tuple(slice(first, last + 1) for first, last in asked.bounds)
        assert entry["share"] == pytest.approx(shares[domain[within].ravel()].sum())
    assert ordered["linear"][0]["mean"] == pytest.approx(shares @ np.arange(shares.size))
    for quantile in ordered["quantiles"]:
        first = int(np.searchsorted(np.cumsum(shares), quantile["p"]))
        assert quantile["value"] == min(max(first, quantile["low"]), quantile["high"])
    entries = [*ordered["distribution"], *ordered["ranges"]]
    outside = sum(not one["low"] <= one["share"] <= one["high"] for one in entries)
    assert ordered["outside"] == outside
    assert "outside" not in raw


def test_points_outside_their_bounds_are_counted_and_said():
    """Half of the bounds at 10% miss the unbiased share; the projection leaves more."""
    config = collection(TREE)
    options = EstimateOptions(top=None, project="ordered", confidence=0.1)
    document = build_document(config, totals(config, 500), window=None, final=True, options=options)
    assert document.outside
    said = describe_bounds(document, together=False)
    shares = f"{document.outside} shares outside of bounds"
    assert f"; shares projected (ordered), bounds not: slightly biased, {shares}" in said


@pytest.mark.parametrize("estimand", ["respondents", "population"])
@pytest.mark.parametrize(
    "table",
    [LINE, {**LINE, "domain": {"size": 20, "blocks": 6}}, {**LINE, "mechanism": "l1-geometric"}],
    ids=["line", "blocks", "metric"],
)
def test_without_a_tree_shares_are_the_steps_of_the_monotone_curve(
    table: dict[str, Any], estimand: Any
):
    config = collection(table)
    assert config.options.project == "none"
    given = totals(config, 400)
    asked: dict[str, Any] = {"top": None, "quantiles": (0.1, 0.5), "estimand": estimand}
    ordered, raw = (answer(config, given, **asked, project=one) for one in ("ordered", "none"))
    shares = np.array([entry["share"] for entry in ordered["distribution"]])
    prefixes = Prefixes.of(config.spec.mechanism).estimate(
        given.statistic, given.n, estimand=estimand
    )
    np.testing.assert_array_equal(shares, monotone_shares(prefixes))
    assert (shares >= 0.0).all()
    assert shares.sum() == pytest.approx(1.0)
    assert ordered["quantiles"] == raw["quantiles"]


@pytest.mark.parametrize("table", [TREE, MAP, LINE], ids=["line", "map", "curve"])
def test_no_reports_have_no_shares(table: dict[str, Any]):
    config = collection(table)
    document = answer(config, totals(config, 0), project="ordered", top=None)
    assert {entry["share"] for entry in document["distribution"]} == {None}
    assert document["outside"] == 0


def test_the_unbiased_shares_are_there_by_name():
    assert collection(TREE, project="none").options.project == "none"
    assert collection(LINE, project="ordered").options.project == "ordered"
    raw = collection(TREE, project="none")
    given = totals(raw, 500)
    document = written(build_document(raw, given, window=None, final=True))
    assert document["projection"] == "none"
    assert min(entry["share"] for entry in answer(raw, given, top=None)["distribution"]) < 0.0


def test_attributes_of_records_have_their_own_default():
    domain = {
        "attributes": {
            "age": {"mechanism": "tree", "epsilon": 1.0, "size": 20},
            "kind": {"mechanism": "randomized-response", "epsilon": 1.0, "values": ["a", "b"]},
        }
    }
    table = {"mechanism": "sampled", "domain": domain}
    options = collection(table).options
    assert [options.about(name).project for name in ("age", "kind")] == ["ordered", "none"]
    publish = {"attributes": {"age": {"quantiles": [0.5]}}}
    options = collection(table, publish=publish).options
    assert (options.about("age").project, options.about("age").quantiles) == ("ordered", (0.5,))
    options = collection(table, project="none").options
    assert options.about("age").project == "none"


def test_values_without_one_order_are_refused():
    for domain in ({"values": ["a", "b", "c"]}, {"grid": [4, 5]}):
        table = {"mechanism": "randomized-response", "epsilon": 1.0, "domain": domain}
        said = "simplex or another, got ordered, which is for one ordered dimension"
        with pytest.raises(ConfigError, match=f"collection.c.project: expected {said}"):
            collection(table, project="ordered")
    large = {"mechanism": "projective-geometry", "epsilon": 1.0, "domain": {"size": 5_000}}
    with pytest.raises(ConfigError, match=r"collection\.c\.project: expected at most 4,096 values"):
        collection(large, project="ordered")
    assert collection({**TREE, "domain": {"size": 5_000}}).options.project == "ordered"


MECHANISMS = [
    Binary(1.0, 2.0),
    HighLow(1.0, 5, frozenset({0, 3})),
    BlockHadamard(1.0, Blocks(np.array([0, 1, 0, 2, 2, 2]))),
]
shares = hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(-3, 3))


def is_nearest(values: np.ndarray, projected: np.ndarray, total: float) -> bool:
    """The conditions of Karush, Kuhn and Tucker: necessary and sufficient for this problem."""
    assert (projected >= 0).all()
    assert projected.sum() == pytest.approx(total, abs=1e-9)
    shifts = values - projected
    used = projected > 1e-9
    if not used.any():
        return True
    threshold = shifts[used].mean()
    return bool(
        np.allclose(shifts[used], threshold, atol=1e-8)
        and (shifts[~used] <= threshold + 1e-8).all()
    )


@given(shares)
def test_the_simplex_projection_is_the_nearest_point(values: np.ndarray):
    assert is_nearest(values, project_simplex(values), 1.0)


@given(shares, st.data())
def test_each_block_is_projected_onto_its_own_total(values: np.ndarray, data: st.DataObject):
    groups = np.array(
        data.draw(st.lists(st.integers(0, 4), min_size=values.size, max_size=values.size))
    )
    totals = np.array(data.draw(st.lists(st.floats(0, 1), min_size=5, max_size=5)))
    projected = project_blocks(values, groups, totals)
    for group in np.unique(groups):
        members = groups == group
        assert is_nearest(values[members], projected[members], totals[group])


def test_what_cannot_be_projected_is_refused_or_undefined():
    assert np.isnan(project_simplex(np.array([0.5, np.nan]))).all()
    assert np.isnan(project_blocks(np.ones(2), np.array([0, 1]), np.array([1.0, np.nan]))).all()
    with pytest.raises(ValueError, match="totals"):
        project_blocks(np.ones(2), np.array([0, 0]), np.array([-1.0]))
    with pytest.raises(ValueError, match="groups"):
        project_blocks(np.ones(2), np.array([0, 2]), np.array([0.5, 0.5]))


def test_known_totals_are_the_blocks_shares_or_one():
    mechanism = MECHANISMS[2]
    reports = mechanism.privatize(np.array([0, 0, 1, 3, 4, 5, 5, 5]))
    statistic = accumulated(mechanism, reports)
    groups, totals = known_totals(mechanism, statistic, 8)
    np.testing.assert_array_equal(totals, [2 / 8, 1 / 8, 5 / 8])
    np.testing.assert_array_equal(groups, [0, 1, 0, 2, 2, 2])
    groups, totals = known_totals(MECHANISMS[1], np.bincount([0, 1], minlength=7), 2)
    np.testing.assert_array_equal(totals, [1.0])
    assert not groups.any()
