"""The test region of two values ([CA] Theorem 1 and Figure 1): vertices, channels, infinities."""

import math
from fractions import Fraction
from itertools import pairwise

import pytest

from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.channels.error_region import ErrorRegion, channel_boundary
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from tests.conformance.instances import INSTANCES

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
    assert everything.vertices() == ((1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0))
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
