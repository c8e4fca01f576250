"""Projective spaces: points, hyperplanes, the fast sums over them, and which one is chosen."""

import math
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.families.design.geometry_transform import Geometry, hyperplane_sums
from ldpstream.mechanisms.families.design.projective_geometry import (
    choose_geometry,
    hyperplane_design,
)

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
