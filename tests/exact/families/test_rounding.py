"""Rounding at random protects real numbers by exactly epsilon times their distance."""

import math
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.mechanisms import CollectionSpec, SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.domains.axis import Axis, Numbers, decimal_of
from ldpstream.mechanisms.domains.interval import round_at_random
from ldpstream.mechanisms.domains.parse import Interval, RoundedInterval
from ldpstream.mechanisms.exact.dyadic import budget, exp_bounds
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from tests.exact.enumeration import Scripted
from tests.seeded import SeededEntropy

CHANNELS = Path(__file__).parents[2] / "vectors" / "channels"


def spec(epsilon: float, domain: dict, mechanism: str = "l1-geometric") -> CollectionSpec:
    table = {"mechanism": mechanism, "epsilon": epsilon, "domain": domain}
    return CollectionSpec.from_mapping("t", table, base=Path())


def rounded(channel: Channel, position: Fraction) -> list[Fraction]:
    """The probabilities of all reports of a number at a position on the grid."""
    below = min(int(position), channel.size - 2)
    share = position - below
    rows = channel.rows[below], channel.rows[below + 1]
    return [(1 - share) * rows[0][y] + share * rows[1][y] for y in range(channel.outputs)]


@pytest.mark.parametrize(
    ("point", "low", "high", "steps"),
    [(0.3, 0.0, 1.0, 1), (7.0, 0.0, 9.0, 4), (-1e-9, -3.0, 0.1, 7), (2.5, 0.0, 100.0, 64)],
)
def test_the_chance_is_exact_to_the_last_word(point: float, low: float, high: float, steps: int):
    axis = Axis(low, high, steps)
    position = axis.position(decimal_of(point))
    below = int(position)
    digits, rest = [], position - below
    while rest and len(digits) < 3:
        rest *= WORD
        digits.append(int(rest))
        rest -= int(rest)
    for place, digit in enumerate(digits):
        # Beside the digit, and as far from it as floats decide.
        for off, up in product((1, 1 << 40), (0, 1)):
            word = digit - off if up else digit + off
            if not 0 <= word < WORD:
                continue
            script = Scripted(digits[:place], [word])
            out = round_at_random(script, Numbers(np.array([point])), axis)
            assert out.tolist() == [below + up]
            assert not script.left


@given(st.lists(st.floats(-5.0, 11.0), min_size=1, max_size=20), st.integers(0, 2**32))
def test_numbers_go_to_one_of_the_two_points_beside_them(points: list[float], seed: int):
    axis = Axis(-5.0, 11.0, 7)
    out = round_at_random(SeededEntropy(seed), Numbers(np.array(points)), axis)
    for point, index in zip(points, out.tolist(), strict=True):
        assert abs(index - axis.position(decimal_of(point))) < 1


@pytest.mark.grid
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_any_two_numbers_are_protected_by_their_distance(epsilon: float):
    mechanism = spec(epsilon, {"interval": [0.0, 4.0], "bins": 4, "rounding": "random"}).mechanism
    channel = mechanism.channel()
    positions = [Fraction(i, 6) for i in range(25)] + [Fraction(2) + Fraction(1, 10**6)]
    rows = [rounded(channel, position) for position in positions]
    for u, first in zip(positions, rows, strict=True):
        for v, second in zip(positions, rows, strict=True):
            bound = exp_bounds(budget(epsilon) * abs(u - v))[0]
            assert all(p <= bound * q for p, q in zip(first, second, strict=True))


def test_the_loss_is_tight_and_a_whole_budget_a_step_would_exceed_it():
    epsilon, near = 1.0, Fraction(1, 10**6)
    exact = spec(epsilon, {"interval": [0.0, 4.0], "bins": 4, "rounding": "random"}).mechanism
    naive = L1Geometric(epsilon, (5,))

    def loss(mechanism: L1Geometric) -> float:
        """The loss of two near numbers, as a multiple of their distance."""
        channel = mechanism.channel()
        pairs = [(Fraction(2), 2 + near), (3 - near, Fraction(3))]
        ratios = [
            max(p / q, q / p)
            for u, v in pairs
            for p, q in zip(rounded(channel, u), rounded(channel, v), strict=True)
        ]
        return math.log1p(float(max(ratios) - 1)) / float(near)

    assert loss(exact) == pytest.approx(epsilon, rel=1e-5)
    assert loss(exact) <= epsilon
    assert loss(naive) == pytest.approx(math.e - 1, rel=1e-5)


def test_plain_bins_lose_a_whole_step_across_an_edge_and_say_so():
    domain = Interval(((0.0, 4.0),), (4,))
    assert domain.index([1.999999, 2.0]).tolist() == [1, 2]
    plain = spec(1.0, {"interval": [0.0, 4.0], "bins": 4}).mechanism
    assert "neighbours on the two sides" in plain.policy.describe()["guarantee"]
    random = spec(1.0, {"interval": [0.0, 4.0], "bins": 4, "rounding": "random"}).mechanism
    assert "(e^epsilon - 1)/width * |u - v|" in random.policy.describe()["guarantee"]
    assert random.policy.describe()["epsilon"] == pytest.approx(math.log(2.0), abs=1e-15)
    assert float(random.policy.step) <= math.log(2.0)


def test_two_dimensions_are_rounded_each_on_its_own():
    domain = {"interval": [[0.0, 1.0], [0.0, 10.0]], "bins": [2, 5], "rounding": "random"}
    made = spec(0.5, domain)
    assert made.domain.shape == (3, 6)
    assert made.domain.label(7) == [0.5, 2.0]
    seen = set(made.domain.place([[0.25, 3.0]] * 200, entropy=SeededEntropy(1)).tolist())
    # Each of four corners has probability 1/4: one is missed with probability 4 * 0.75^200.
    assert seen == {1, 2, 7, 8}
    assert made.domain.place_columns([["0.5", "2"]], entropy=SeededEntropy(1)).tolist() == [7]
    frame = made.frame([[0.2, 9.9]], entropy=SeededEntropy(3))
    assert len(frame) == len(made.frame([[0.9, 0.1]], entropy=SeededEntropy(4)))


def test_numbers_outside_are_refused_by_position_alone():
    domain = RoundedInterval(Interval(((0.0, 1.0),), (4,)))
    for bad in (1.5, -1.0, math.nan, "x", None):
        with pytest.raises(ValueOutsideDomainError) as caught:
            domain.place([0.5, bad], entropy=SeededEntropy(1))
        assert caught.value.position == 1
        assert caught.value.expected == "a number in [0, 1]"


def test_refusals_give_the_ends_of_an_interval_to_the_last_digit():
    """Six digits would say [1.7e+09, 1.70009e+09]."""
    day = Interval(((1_700_000_000.0, 1_700_086_400.5),), (24,))
    assert day.expected == "a number in [1700000000, 1700086400.5]"
    assert RoundedInterval(day).expected == day.expected


@pytest.mark.parametrize(
    ("domain", "path"),
    [
        ({"size": 5, "rounding": "random"}, "rounding"),
        ({"interval": [0.0, 1.0], "bins": 4, "rounding": "nearest"}, "rounding"),
        ({"interval": [0.0, 1.0], "bins": 4, "rounding": True}, "rounding"),
        ({"interval": [0.0, 1.0], "bins": 10_000_000, "rounding": "random"}, "bins"),
    ],
)
def test_impossible_roundings_are_refused(domain: dict, path: str):
    with pytest.raises(SpecError) as caught:
        spec(1.0, domain)
    assert caught.value.path == f"collection.t.domain.{path}"


@pytest.mark.parametrize("epsilon", [1e-70, 1e-80, 5e-324])
def test_a_budget_that_drowns_every_number_is_refused(epsilon: float):
    with pytest.raises(SpecError, match="epsilon: expected a number of at least 1e-18"):
        spec(epsilon, {"interval": [0.0, 1.0], "bins": 4, "rounding": "random"})


def test_only_budgets_for_each_step_make_sense_of_it():
    domain = {"interval": [0.0, 1.0], "bins": 4, "rounding": "random"}
    with pytest.raises(SpecError) as caught:
        spec(1.0, domain, "block-hadamard")
    assert caught.value.path == "collection.t.domain.rounding"
    table = {"mechanism": "optimal", "channel": "line.json", "domain": {**domain, "bins": 5}}
    with pytest.raises(SpecError) as caught:
        CollectionSpec.from_mapping("t", table, base=CHANNELS)
    assert caught.value.path == "collection.t.domain.rounding"


def test_widths_are_never_above_the_exact_ones():
    """What is promised goes by numbers a width apart, as it is shown: a wider one is too much."""
    rng = np.random.default_rng(5)
    for _ in range(500):
        low, length = rng.normal(size=2) * 10.0 ** rng.integers(-3, 4, size=2)
        bounds = float(low), float(low + abs(length) + 1e-3)
        domain = Interval((bounds,), (int(rng.integers(2, 40)),))
        exact = (decimal_of(bounds[1]) - decimal_of(bounds[0])) / domain.bins[0]
        for found in (domain, RoundedInterval(domain)):
            width = Fraction(repr(found.widths[0]))
            assert exact * (1 - Fraction(1, 2**51)) <= width <= exact
    assert Interval(((0.0, 1.0),), (10,)).widths == (0.1,)
