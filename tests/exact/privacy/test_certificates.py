"""Exact channels name the worst breach of a policy, and both kinds of proof agree."""

import dataclasses
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.channels.error_region import ErrorRegion, channel_boundary
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block import mechanism as block_mechanism
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.groups import base as group_base
from ldpstream.mechanisms.families.groups.base import GroupMechanism
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.families.l1 import geometric as l1_geometric
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy
from tests.conformance.instances import INSTANCES

STRUCTURED = {
    name: m
    for name, m in INSTANCES.items()
    if m.size <= 64 and isinstance(m, GroupMechanism | BlockHadamard | L1Geometric)
}


def one_unit_more(mechanism: HighLow | BlockHadamard) -> HighLow | BlockHadamard:
    """The same mechanism with its sign's probability one unit of 2^-64 too large."""
    broken = dataclasses.replace(mechanism)
    vars(broken)["threshold"] = mechanism.threshold + 1
    return broken


@pytest.mark.parametrize(
    "mechanism",
    [
        HighLow(1.0, 9, frozenset({1, 3, 4})),
        HighLow(2.0, 100, frozenset({5})),
        BlockHadamard(0.5, Blocks(np.array([0, 1, 1, 2, 2, 2]))),
        BlockHadamard(3.0, Blocks.one(100)),
    ],
    ids=["high-low", "high-low-structure", "block-hadamard", "block-hadamard-structure"],
)
def test_one_unit_of_probability_too_much_fails(mechanism: HighLow | BlockHadamard):
    assert mechanism.certify().passed
    certificate = one_unit_more(mechanism).certify()
    assert not certificate.passed
    assert certificate.to_json()["pass"] is False
    assert certificate.violation is not None
    if mechanism.size <= 64:
        assert "at output" in certificate.violation


def test_one_unit_of_probability_too_much_fails_for_two_values():
    broken = Binary(1.0, 2.0)
    q, r = broken.thresholds
    vars(broken)["thresholds"] = (q, r + 1)
    violation = broken.channel().satisfies(broken.policy)
    assert violation is not None
    assert (violation.value, violation.other, violation.output) == (0, 1, 0)
    assert violation.ratio == Fraction(WORD - q, WORD - r - 1)
    assert not broken.certify().passed


@pytest.mark.parametrize("mechanism", STRUCTURED.values(), ids=STRUCTURED.keys())
def test_the_proof_by_structure_equals_the_enumeration(
    mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch
):
    enumerated = mechanism.certify()
    for module in (block_mechanism, group_base, l1_geometric):
        monkeypatch.setattr(module, "ENUMERATION_LIMIT", 0)
    structured = mechanism.certify()
    assert (enumerated.proof, structured.proof) == ("enumeration", "structure")
    assert dataclasses.replace(structured, proof="enumeration") == enumerated


@pytest.mark.parametrize("table", ["row", "offset", "mask", "orders"])
def test_the_proof_by_structure_checks_the_tables_that_draw(table: str):
    mechanism = BlockHadamard(1.0, Blocks(np.arange(200) // 30))
    broken = getattr(mechanism.layout, table).copy()
    broken[3] = broken[4] + (table == "orders")
    setattr(mechanism.layout, table, broken)
    if table in {"offset", "mask"}:
        broken[3] += 1
    with pytest.raises(ValueError, match="tables"):
        mechanism.certify()


def test_the_proof_by_structure_refuses_a_row_beyond_its_block():
    mechanism = BlockHadamard(1.0, Blocks(np.arange(200) // 30))
    assert mechanism.certify().passed
    # The last value's row would be that of no other, but of a larger matrix.
    mechanism.layout.row[-1] = mechanism.layout.mask[-1] + 1
    with pytest.raises(ValueError, match="tables"):
        mechanism.certify()


def test_the_proof_by_structure_checks_the_rows_of_high_low():
    mechanism = HighLow(1.0, 200, frozenset(range(50)))
    mechanism.groups.position[3] = mechanism.groups.position[4]
    with pytest.raises(ValueError, match="tables"):
        mechanism.certify()


def test_a_large_channel_is_not_enumerated_but_certified():
    for mechanism in (
        BlockHadamard(1.0, Blocks.one(5000)),
        HighLow(1.0, 5000, frozenset(range(2500))),
        L1Geometric(1.0, (5000,)),
    ):
        with pytest.raises(ValueError, match="too large"):
            mechanism.channel()
        assert mechanism.certify().passed


def test_a_loss_beyond_all_floats_is_still_named():
    """The farthest of 33 values differ by a ratio of 2^2048."""
    mechanism = L1Geometric(50.0, (33,))
    violation = mechanism.channel().satisfies(BlockPolicy(40.0, Blocks.one(33)))
    assert violation is not None
    assert {violation.value, violation.other} == {0, 32}
    assert f"loss {32 * 64 * math.log(2):.6g} above the budget 40" in str(violation)


@pytest.mark.parametrize("shape", [(65,), (10**7,), (3000, 3000), (20, 20, 20, 1)])
def test_any_size_is_certified_by_structure(shape: tuple[int, ...]):
    mechanism = L1Geometric(0.01, shape)
    certificate = mechanism.certify()
    assert (certificate.passed, certificate.proof) == (True, "structure")
    assert certificate.losses[0].ratio == Fraction(WORD, mechanism.threshold)
    assert certificate.to_json()["policy"]["diameter"] == sum(m - 1 for m in shape)


HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({0: HALF, 1: THIRD}, r"^row 1: expected probabilities that sum to 1, got a sum of 5/6$"),
        ({0: 3 * HALF, 1: -HALF}, r"^row 1: expected probabilities above 0, got -1/2 at output 1$"),
        ({0: Fraction(1), 1: Fraction(0)}, r"^row 1: expected probabilities above 0, got 0 at "),
        ({0: HALF, 2: HALF}, r"^row 1: expected outputs in 0\.\.1$"),
        ({}, r"^row 1: expected probabilities that sum to 1, got a sum of 0$"),
    ],
)
def test_a_row_that_is_not_a_distribution_is_named(row: dict[int, Fraction], message: str):
    with pytest.raises(ValueError, match=message):
        Channel(({0: HALF, 1: HALF}, row), 2)


def test_a_policy_over_other_values_is_refused():
    channel = Channel(({0: HALF, 1: HALF}, {0: HALF, 1: HALF}), 2)
    with pytest.raises(ValueError, match="expected a policy of 2 values, got 3"):
        channel.satisfies(MatrixPolicy.of([[0, 1, 1], [1, 0, 1], [1, 1, 0]]))


def test_the_worst_pair_and_output_of_an_asymmetric_policy_are_named():
    rows = (
        {0: Fraction(6, 10), 1: Fraction(2, 10), 2: Fraction(2, 10)},
        {0: Fraction(3, 10), 1: Fraction(4, 10), 2: Fraction(3, 10)},
        {0: Fraction(3, 10), 1: Fraction(3, 10), 2: Fraction(4, 10)},
    )
    channel = Channel(rows, 3)
    log2 = Fraction(7, 10)  # just above log 2 = 0.6931
    kept = [[0, log2, log2], [log2, 0, 0.5], [log2, 0.5, 0]]
    assert channel.satisfies(MatrixPolicy.of(kept)) is None
    broken = MatrixPolicy.of([[0, log2, math.inf], [0.6, 0, 0.5], [log2, 0.1, 0]])
    violation = channel.satisfies(broken)
    assert violation is not None
    # From 2 to 1 at output 2, log(4/3) - 0.1 = 0.188, is worse than from 1 to 0, log 2 - 0.6.
    assert (violation.value, violation.other, violation.output) == (2, 1, 2)
    assert (violation.ratio, violation.budget) == (Fraction(4, 3), Fraction(1, 10))
    assert "values 2 and 1 at output 2: loss 0.287682 above the budget 0.1" in str(violation)


PAIRS = [(1.0, 1.0), (0.5, 2.0), (3.0, 0.1), (30.0, 40.0), (800.0, 900.0), (1e-9, 1e-9)]


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_both_bounds_are_tight_in_the_corner(a: float, b: float):
    false_alarm, missed = ErrorRegion(Fraction(a), Fraction(b)).corner()
    if max(a, b) < 700:
        assert false_alarm + math.exp(b) * missed == pytest.approx(1)
        assert math.exp(a) * false_alarm + missed == pytest.approx(1)
        whole = math.expm1(a + b)
        assert false_alarm == pytest.approx(math.expm1(b) / whole)
        assert missed == pytest.approx(math.expm1(a) / whole)
    assert 0 <= false_alarm <= 1
    assert 0 <= missed <= 1


def test_an_infinite_budget_opens_the_region_to_its_corner():
    one = Fraction(1)
    mangat = ErrorRegion(None, one)
    assert mangat.corner() == pytest.approx((0.0, math.exp(-1)))
    assert ErrorRegion(one, None).corner() == pytest.approx((math.exp(-1), 0.0))
    everything = ErrorRegion(None, None)
    assert everything.corner() == (0.0, 0.0)
    assert everything.contains((Fraction(0), Fraction(0)))
    assert not mangat.contains((Fraction(0), Fraction(1, 3)))
    assert mangat.contains((Fraction(0), Fraction(1, 2)))
    # The opposite test: what it calls x, this one calls x'.
    assert not mangat.contains((Fraction(1), Fraction(2, 3)))


def test_without_any_budget_only_guessing_is_left():
    nothing = ErrorRegion(Fraction(0), Fraction(0))
    assert nothing.corner() == (0.5, 0.5)
    third = Fraction(1, 3)
    assert nothing.contains((third, 1 - third))
    assert not nothing.contains((third, third))
    assert ErrorRegion(Fraction(0), Fraction(1)).corner() == (1.0, 0.0)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.5, 2.0), (math.inf, 1.0), (0.25, math.inf)])
def test_the_best_channel_of_two_values_fills_its_region(a: float, b: float):
    mechanism = Binary(a, b)
    boundary = channel_boundary(mechanism.channel(), 0, 1)
    region = ErrorRegion.of(mechanism.policy, 0, 1)
    assert region.first_outside(boundary) is None
    assert (boundary[0], boundary[-1]) == ((0, 1), (1, 0))
    found = [tuple(map(float, errors)) for errors in boundary[1:-1]] or [(0.0, 1.0)]
    assert any(errors == pytest.approx(region.corner(), abs=1e-15) for errors in found)


@pytest.mark.parametrize("name", ["high-low:some", "l1-geometric:line", "block-hadamard:unequal"])
def test_every_pair_of_a_mechanism_stays_inside(name: str):
    mechanism = INSTANCES[name]
    channel = mechanism.channel()
    for x, z in mechanism.policy.pairs():
        boundary = channel_boundary(channel, x, z)
        assert ErrorRegion.of(mechanism.policy, x, z).first_outside(boundary) is None
        alarms, missed = zip(*boundary, strict=True)
        assert list(alarms) == sorted(alarms)
        assert list(missed) == sorted(missed, reverse=True)
        slopes = [(m - n) / (b - a) for (a, m), (b, n) in pairwise(boundary) if b > a]
        assert slopes == sorted(slopes, reverse=True)


def test_a_broken_channel_leaves_the_region_and_the_test_is_named():
    third, two = Fraction(1, 3), Fraction(2, 3)
    channel = Channel(({0: two, 1: third}, {0: third, 1: two}), 2)
    policy = MatrixPolicy.of([[0, 0.6], [0.7, 0]])
    region = ErrorRegion.of(policy, 0, 1)
    boundary = channel_boundary(channel, 0, 1)
    assert boundary == ((0, 1), (third, third), (1, 0))
    assert region.first_outside(boundary) == (third, third)
    assert channel.satisfies(policy) is not None
    assert (
        ErrorRegion.of(MatrixPolicy.of([[0, 0.7], [0.7, 0]]), 0, 1).first_outside(boundary) is None
    )
