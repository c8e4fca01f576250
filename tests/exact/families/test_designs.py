"""`randomized-response` and `projective-geometry` against their definitions, in exact rationals.

Draws are enumerated with scripted words: a report's probability is that of its side of the
threshold times a uniform draw, which is proved by handing out each number that a draw can accept
once: each report must come up once. Of projective spaces: the fast sums over them, and the choice.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.mechanisms import Blocks, SpecError
from ldpstream.mechanisms.exact.dyadic import budget, exp_bounds, set_threshold
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.design.design import DesignLayout, SymmetricDesign
from ldpstream.mechanisms.families.design.geometry_transform import Geometry, hyperplane_sums
from ldpstream.mechanisms.families.design.mechanism import DesignMechanism, RandomizedResponse
from ldpstream.mechanisms.families.design.projective_geometry import (
    ProjectiveGeometry,
    choose_geometry,
    hyperplane_design,
)
from tests.exact.enumeration import Scripted, rows_of


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


UNEQUAL = Blocks(np.array([2, 0, 1, 1, 2, 3, 2, 2, 2, 1, 4, 4]))
BLOCKS = [Blocks.one(2), Blocks.one(9), UNEQUAL]
EVERY = pytest.mark.parametrize("blocks", BLOCKS, ids=["two", "nine", "unequal"])
HIGH = 0xABCDEF << 40
"""Bits that a mask takes away."""


def sides(mechanism: DesignMechanism, value: int) -> list[int]:
    """The last word that wants a supporting report, and the first that does not."""
    block = mechanism.blocks.of_value[value]
    threshold = int(mechanism.layout.thresholds[block])
    return [threshold - 1, threshold]


def shares(mechanism: DesignMechanism, value: int, inside: set[int], others: set[int]):
    """The channel's row that uniform draws from these two sets realise."""
    block = mechanism.blocks.of_value[value]
    own = Fraction(int(mechanism.layout.thresholds[block]), WORD)
    return {y: own / len(inside) for y in inside} | {y: (1 - own) / len(others) for y in others}


@EVERY
def test_draws_of_randomized_response_realise_its_channel(blocks: Blocks):
    mechanism = RandomizedResponse(1.5, blocks)
    for value, row in enumerate(mechanism.channel().rows):
        size = int(blocks.sizes[blocks.of_value[value]])
        if size == 1:
            entropy = Scripted([WORD - 1], [HIGH])
            (report,) = mechanism.privatize(np.array([value]), entropy=entropy)
            assert row == {report: 1}
            continue
        found = []
        for word in sides(mechanism, value):
            n = size - 1
            entropy = Scripted([word] * n, [u + HIGH for u in range(n)])
            found.append(mechanism.privatize(np.full(n, value), entropy=entropy).tolist())
            assert not entropy.left
        assert len(set(found[0])) == 1
        assert len(set(found[1])) == size - 1
        assert shares(mechanism, value, set(found[0]), set(found[1])) == dict(row)


@EVERY
def test_draws_of_projective_geometry_realise_its_channel(blocks: Blocks):
    mechanism = ProjectiveGeometry(1.5, blocks)
    for value, row in enumerate(mechanism.channel().rows):
        block = int(blocks.of_value[value])
        size, start = int(blocks.sizes[block]), int(mechanism.layout.starts[block])
        if size == 1:
            entropy = Scripted([WORD - 1])
            assert row == {int(mechanism.privatize(np.array([value]), entropy=entropy)[0]): 1}
            continue
        geometry = mechanism.geometry(size)
        wanted, unwanted = sides(mechanism, value)
        d, K = geometry.inside, geometry.points
        entropy = Scripted([wanted] * d, [u + HIGH for u in range(d)])
        inside = mechanism.privatize(np.full(d, value), entropy=entropy).tolist()
        assert len(set(inside)) == d
        # Every point once; orthogonal ones are rejected, and drawn again as one that is not.
        spare = next(y - start for y in row if y not in inside)
        entropy = Scripted([unwanted] * K, [], [u + HIGH for u in range(K)], [spare] * d)
        drawn = mechanism.privatize(np.full(K, value), entropy=entropy).tolist()
        assert not entropy.left
        accepted = [y for u, y in enumerate(drawn) if y == start + u]
        assert len(accepted) == K - d
        assert drawn.count(start + spare) == 1 + d
        assert shares(mechanism, value, set(inside), set(accepted)) == dict(row)


SPACES = [(2, 2), (2, 3), (2, 6), (3, 2), (3, 4), (5, 3), (7, 2), (11, 3)]


def incidence(geometry: Geometry) -> np.ndarray:
    """1 where points are orthogonal, rows by value, from the definition."""
    vectors = geometry.vectors(np.arange(geometry.points))
    return (vectors[:, ::-1] @ vectors.T % geometry.q == 0).astype(np.int64)


@pytest.mark.parametrize(("q", "t", "rows"), [(3, 6, 20), (3, 8, 2), (61, 3, 3), (2, 13, 1)])
def test_sums_over_large_spaces_are_those_of_their_points(q: int, t: int, rows: int):
    geometry = Geometry(q, t)
    counts = np.random.default_rng(1).integers(0, 1 << 20, (rows, geometry.points))
    counts[:, 0] += 1 << 32
    every = np.arange(geometry.points)
    for given, places in ((counts % 5, [0, 1, q, 2 * q, geometry.points - 1]), (counts, [1, q])):
        sums, reals = hyperplane_sums(geometry, given), hyperplane_sums(geometry, given / 2.0)
        assert sums.dtype == (np.int32 if given.max() < 5 else np.int64)
        np.testing.assert_allclose(reals, sums / 2.0, rtol=1e-12, atol=1e-6)
        for place in places:
            inside = geometry.orthogonal(np.full_like(every, place), every)
            assert np.array_equal(sums[:, place], given[:, inside].sum(axis=1))


@pytest.mark.slow
@pytest.mark.parametrize(("q", "t"), [*SPACES, (61, 3), (67, 2)])
def test_fast_sums_equal_dense_ones(q: int, t: int):
    geometry = Geometry(q, t)
    table = incidence(geometry)
    rng = np.random.default_rng(1)
    # Large totals leave what Fourier transforms keep exact.
    for largest in (2**24, 2**46):
        counts = rng.integers(0, largest, (3, geometry.points))
        assert np.array_equal(hyperplane_sums(geometry, counts), counts @ table)
    reals = rng.normal(size=(2, geometry.points))
    np.testing.assert_allclose(
        hyperplane_sums(geometry, reals), reals @ table, rtol=1e-12, atol=1e-10
    )


def is_prime(q: int) -> bool:
    return q > 1 and all(q % p for p in range(2, math.isqrt(q) + 1))


@pytest.mark.grid
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 4.0, 7.0, 50.0])
@pytest.mark.parametrize("size", [2, 3, 6, 40, 133, 500])
def test_the_space_is_within_3_percent_of_the_best_and_smallest_so(epsilon: float, size: int):
    exact = budget(epsilon)
    found = choose_geometry(exact, size)
    assert is_prime(found.q)
    assert found.points >= size
    noise: dict[Geometry, Fraction] = {}
    for q in filter(is_prime, range(2, 2 * size + 1)):
        t = next(t for t in range(2, 20) if Geometry(q, t).points >= size)
        if Geometry(q, t).points <= 32 * size:
            noise[Geometry(q, t)] = hyperplane_design(exact, Geometry(q, t)).support.mean_noise(
                size
            )
        if q + 1 >= size:
            break  # two coordinates from here on: more points for nothing
    limit = min(noise.values()) * Fraction(103, 100)
    assert noise[found] <= limit
    assert found.points == min(g.points for g, v in noise.items() if v <= limit)


def test_chosen_spaces_do_not_change():
    """They are part of the spec: another choice would be another fingerprint."""
    pinned = {
        (1.0, 2): (2, 2),
        (1.0, 10): (3, 3),
        (1.0, 43_750): (3, 11),
        (2.0, 1024): (11, 4),
        (3.0, 1000): (17, 4),
        (5.0, 22_000): (149, 3),
        (5.0, 43_750): (211, 3),
    }
    found = {case: choose_geometry(budget(case[0]), case[1]) for case in pinned}
    assert {case: (g.q, g.dimension) for case, g in found.items()} == pinned
