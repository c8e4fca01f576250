"""What a report loses in sums of many: the stated (epsilon, delta) against brute force.

Brute force takes all data of the other devices, and all histograms of reports.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from ldpstream.mechanisms.channels import amplified as room
from ldpstream.mechanisms.channels.amplified import amplified, delta_above
from ldpstream.mechanisms.channels.blanket import (
    Blanket,
    any_channel,
    blankets_by_enumeration,
    of_supports,
)
from ldpstream.mechanisms.exact.dyadic import exp_bounds
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.exact.enumeration import matrix_of

COUNTS = (1, 3, 100, 2_000)
DELTAS = (1e-10, 1e-8, 1e-4)
WORDS = {"values": ["a", "b", "c"]}
FOUR = {"values": ["a", "b", "c", "d"]}
PAIRS = {"size": 4, "blocks": 2}


def mechanism(name: str, domain: object, **keys: object) -> Mechanism:
    table = {"mechanism": name, "domain": domain, **keys}
    return CollectionSpec.from_mapping("published", table, base=Path()).mechanism


# Each with the values that others may have: of one block.
CASES = {
    "randomized response": (mechanism("randomized-response", WORDS, epsilon=2.0), (0, 1, 2), 9),
    "subset selection": (mechanism("subset-selection", FOUR, epsilon=0.5), (0, 1, 2, 3), 5),
    "a block": (mechanism("block-hadamard", PAIRS, epsilon=1.0), (0, 1), 9),
    "high-low": (
        mechanism("high-low", WORDS, epsilon=1.0, sensitive=["a", "b"]),
        (0, 1, 2),
        7,
    ),
    "one prior": (
        mechanism("lip", {"values": ["no", "yes"]}, epsilon=1.0, prior=0.3),
        (0, 1),
        9,
    ),
    "steps": (mechanism("l1-geometric", {"size": 3}, epsilon=0.7), (0, 1, 2), 9),
    "two budgets": (mechanism("binary", {"values": ["no", "yes"]}, epsilon=[0.5, 2.0]), (0, 1), 9),
}


def histograms(rows: np.ndarray, others: tuple[int, ...], n: int) -> Iterator[np.ndarray]:
    """Yield the chances of all histograms of n - 1 reports, for all data of the others."""
    for data in combinations_with_replacement(others, n - 1):
        chances = np.ones((1,) * (rows.shape[1] - 1))
        for value in data:
            chances = one_more(chances, rows[value])
        yield chances


def one_more(chances: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Add a report: histograms by the counts of all outputs but the last."""
    grown = np.zeros(tuple(side + 1 for side in chances.shape))
    inside = tuple(slice(0, side) for side in chances.shape)
    grown[inside] += row[-1] * chances
    for output, p in enumerate(row[:-1]):
        shifted = [slice(0, side) for side in chances.shape]
        shifted[output] = slice(1, chances.shape[output] + 1)
        grown[tuple(shifted)] += p * chances
    return grown


def true_delta(
    rows: np.ndarray, pair: tuple[int, int], others: tuple[int, ...], n: int, epsilon: float
) -> float:
    worst = 0.0
    for chances in histograms(rows, others, n):
        first, second = (one_more(chances, rows[value]) for value in pair)
        for one, other in ((first, second), (second, first)):
            worst = max(worst, float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum()))
    return worst


def rows_within(one: Mechanism, values: tuple[int, ...]) -> np.ndarray:
    rows = matrix_of(one)
    # What no value of the block gives is left out.
    return rows[:, rows[list(values)].any(axis=0)]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_no_delta_is_larger_than_stated(name: str, share: float):
    one, values, most = CASES[name]
    rows = rows_within(one, values)
    ((budget, blankets),) = one.blankets().items()
    epsilon = share * float(budget)
    bounds = [*blankets]
    if all(blanket.ratio is not None for blanket in blankets):
        bounds.append(any_channel(max(blanket.ratio or 0 for blanket in blankets)))
    for n in {2, (most + 2) // 2, most}:
        stated = [delta_above(blanket, epsilon=epsilon, reports=n) for blanket in bounds]
        true = true_delta(rows, (0, 1), values, n, epsilon)
        assert true <= max(stated[: len(blankets)])
        assert true <= max(stated[len(blankets) :], default=1.0)


def test_the_loss_stated_for_few_reports_is_true_and_smaller_than_of_one():
    one, values, most = CASES["randomized response"]
    ((budget, blankets),) = one.blankets().items()
    found = amplified(blankets, budget=budget, reports=most, delta=0.05)
    assert found.epsilon < 0.8 * float(budget)
    assert true_delta(rows_within(one, values), (0, 1), values, most, found.epsilon) <= 0.05


def blanket_delta(blanket: Blanket, epsilon: float, n: int) -> Fraction:
    """The blanket bound in one direction, from below: `e^epsilon` is rounded up."""
    factor = exp_bounds(Fraction(epsilon))[1]
    masses = [(mass, first - factor * second) for mass, first, second in blanket.atoms]
    sums = {Fraction(0): Fraction(1)}
    rest = 1 - sum(mass for mass, _ in masses)
    for _ in range(n):
        grown: dict[Fraction, Fraction] = {}
        for at, chance in sums.items():
            for mass, value in [*masses, (rest, Fraction(0))]:
                grown[at + value] = grown.get(at + value, Fraction(0)) + chance * mass
        sums = grown
    return sum((chance * at for at, chance in sums.items() if at > 0), Fraction(0)) / n


EXACT = [
    (of_supports(Fraction(3), Fraction(1, 2), Fraction(1, 4)), 0.3, 8),
    (of_supports(Fraction(7), Fraction(1, 2), Fraction(1, 4)), 1.5, 6),
    (of_supports(Fraction(20), Fraction(1, 5), Fraction(0)), 1.0, 7),
    (any_channel(Fraction(2)), 0.5, 20),
    (any_channel(Fraction(50)), 0.01, 10),
    (any_channel(Fraction(3)), 0.0, 1),
]


def optimistic(check: Callable[[Blanket, float, int], float]) -> list[int]:
    """The cases that are stated below the blanket bound in exact arithmetic."""
    return [
        number
        for number, (blanket, epsilon, n) in enumerate(EXACT)
        if Fraction(check(blanket, epsilon, n)) < blanket_delta(blanket, epsilon, n)
    ]


def stated(blanket: Blanket, epsilon: float, n: int) -> float:
    return delta_above(blanket, epsilon=epsilon, reports=n)


def test_the_bound_is_rounded_outward_and_by_little():
    assert optimistic(stated) == []
    for blanket, epsilon, n in EXACT:
        exact = float(blanket_delta(blanket, epsilon, n))
        assert stated(blanket, epsilon, n) <= 1.1 * exact + 1e-12


def test_rounding_inward_is_caught(monkeypatch: pytest.MonkeyPatch):
    def inward(masses: np.ndarray, scaled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.floor(scaled).astype(np.int64), masses

    monkeypatch.setattr(room, "_split", inward)
    assert len(optimistic(stated)) >= len(EXACT) // 2


def test_errors_of_the_transform_are_added(monkeypatch: pytest.MonkeyPatch):
    power = room._power

    def worse(numbers: np.ndarray, n: int) -> np.ndarray:
        return power(numbers, n) * (1 - n * 2.0**-52)

    monkeypatch.setattr(room, "_power", worse)
    assert optimistic(stated) == []


def test_more_reports_and_a_larger_delta_hide_more():
    blanket = of_supports(Fraction(math.e), Fraction(1, 2), Fraction(1, 4))
    epsilon = {
        (n, delta): amplified([blanket], budget=Fraction(1), reports=n, delta=delta).epsilon
        for n in COUNTS
        for delta in DELTAS
    }
    for delta in DELTAS:
        losses = [epsilon[n, delta] for n in COUNTS]
        assert all(more <= less * 1.002 for less, more in pairwise(losses))
    for n in COUNTS:
        losses = [epsilon[n, delta] for delta in DELTAS]
        assert all(more <= less * 1.002 for less, more in pairwise(losses))
    assert epsilon[1, 1e-8] == 1.0


def test_numbers_of_the_theory():
    """Shares of outputs of Hadamard, and of randomised response among 16; delta 1e-8."""
    hadamard, response = (Fraction(1, 2), Fraction(1, 4)), (Fraction(1, 16), Fraction(0))
    rows = {
        (0.5, 1_000): (0.0812, 0.0566, 0.0311),
        (1.0, 1_000): (0.189, 0.132, 0.084),
        (4.0, 1_000): (2.85, 2.17, 1.74),
    }
    for (budget, n), expected in rows.items():
        ratio = Fraction(math.exp(budget))
        blankets = any_channel(ratio), of_supports(ratio, *hadamard), of_supports(ratio, *response)
        found = [room._epsilon(blanket, n, 1e-8, budget) for blanket in blankets]
        assert found == pytest.approx(expected, rel=0.015)


def any_channel_delta(epsilon: float, n: int, at: float) -> float:
    """Theorem 3.2 of Feldman, McMillan, Talwar 2023 as it stands, in sums of binomials."""
    p, w = 2 / (math.exp(epsilon) + 1), math.exp(epsilon) / (math.exp(epsilon) + 1)
    total = 0.0
    for c in range(n):
        a = np.arange(c + 2)
        one, more = binom.pmf(a - 1, c, 0.5), binom.pmf(a, c, 0.5)
        first, second = w * one + (1 - w) * more, (1 - w) * one + w * more
        apart = np.maximum(first - math.exp(at) * second, 0.0).sum()
        total += float(binom.pmf(c, n - 1, p)) * float(apart)
    return total


@pytest.mark.parametrize(("epsilon", "n", "at"), [(1.0, 100, 0.6), (3.0, 60, 2.0), (0.5, 200, 0.1)])
def test_any_channel_is_the_published_theorem(epsilon: float, n: int, at: float):
    published = any_channel_delta(epsilon, n, at)
    ratio = Fraction(math.exp(epsilon))
    found = delta_above(any_channel(ratio), epsilon=at, reports=n)
    assert published * (1 - 1e-9) <= found <= published * 1.02


@pytest.mark.parametrize("name", ["randomized response", "subset selection", "high-low"])
def test_blankets_of_families_are_those_of_enumeration(name: str):
    one = CASES[name][0]
    ((_, known),) = one.blankets().items()
    ((_, found),) = blankets_by_enumeration(one.channel(), one.policy).items()
    assert set(known) == set(found)


@pytest.mark.parametrize("name", ["projective-geometry", "block-hadamard", "tree"])
def test_blankets_of_families_hide_no_more_than_those_of_enumeration(name: str):
    one = mechanism(name, {"size": 5}, epsilon=1.0)
    ((_, known),) = one.blankets().items()
    ((_, found),) = blankets_by_enumeration(one.channel(), one.policy).items()
    for epsilon in (0.1, 0.5):
        below = [max(stated(b, epsilon, 50) for b in some) for some in (found, known)]
        assert below[0] <= below[1] * 1.01


def test_a_report_with_something_in_the_clear_is_not_hidden():
    levels = mechanism("lip", {"values": ["no", "yes"]}, epsilon=1.0, prior={"levels": 4})
    for budget, blankets in levels.blankets().items():
        found = amplified(blankets, budget=budget, reports=1_000, delta=1e-8)
        assert (found.epsilon, found.bound) == (pytest.approx(float(budget)), "report")


def test_values_that_are_protected_in_one_direction_have_no_blanket():
    assert mechanism("high-low", WORDS, epsilon=1.0, sensitive=["a"]).blankets() == {}
    mangat = mechanism("binary", {"values": ["no", "yes"]}, epsilon=[1.0, float("inf")])
    assert mangat.blankets() == {}


def test_a_large_channel_of_an_unknown_family_has_none():
    assert mechanism("l1-geometric", {"size": 100}, epsilon=0.1).blankets() == {}


def test_where_too_many_pairs_differ_one_bounds_them_all(monkeypatch: pytest.MonkeyPatch):
    one = mechanism("l1-geometric", {"size": 5}, epsilon=0.5)
    ((budget, blankets),) = one.blankets().items()
    assert len(blankets) > 1
    monkeypatch.setattr("ldpstream.mechanisms.channels.blanket.MOST_BLANKETS", 1)
    ((_, few),) = one.blankets().items()
    (only,) = few
    for blanket in blankets:
        found = [delta_above(b, epsilon=0.1, reports=30) for b in (blanket, only)]
        assert found[0] <= found[1] * 1.001
    assert budget == Fraction(1, 2)


@pytest.mark.parametrize(("epsilon", "n", "low", "high"), [(1, 10_000, 0.05267, 0.05342)])
def test_a_published_program_finds_the_same(epsilon: int, n: int, low: float, high: float):
    """`ml-shuffling-amplification`, of an earlier theorem: C ~ Bin(n - 1, e^-eps); delta 1e-6."""
    likely = Fraction(math.exp(epsilon) / (math.exp(epsilon) + 1))
    mass = Fraction(math.exp(-epsilon)) / 2
    atoms = ((mass, likely / mass, (1 - likely) / mass), (mass, (1 - likely) / mass, likely / mass))
    found = amplified([Blanket(atoms)], budget=Fraction(epsilon), reports=n, delta=1e-6)
    assert low < found.epsilon < high
