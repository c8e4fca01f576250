"""`randomized-response` and `projective-geometry` against their definitions, in exact rationals."""

import math
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.mechanisms import Blocks, SpecError
from ldpstream.mechanisms.exact.dyadic import budget, exp_bounds, set_threshold
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.design.design import DesignLayout, SymmetricDesign
from ldpstream.mechanisms.families.design.geometry_transform import Geometry
from ldpstream.mechanisms.families.design.mechanism import DesignMechanism, RandomizedResponse
from ldpstream.mechanisms.families.design.projective_geometry import (
    ProjectiveGeometry,
    hyperplane_design,
)
from tests.exact.enumeration import rows_of


@pytest.mark.parametrize(("epsilon", "size"), [(1.0, 5), (3.0, 2), (0.01, 9), (60.0, 4)])
def test_randomized_response_is_its_definition(epsilon: float, size: int):
    mechanism = RandomizedResponse(epsilon, Blocks.one(size))
    own, other = mechanism.channel().rows[0][0], mechanism.channel().rows[0][1]
    assert own + (size - 1) * other == 1
    assert float(own) == pytest.approx(math.exp(epsilon) / (math.exp(epsilon) + size - 1), 1e-12)
    for value, row in enumerate(rows_of(mechanism)):
        assert row == [own if y == value else other for y in range(size)]


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_projective_geometry_weighs_orthogonal_points(epsilon: float):
    """`e^eps/Z` at points orthogonal to the value's, `1/Z` at others, `Z = e^eps d + K - d`."""
    mechanism = ProjectiveGeometry(epsilon, Blocks.one(40))
    geometry = mechanism.geometry(40)
    q, t, K = geometry.q, geometry.dimension, geometry.points
    d, e = geometry.inside, math.exp(epsilon)
    assert (K, d) == ((q**t - 1) // (q - 1), (q ** (t - 1) - 1) // (q - 1))
    vectors = geometry.vectors(np.arange(K))
    Z = e * d + K - d
    for value, row in enumerate(rows_of(mechanism)):
        products = (vectors * vectors[value, ::-1]).sum(axis=1) % q
        expected = np.where(products == 0, e / Z, 1 / Z)
        assert [float(p) for p in row] == pytest.approx(expected.tolist(), rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "q", "published"), [(1, 3, 3.77), (2, 7, 0.732), (3, 23, 0.221), (4, 53, 0.076)]
)
def test_a_report_of_projective_geometry_has_the_variance_of_the_theory(
    epsilon: int, q: int, published: float
):
    dimension = math.ceil(12 / math.log10(q))
    support = hyperplane_design(Fraction(epsilon), Geometry(q, dimension)).support
    assert float(support.other_noise) == pytest.approx(published, abs=0.5 * 10 ** -(3 - (q == 3)))
    mechanism = ProjectiveGeometry(float(epsilon), Blocks.one(50_000))
    assert float(mechanism.design(50_000).support.other_noise) <= 1.035 * published


@pytest.mark.parametrize(("inside", "outside"), [(1, 1), (1, 9), (40, 81), (1, 10**7), (7, 3)])
@pytest.mark.parametrize("epsilon", [1e-15, 0.1, 1.0, 5.0, 44.3, 50.0, 1e6])
def test_the_threshold_of_a_set_is_the_largest_that_keeps_epsilon(
    inside: int, outside: int, epsilon: float
):
    threshold = set_threshold(budget(epsilon), inside, outside)
    low, high = exp_bounds(min(budget(epsilon), Fraction(1000)))

    def ratio(t: int) -> Fraction:
        return Fraction(t, inside) / Fraction(WORD - t, outside)

    assert ratio(threshold) <= low
    assert threshold == WORD - 1 or ratio(threshold + 1) > high


@pytest.mark.parametrize("kind", [RandomizedResponse, ProjectiveGeometry])
def test_impossible_budgets_and_blocks_are_refused(kind: type[DesignMechanism]):
    with pytest.raises(SpecError, match="block of two or more values"):
        kind(1.0, Blocks(np.arange(4)))
    with pytest.raises(SpecError, match=r"^epsilon: expected a larger number"):
        kind(1e-21, Blocks.one(1000))
    # So small that the exponential's lower bound is 1.
    with pytest.raises(SpecError, match=r"^epsilon: expected a larger number"):
        kind(1e-100, Blocks.one(1000))


def test_tables_that_break_the_proof_are_noticed():
    designs = {2: SymmetricDesign(1, 1, 0, 1 << 63), 3: SymmetricDesign(3, 1, 0, 1 << 63)}
    with pytest.raises(ValueError, match="not what their proof assumes"):
        DesignLayout.by_size(Blocks(np.array([0, 0, 1, 1, 1])), designs).check()
    with pytest.raises(ValueError, match="too large to enumerate"):
        RandomizedResponse(1.0, Blocks.one(2000)).channel()
