"""Policies given as a metric: budgets are distances, rounded down, and follow from close pairs."""

import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.policies.metric import MetricPolicy, l1_epsilon, lp_length


@pytest.mark.grid
@pytest.mark.parametrize("p", [1, 2, 3, 7, math.inf])
@pytest.mark.parametrize("scale", [None, (2.0, 0.5, 3.0)])
def test_a_metric_is_rounded_down_by_very_little(p: float, scale: tuple[float, ...] | None):
    shape = (3, 4, 2)
    policy = MetricPolicy(0.7, shape, p=p, scale=scale)
    points = list(product(*map(range, shape)))
    for (x, a), (z, b) in permutations(enumerate(points), 2):
        factors = scale or (1.0, 1.0, 1.0)
        d = [abs(u - v) * s for u, v, s in zip(a, b, factors, strict=True)]
        real = 0.7 * float(np.linalg.norm(d, p))
        entry = policy.entry(x, z)
        assert float(entry) == pytest.approx(real, rel=1e-12)
        if p != math.inf:
            power = sum(Fraction(v) ** int(p) for v in d)
            ratio = entry / budget(0.7)
            # At or below the root, and within 2^-126 of it.
            assert ratio ** int(p) <= power < (ratio + Fraction(1, 1 << 126)) ** int(p)


def test_whole_distances_are_exact():
    policy = MetricPolicy(1.0, (6, 6), p=2)
    assert policy.entry(0, 3 * 6 + 4) == 5
    assert (policy.metric, MetricPolicy(1.0, (4,), p=math.inf).metric) == ("l2", "linf")
    assert MetricPolicy(1.0, (6, 6), p=math.inf).entry(0, 3 * 6 + 4) == 4
    assert lp_length([2, -2, 1], 2) == 3
    assert "L2 norm" in str(policy.describe()["guarantee"])


@pytest.mark.parametrize("p", [1, 2, 3, math.inf])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 2)])
def test_pairs_without_a_value_between_them_imply_all_budgets(p: float, shape: tuple[int, ...]):
    policy = MetricPolicy(0.3, shape, p=p, scale=(0.7,) * len(shape))
    table: list[list[Fraction | None]] = [[None] * policy.size for _ in range(policy.size)]
    for x, z in policy.pairs():
        table[x][z] = policy.entry(x, z)
    implied = shortest(table)
    for x, z in permutations(range(policy.size), 2):
        found = implied[x][z]
        assert found is not None
        assert found <= policy.entry(x, z)


def shortest(table: list[list[Fraction | None]]) -> list[list[Fraction | None]]:
    """Relax all pairs until nothing changes: Bellman and Ford, from every value."""
    size = len(table)
    found = [[Fraction(0) if x == z else table[x][z] for z in range(size)] for x in range(size)]
    changed = True
    while changed:
        changed = False
        for x, y, z in product(range(size), repeat=3):
            a, b, c = found[x][y], table[y][z], found[x][z]
            if a is not None and b is not None and (c is None or a + b < c):
                found[x][z] = a + b
                changed = True
    return found


@pytest.mark.parametrize("p", [0, 0.5, -1, 1.5, math.nan, -math.inf, "2", True, 65, None])
def test_an_impossible_p_is_refused_by_name(p: float):
    with pytest.raises(SpecError, match=r"^p: expected a whole number in 1\.\.64, or inf, got "):
        MetricPolicy(1.0, (3, 3), p=p)


@pytest.mark.parametrize(
    "scale", [(1.0,), (0.0, 1.0), (-1.0, 1.0), (math.nan, 1.0), (math.inf, 1.0)]
)
def test_an_impossible_scale_is_refused_by_name(scale: tuple[float, ...]):
    with pytest.raises(SpecError, match=r"^scale"):
        MetricPolicy(1.0, (3, 3), scale=scale)


@pytest.mark.parametrize("p", [1, 2, 3, 5, 64, math.inf])
@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 7])
def test_the_budget_of_an_l1_mechanism_keeps_the_lp_policy_and_hardly_less(
    p: float, dimensions: int
):
    epsilon = Fraction(7, 10)
    found = l1_epsilon(epsilon, dimensions=dimensions, p=p)
    exponent = 1.0 if p == math.inf else 1 - 1 / p
    assert float(found) == pytest.approx(0.7 / dimensions**exponent, rel=1e-12)
    generator = np.random.default_rng(5)
    vectors = [[1] * dimensions, [9] * dimensions, [1] + [0] * (dimensions - 1)]
    vectors += generator.integers(0, 50, (40, dimensions)).tolist()
    for vector in vectors:
        assert found * sum(vector) <= epsilon * lp_length(vector, p)
