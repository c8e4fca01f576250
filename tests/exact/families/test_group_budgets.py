"""Budgets of groups: test values of the theory, and every pair at every report by definition."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

from ldpstream.estimators.design.optimise import histogram, least_trace
from ldpstream.mechanisms import BlockPolicy, Blocks, CollectionSpec, HighLowPolicy, SpecError
from ldpstream.mechanisms.exact.dyadic import exp_bounds
from ldpstream.mechanisms.families.design.design import SymmetricDesign
from ldpstream.mechanisms.families.design.geometry_transform import Geometry
from ldpstream.mechanisms.families.design.incidence import hyperplanes
from ldpstream.mechanisms.families.groups.base import GroupMechanism
from ldpstream.mechanisms.families.groups.designs import GroupDesign
from ldpstream.mechanisms.families.groups.mechanism import (
    best_groups,
    of_designs,
)
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.policies.groups import GroupBudget, GroupPolicy
from tests.conformance.instances import GROUPS
from tests.exact.enumeration import matrix_of
from tests.exact.families.test_groups import total

WORD = 1 << 64
Pair = tuple[float, float]


def in_blocks(sizes: tuple[int, ...], *budgets: Pair) -> GroupPolicy:
    """Consecutive groups; one pair of budgets is that of all."""
    each = budgets if len(budgets) > 1 else budgets * len(sizes)
    blocks = Blocks(np.repeat(np.arange(len(sizes)), sizes))
    return GroupPolicy(blocks, tuple(GroupBudget(*one) for one in each))


def of_lists(values: int, sizes: tuple[int, ...], *budgets: Pair) -> GroupPolicy:
    """Lists of consecutive sensitive values; a further budget is that of all others."""
    ends = np.cumsum((0, *sizes)).tolist()
    lists = [frozenset(range(a, b)) for a, b in pairwise(ends)]
    return GroupPolicy.of_sensitive(values, lists, [GroupBudget(*one) for one in budgets])


def defined_rows(mechanism: GroupMechanism) -> list[list[Fraction]]:
    """The channel by the definition in docs/wire.md, from thresholds and orthogonality alone."""
    groups, thresholds = mechanism.groups, mechanism.thresholds
    supports: list[tuple[int, list[set[int]]]] = []
    for group, kind in enumerate(thresholds.kind_of.tolist()):
        design = thresholds.kinds[kind].design
        if design.geometry is not None:
            points = np.arange(design.geometry.points)
            each = [
                set(points[design.geometry.orthogonal(np.full(points.size, y), points)].tolist())
                for y in points
            ]
        else:
            each = [set(one) for one in combinations(range(design.size), design.chosen)]
        supports.append((group, each))
    blanket = [thresholds.kinds[kind].blanket for kind in thresholds.kind_of]
    tau = Fraction(thresholds.own, WORD)
    if any(blanket):
        blanket[blanket.index(max(blanket))] += WORD - sum(blanket)
    rows = []
    for group, place in zip(groups.of_value, groups.position, strict=True):
        row = []
        for other, each in supports:
            one = thresholds.kinds[thresholds.kind_of[other]]
            held = sum(place in y for y in each)
            for y in each:
                p = (1 - tau) * Fraction(blanket[other], WORD) / len(each)
                if other == group:
                    sigma = Fraction(one.supporting, WORD)
                    mine = place in y
                    p += tau * (sigma / held if mine else (1 - sigma) / (len(each) - held))
                row.append(p)
        rows.append(row)
    return rows


SMALL = {name: m for name, m in GROUPS.items() if m.size <= 14}


@pytest.mark.parametrize("mechanism", SMALL.values(), ids=SMALL.keys())
def test_every_pair_keeps_its_budget_at_every_report(mechanism: GroupMechanism):
    rows = defined_rows(mechanism)
    for row, found in zip(rows, mechanism.channel().rows, strict=True):
        assert {y: p for y, p in enumerate(row) if p} == found
    groups, budgets, place = mechanism.groups, mechanism.grouped.budgets, mechanism.grouped.place
    worst: dict[float, Fraction] = {}
    for x, row in enumerate(rows):
        own = budgets[place[groups.of_value[x]]]
        for z, other in enumerate(rows):
            epsilon = own.inside if groups.of_value[x] == groups.of_value[z] else own.outside
            if x == z or math.isinf(epsilon):
                continue
            allowed = exp_bounds(Fraction(repr(epsilon)))[0]
            assert all(p <= allowed * q for p, q in zip(row, other, strict=True))
            most = max(p / q for p, q in zip(row, other, strict=True) if p)
            worst[epsilon] = max(worst.get(epsilon, Fraction(0)), most)
    assert {float(epsilon): ratio for epsilon, ratio in mechanism.ratios.items()} == worst
    assert mechanism.certify().passed
    # One unit more is too much, unless it is the largest threshold.
    found = mechanism.thresholds
    if found.own < WORD - 1:
        more = replace(found, own=found.own + 1)
        ratios = zip(mechanism.kinds, map(more.ratios, range(len(found.kinds))), strict=True)
        assert any(
            epsilon is not None and ratio is not None and ratio > exp_bounds(epsilon)[0]
            for kind, pair in ratios
            for epsilon, ratio in zip((kind.inside, kind.outside), pair, strict=True)
        )


def test_a_larger_threshold_breaks_a_budget():
    """Which the proof by structure notices as well as the enumeration."""
    mechanism = best_groups(in_blocks((3, 3, 3), (1.0, 2.0)))
    more = mechanism.thresholds
    object.__setattr__(more, "own", more.own + (1 << 20))
    assert mechanism.channel().satisfies(mechanism.policy) is not None
    assert any(ratio > exp_bounds(epsilon)[0] for epsilon, ratio in mechanism.ratios.items())


@pytest.mark.parametrize(
    ("mechanism", "own", "supporting", "blanket", "noise"),
    [
        (
            of_designs(in_blocks((3, 3, 3), (1.0, 2.0)), GroupDesign(3)),
            0x859D144BF4D8D2F2,
            0xA6766DF48355C7B8,
            0x5555555555555555,
            {0: 3.270637, 1: 1.853367, 3: 0.629922},
        ),
        (
            of_designs(
                in_blocks((4, 2, 1), (0.5, 1.5)), GroupDesign(2), GroupDesign(4, 2), GroupDesign(1)
            ),
            0x7C7C7AFC89517A85,
            0xAB683DA18EF2CD46,
            0x5D3362970E70E638,
            {0: 13.674896, 1: 13.838979, 4: 3.908904},
        ),
        (
            of_designs(
                in_blocks((4, 3), (0.5, math.inf), (2.0, math.inf)),
                GroupDesign(4, 2),
                GroupDesign(3),
            ),
            WORD,
            0x9F597EA69A1C85F1,
            0,
            {0: 8.814821, 1: 9.314821, 4: 0.0},
        ),
        (
            of_designs(
                of_lists(9, (4,), (1.0, 1.0), (3.0, 3.0)), GroupDesign(4, 2), GroupDesign(5)
            ),
            0x6986C5F120C96ED3,
            WORD,
            0xD0F7700D5B6B5863,
            {0: 2.524076, 1: 2.893087, 4: 1.680121},
        ),
    ],
    ids=["nested", "nested sizes", "budgets", "two budgets"],
)
def test_thresholds_and_noise_are_those_of_the_theory(
    mechanism: GroupMechanism, own: int, supporting: int, blanket: int, noise: dict[int, float]
):
    group = mechanism.thresholds.kinds[mechanism.thresholds.kind_of[0]]
    assert (mechanism.thresholds.own, group.supporting, group.blanket) == (own, supporting, blanket)
    found = mechanism.decoder.noise(np.eye(mechanism.size)[0])
    assert found[list(noise)] == pytest.approx([*noise.values()], abs=6e-7)


@pytest.mark.parametrize(
    ("sizes", "budgets", "variance", "optimum"),
    [
        ((3, 3), (0.5, 1.0), 48.02580, 41.73789),
        ((3, 3), (0.5, 2.0), 29.05471, 29.05471),
        ((3, 3, 3), (0.5, 1.0), 86.77802, 65.64852),
        ((3, 3, 3), (1.0, 2.0), 10.75691, 10.75691),
        ((5, 3), (1.0, 2.0), 13.73763, 13.65239),
        ((4, 4, 4), (0.5, 3.0), 46.70772, 46.70772),
        ((2,) * 5, (0.5, 1.5), 39.66705, 36.66160),
        ((6, 6), (1.0, 1.5), 29.66807, 28.40525),
        ((20,) * 50, (1.0, 4.0), 433.143, 0.0),
        # Subsets have 9677.34; one budget of 1 for all pairs, which is allowed, has 3674.33.
        ((20,) * 50, (1.0, 2.0), 1.03 * 9677.34, 3674.33),
    ],
)
def test_nested_budgets_are_near_the_optimum(
    sizes: tuple[int, ...], budgets: Pair, variance: float, optimum: float
):
    found = total(best_groups(in_blocks(sizes, budgets)))
    assert optimum - 1e-5 <= found <= variance * (1 + 1e-5)


@pytest.mark.parametrize(
    ("sensitive", "plain", "low", "high", "ratio", "optimum"),
    [
        (3, 9, 0.5, 2.0, 1.143, 35.09),
        (3, 9, 1.0, 4.0, 1.002, 6.14),
        (10, 30, 1.0, 3.0, 1.058, 36.4),
    ],
)
def test_two_budgets_are_near_the_optimum(
    sensitive: int, plain: int, low: float, high: float, ratio: float, optimum: float
):
    policy = of_lists(sensitive + plain, (sensitive,), (low, low), (high, high))
    assert total(best_groups(policy)) <= 1.035 * ratio * optimum


class OtherPoints:
    """Points that are not orthogonal to a value support it."""

    def __init__(self, geometry: Geometry, size: int) -> None:
        self._inside, self._points = hyperplanes(geometry, size), np.arange(geometry.points)

    def supporting(self, place: int) -> np.ndarray:
        return np.setdiff1d(self._points, self._inside.supporting(place))

    def to_values(self, vectors: np.ndarray) -> np.ndarray:
        return vectors.sum(axis=-1, keepdims=True) - self._inside.to_values(vectors)

    def to_reports(self, vectors: np.ndarray) -> np.ndarray:
        return vectors.sum(axis=-1, keepdims=True) - self._inside.to_reports(vectors)


@dataclass(frozen=True)
class Complement(GroupDesign):
    """The design of these points."""

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        held, both = super().support
        return 1 - held, 1 - 2 * held + both

    def symmetric(self, threshold: int = WORD) -> SymmetricDesign:
        one = super().symmetric(threshold)
        both = one.order - 2 * one.inside + one.overlap
        return SymmetricDesign(one.order, one.outside, both, threshold)

    @property
    def incidence(self) -> OtherPoints:
        assert self.geometry is not None
        return OtherPoints(self.geometry, self.size)


@pytest.mark.parametrize(("size", "geometry"), [(7, (2, 3)), (9, (3, 3)), (13, (3, 3))])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_complements_of_geometries_have_no_less_variance(
    size: int, geometry: tuple[int, int], epsilon: float
):
    """Neither of few sensitive values, which have the largest blanket, nor of nested budgets."""
    for policy in (
        of_lists(size + 20, (size,), (epsilon, epsilon)),
        in_blocks((size, size), (epsilon, 2 * epsilon)),
    ):
        points = of_designs(policy, GroupDesign(size, 1, Geometry(*geometry)))
        others = of_designs(policy, Complement(size, 1, Geometry(*geometry)))
        assert np.allclose(matrix_of(others) @ decoders_of(others), np.eye(policy.size))
        assert total(others) >= total(points)


def decoders_of(mechanism: GroupMechanism) -> np.ndarray:
    """The decoders of all values, `(reports, values)`."""
    return np.stack([mechanism.decoder.decode(row) for row in np.eye(mechanism.size)], axis=1)


def test_a_budget_for_each_block_is_worth_it():
    """Of four blocks of 16 values, one needs a budget of .5, and three bear 2."""
    few = in_blocks((16,) * 4, (0.5, math.inf), *[(2.0, math.inf)] * 3)
    least = best_groups(in_blocks((16,) * 4, (0.5, math.inf)))
    assert total(best_groups(few)) == pytest.approx(61.798918, abs=1e-6)
    assert total(least) == pytest.approx(219.439474, abs=1e-6)
    assert total(best_groups(few)) <= 0.3 * total(least)
    assert least.policy == BlockPolicy(0.5, least.groups)
    alike = SubsetSelection(0.5, least.groups)
    assert total(least) == pytest.approx(total(alike), rel=1e-12)


@pytest.mark.parametrize(
    ("policy", "least"),
    [
        (in_blocks((16,) * 4, (0.5, math.inf), *[(2.0, math.inf)] * 3), 61.798918),
        (of_lists(12, (3,), (0.5, 0.5), (2.0, 2.0)), 35.051932),
        (of_lists(40, (10,), (1.0, 1.0), (3.0, 3.0)), 36.465587),
        (of_lists(20, (3, 5), (0.5, 0.5), (2.0, 2.0)), 28.733691),
    ],
    ids=["blocks", "two budgets", "more values", "two lists"],
)
def test_a_bound_for_all_channels_is_below(policy: GroupPolicy, least: float):
    """Of blocks with a budget each it is attained."""
    size = policy.size
    trace = least_trace(policy, histogram(size), np.full(size, 1.0 / size))
    assert trace is not None
    assert trace - 1 == pytest.approx(least, abs=1e-5)
    assert total(best_groups(policy)) >= trace - 1 - 1e-7


def test_policies_take_their_simplest_form():
    assert of_lists(7, (4,), (1.0, 1.0)).simplest == HighLowPolicy(1.0, 7, frozenset(range(4)))
    assert of_lists(7, (4, 2), (1.0, 1.0), (1.0, 1.0)).simplest == HighLowPolicy(
        1.0, 7, frozenset(range(6))
    )
    alone = in_blocks((3, 1), (1.0, math.inf), (9.0, math.inf))
    assert alone.simplest == BlockPolicy(1.0, alone.groups)
    assert alone.largest_loss() == 1
    nested = in_blocks((3, 2), (1.0, 2.0))
    assert nested.simplest is nested
    assert (nested.largest_loss(), nested.unprotected) == (2, None)
    assert nested.scaled(2) == in_blocks((3, 2), (2.0, 4.0))
    assert in_blocks((3, 2), (1.0, 2.0), (1.0, math.inf)).unprotected_pairs == 6


BLOCKS = {"domain": {"size": 6, "blocks": [[0, 1], [2, 3], [4, 5]]}}
LISTS = {"domain": {"size": 6}, "sensitive": [[0, 1], [2]]}


@pytest.mark.parametrize(
    ("keys", "path", "what"),
    [
        (
            BLOCKS | {"epsilon": [1.0, 2.0]},
            "epsilon",
            "a number, or 3 of them, one for each block (6 values in 3), got 2",
        ),
        (BLOCKS | {"epsilon": [1.0, 2.0, math.inf]}, "epsilon[2]", "a finite number above 0"),
        (BLOCKS | {"epsilon": 1.0, "share": 0.2}, "share", "no such key with blocks"),
        (BLOCKS | {"epsilon": 1.0, "epsilon_rest": 2.0}, "epsilon_rest", "no such key with blocks"),
        (
            BLOCKS | {"epsilon": 1.0, "epsilon_outside": [2.0, 0.5, 2.0]},
            "epsilon_outside[1]",
            "at least epsilon, which is 1 inside the group, got 0.5",
        ),
        (BLOCKS | {"epsilon": 1.0, "sensitive": [0]}, "domain.blocks", "no blocks"),
        (LISTS | {"epsilon": 1.0}, "sensitive", "one list of all values with the same epsilon"),
        (LISTS | {"epsilon": [1.0]}, "epsilon", "2 of them, one for each list"),
        (LISTS | {"epsilon": [1.0, 2.0], "sensitive": [[0], [0]]}, "sensitive", "each value in"),
        (
            LISTS | {"epsilon": [1.0, 2.0], "sensitive": [[0], [9]]},
            "sensitive[1][0]",
            "an integer in 0..5",
        ),
        (
            LISTS | {"epsilon": [1.0, 2.0], "epsilon_rest": 3.0, "share": 0.2},
            "share",
            "no such key with epsilon_rest",
        ),
        (
            LISTS | {"epsilon": 1.0, "sensitive": [*range(6)], "epsilon_rest": 2.0},
            "epsilon_rest",
            "no such key if all values are sensitive",
        ),
        (LISTS | {"epsilon": [1.0], "sensitive": [0]}, "epsilon", "one number with one list"),
        ({"domain": {"size": 3, "blocks": 1}, "epsilon": 1.0}, "domain.blocks", "two or more"),
        (
            LISTS
            | {"epsilon": [1.0, 2.0], "sensitive": [[0.0], [1.0]]}
            | {"domain": {"interval": [0, 1], "bins": 4, "rounding": "random"}},
            "domain.rounding",
            "a budget for each step",
        ),
    ],
)
def test_keys_that_contradict_are_refused(keys: dict, path: str, what: str, tmp_path: Path):
    with pytest.raises(SpecError) as caught:
        CollectionSpec.from_mapping("c", {"mechanism": "groups", **keys}, base=tmp_path)
    assert caught.value.path == f"collection.c.{path}"
    assert what in caught.value.expected


def test_a_list_may_hold_labels_of_a_grid(tmp_path: Path):
    keys = {"mechanism": "groups", "domain": {"grid": [3, 3]}, "epsilon": [1.0, 2.0]}
    lists = [[[0, 0], [1, 1]], [[2, 2]]]
    spec = CollectionSpec.from_mapping("c", {**keys, "sensitive": lists}, base=tmp_path)
    assert spec.mechanism.groups.of_value.tolist() == [0, 2, 3, 4, 0, 5, 6, 7, 1]
    single = CollectionSpec.from_mapping(
        "c", {**keys, "epsilon": 1.0, "sensitive": lists[0]}, base=tmp_path
    )
    assert single.mechanism.policy == HighLowPolicy(1.0, 9, frozenset({0, 4}))
