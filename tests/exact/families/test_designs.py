"""`randomized-response` and `projective-geometry` against their definitions, in exact rationals."""

import math
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.estimators.bounds.options import Estimand
from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.mechanisms import Blocks, SpecError
from ldpstream.mechanisms.exact.dyadic import budget, exp_bounds, set_threshold
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.design import DesignLayout, SymmetricDesign
from ldpstream.mechanisms.families.design.geometry import Geometry
from ldpstream.mechanisms.families.design.mechanism import DesignMechanism
from ldpstream.mechanisms.families.design.projective_geometry import (
    ProjectiveGeometry,
    hyperplane_design,
)
from ldpstream.mechanisms.families.design.randomized_response import RandomizedResponse
from tests.conformance.instances import UNEQUAL
from tests.exact.enumeration import (
    IMPOSSIBLE_EPSILONS,
    Rows,
    predicted_value_variances,
    rising_shares,
    rows_of,
    times,
    variance_of,
)

CASES = [
    kind(epsilon, blocks)
    for kind in (RandomizedResponse, ProjectiveGeometry)
    for epsilon, blocks in [
        (1.0, Blocks.one(2)),
        (0.3, Blocks.one(7)),
        (1.0, Blocks.one(11)),
        (2.5, UNEQUAL),
        (30.0, UNEQUAL),
    ]
]
EVERY = pytest.mark.parametrize(
    "mechanism", CASES, ids=lambda m: f"{m.id}-{m.epsilon}-{m.blocks.count}-{m.size}"
)
N = 1000


def decoders_of(mechanism: DesignMechanism) -> Rows:
    """`h_x`: high where a report supports x, low at the other reports of its block."""
    decoders = []
    for row, block in zip(rows_of(mechanism), mechanism.blocks.of_value, strict=True):
        support = mechanism.layout.designs[mechanism.layout.kinds[block]].support
        likely = max(row)
        choice = {likely: support.high, Fraction(0): Fraction(0)}
        decoders.append([choice.get(p, support.low) for p in row])
    return decoders


@pytest.mark.parametrize(("epsilon", "size"), [(1.0, 5), (3.0, 2), (0.01, 9), (60.0, 4)])
def test_randomized_response_is_its_definition(epsilon: float, size: int):
    mechanism = RandomizedResponse(epsilon, Blocks.one(size))
    own, other = mechanism.channel().rows[0][0], mechanism.channel().rows[0][1]
    assert own + (size - 1) * other == 1
    assert float(own) == pytest.approx(math.exp(epsilon) / (math.exp(epsilon) + size - 1), 1e-12)
    for value, row in enumerate(rows_of(mechanism)):
        assert row == [own if y == value else other for y in range(size)]


def test_two_values_are_warners():
    pair = RandomizedResponse(1.0, Blocks.one(2)).channel()
    kept = math.e / (math.e + 1)
    assert [float(pair.rows[0][y]) for y in (0, 1)] == pytest.approx([kept, 1 - kept], rel=1e-15)


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


@EVERY
def test_no_bias_in_exact_rationals(mechanism: DesignMechanism):
    channel, decoders = rows_of(mechanism), decoders_of(mechanism)
    for x, row in enumerate(channel):
        assert [times(row, h) for h in decoders] == [
            Fraction(x == v) for v in range(mechanism.size)
        ]
    for value, exact in enumerate(decoders):
        unit = np.eye(mechanism.size)[value]
        found = mechanism.decoder.decode(unit)
        np.testing.assert_allclose(found, [float(h) for h in exact], rtol=1e-12, atol=1e-15)


@pytest.mark.grid
@EVERY
@pytest.mark.parametrize("estimand", ["respondents", "population"])
def test_predicted_variances_are_those_of_the_enumeration(
    mechanism: DesignMechanism, estimand: Estimand
):
    channel, decoders = rows_of(mechanism), decoders_of(mechanism)
    p = rising_shares(mechanism.size)
    units = [[Fraction(x == v) for x in range(mechanism.size)] for v in range(mechanism.size)]
    both = [Fraction(v < 2) for v in range(mechanism.size)]
    exact = [float(variance_of(channel, decoders, w, p, estimand)) for w in [*units, both]]
    shares = np.array([float(share) for share in p])
    values = (
        predicted_value_variances(
            mechanism, range(mechanism.size), shares=shares, estimand=estimand
        )
        / N
    )
    np.testing.assert_allclose(values * N, exact[:-1], rtol=1e-9, atol=1e-12)
    (pair,) = (
        predicted_set_variances(mechanism, [np.array([0, 1])], shares=shares, estimand=estimand) / N
    )
    # A set may take its block's known total instead: never worse.
    assert pair * N <= exact[-1] * (1 + 1e-9) + 1e-12


@EVERY
def test_the_closed_forms_of_the_noise(mechanism: DesignMechanism):
    channel, decoders = rows_of(mechanism), decoders_of(mechanism)
    of_value = mechanism.blocks.of_value
    least, largest = mechanism.decoder.noise_extremes()
    for value, h in enumerate(decoders):
        squares = [a * a for a in h]
        noise = [
            times(channel[x], squares) - (x == value)
            for x in range(mechanism.size)
            if of_value[x] == of_value[value]
        ]
        assert (least[value], largest[value]) == (float(min(noise)), float(max(noise)))


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


@pytest.mark.parametrize(("epsilon", "ratio"), [(1.0, 1.24), (2.0, 2.25), (3.0, 5.2), (4.0, 13.4)])
def test_projective_geometry_beats_hadamard_response_in_large_blocks(epsilon: float, ratio: float):
    blocks = Blocks.one(1093)
    ours, theirs = (
        predicted_value_variances(mechanism, [7])[0]
        for mechanism in (ProjectiveGeometry(epsilon, blocks), BlockHadamard(epsilon, blocks))
    )
    assert theirs / ours > ratio


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
    for epsilon in IMPOSSIBLE_EPSILONS:
        with pytest.raises(SpecError, match=r"^epsilon: expected a finite number"):
            kind(epsilon, Blocks.one(3))
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
        DesignLayout(Blocks(np.array([0, 0, 1, 1, 1])), designs).check()
    with pytest.raises(ValueError, match="too large to enumerate"):
        RandomizedResponse(1.0, Blocks.one(2000)).channel()
