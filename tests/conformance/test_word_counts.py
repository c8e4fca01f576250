"""How many words a report takes does not depend on the value: counting calls tells nothing of it.

With the same words every value of a block takes equally many, in calls of the same sizes. Points of
a projective space are drawn by rejection: there only the probability of a rejection is the same.
"""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.mechanisms import CollectionSpec
from ldpstream.mechanisms.exact.entropy import Entropy
from ldpstream.mechanisms.families.design.geometry import Geometry
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.families.tree.tree import Tree
from ldpstream.mechanisms.interface.mechanism import Mechanism
from tests.conformance.instances import INSTANCES
from tests.exact.enumeration import Scripted
from tests.exact.held import FAMILIES, held
from tests.exact.wire.test_vectors import read, spec_of
from tests.seeded import SeededEntropy

SEEDS = range(12)
MOST_VALUES = 40


class Counting:
    """The words of a seed, and how many each call took."""

    def __init__(self, seed: int) -> None:
        self._seeded = SeededEntropy(seed)
        self.calls: list[int] = []

    def words(self, n: int) -> np.ndarray:
        self.calls.append(n)
        return self._seeded.words(n)


def calls(draw: Callable[[Entropy], object], seed: int) -> tuple[int, ...]:
    entropy = Counting(seed)
    draw(entropy)
    return tuple(entropy.calls)


def assert_alike(draw: Callable[[Any, Entropy], object], values: list[Any]) -> None:
    for seed in SEEDS:
        found = {calls(lambda entropy, one=one: draw(one, entropy), seed) for one in values}
        assert len(found) == 1, seed


def rejects(mechanism: Mechanism) -> bool:
    """Whether points are drawn by rejection."""
    if isinstance(mechanism, Sampled):
        return any(rejects(part) for part in mechanism.parts)
    if isinstance(mechanism, Tree):
        trees = mechanism.layout.trees
        return any(level.channel.geometry for tree in trees for level in tree.levels)
    return isinstance(mechanism, ProjectiveGeometry)


def protected_together(mechanism: Mechanism) -> list[list[int]]:
    """The values that are joined by pairs with a finite budget; groups are disclosed."""
    group = np.arange(mechanism.size)
    for value, other, _ in mechanism.policy.constraints():
        group[group == group[other]] = group[value]
    groups = [np.flatnonzero(group == one) for one in np.unique(group)]
    return [
        sorted({int(one[i]) for i in np.linspace(0, len(one) - 1, MOST_VALUES).astype(int)})
        for one in groups
    ]


@pytest.mark.parametrize("mechanism", INSTANCES.values(), ids=INSTANCES.keys())
def test_every_value_takes_as_many_words(mechanism: Mechanism):
    if rejects(mechanism):
        pytest.skip("points are drawn by rejection")

    def draw(value: int, entropy: Entropy) -> None:
        mechanism.randomise(np.array([value]), entropy)

    for values in protected_together(mechanism):
        assert_alike(draw, values)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_epoch_takes_as_many_words_whatever_its_first_value_is(family: str):
    spec = held(family)
    hold = spec.hold
    if rejects(spec.mechanism):
        pytest.skip("points are drawn by rejection")

    def draw(value: int, entropy: Entropy) -> None:
        permanent = hold.permanent.randomise(np.array([value]), entropy)
        for _ in range(3):
            hold.sent(hold.permanent.encode(permanent), entropy)

    assert_alike(draw, list(range(spec.domain.size)))


def test_coordinates_at_ends_take_the_words_of_those_inside():
    spec = spec_of(next(v for v in read("hold.json")["devices"] if v["name"] == "l1-geometric"))

    def draw(report: int, entropy: Entropy) -> None:
        spec.hold.chain.again(np.array([report]), entropy)

    assert_alike(draw, list(range(spec.mechanism.size)))


@pytest.mark.parametrize(
    ("q", "dimension", "values"), [(2, 2, 3), (2, 4, 12), (3, 3, 13), (7, 2, 8)]
)
def test_every_value_rejects_equally_many_points(q: int, dimension: int, values: int):
    geometry = Geometry(q, dimension)
    points = np.arange(geometry.points)
    rejected = [
        int(geometry.orthogonal(np.full(len(points), value), points).sum())
        for value in range(values)
    ]
    assert set(rejected) == {geometry.inside}


def test_rounding_takes_as_many_words_for_every_number():
    table = {
        "mechanism": "l1-geometric",
        "epsilon": 0.3,
        "domain": {"interval": [0.0, 1.0], "bins": 10, "rounding": "random"},
    }
    spec = CollectionSpec.from_mapping("t", table, base=Path())
    numbers = [0.0, 0.3, 0.30000000000000004, 0.31, 0.9999999, 1.0]
    assert_alike(lambda one, entropy: spec.privatize([one], entropy=entropy), numbers)


def test_a_word_that_equals_a_digit_is_followed_by_another_for_every_number():
    """At an edge the digits are zeros for ever."""
    table = {
        "mechanism": "l1-bits",
        "epsilon": 0.3,
        "domain": {"interval": [0.0, 1.0], "bins": 10, "rounding": "random"},
    }
    domain = CollectionSpec.from_mapping("t", table, base=Path()).domain
    for number in (0.0, 0.3, 0.35, 1.0):
        digit = int(Fraction(repr(number)) * 10 % 1 * 2**64)
        entropy = Scripted([digit, 5])
        domain.place([number], entropy=entropy)
        assert not entropy.left


def test_records_take_as_many_words_whatever_they_hold():
    vector = next(v for v in read("devices.json") if v["name"] == "sampled written")
    attributes = spec_of(vector).mechanism.parts
    assert any(rejects(part) for part in attributes)
    toml = vector["toml"].replace('"projective-geometry"', '"randomized-response"')
    spec = spec_of({"toml": toml})
    assert_alike(
        lambda record, entropy: spec.privatize([record], entropy=entropy), vector["labels"][:12]
    )


@pytest.mark.parametrize(
    ("epsilon", "values", "expected"), [(1.0, 16, 2.334), (0.1, 64, 4.077), (0.05, 64, 4.597)]
)
def test_geometric_noise_takes_its_words_of_every_value(
    epsilon: float, values: int, expected: float
):
    mechanism, n = L1Geometric(epsilon, (values,)), 200_000
    taken = []
    for value in (0, values // 4, values // 2, values - 1):
        entropy = Counting(3)
        mechanism.randomise(np.full(n, value), entropy)
        taken.append(sum(entropy.calls))
    assert len(set(taken)) == 1
    # The words of one report have a deviation below 3: 6 of them fail with 2e-9.
    assert abs(taken[0] / n - expected) < 6 * 3 / np.sqrt(n)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-16])
def test_a_tiny_budget_takes_few_words(epsilon: float):
    """Where one success clamps every value a second trial would nearly always succeed too."""
    entropy = Counting(1)
    L1Geometric(epsilon, (5,)).randomise(np.arange(1000) % 5, entropy)
    assert sum(entropy.calls) < 6000
