"""The variance of `subset-selection`: by enumeration, and as the theory says of large blocks."""

import math
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.estimators.bounds.options import Estimand
from ldpstream.estimators.estimate import estimate_sets
from ldpstream.estimators.planning.predictions import (
    predicted_linear_variances,
    predicted_set_variances,
)
from ldpstream.mechanisms import Blocks
from ldpstream.mechanisms.exact.dyadic import budget, set_threshold
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.families.subset.subsets import Subsets, best_subsets
from ldpstream.mechanisms.interface.decoder import Decoder
from tests.exact.enumeration import (
    counted,
    predicted_value_variances,
    rising_shares,
    rows_of,
    variance_of,
)
from tests.exact.subset_reference import EVERY, decoders_of

N = 1000


@EVERY
@pytest.mark.parametrize("estimand", ["respondents", "population"])
def test_predicted_variances_are_those_of_the_enumeration(
    mechanism: SubsetSelection, estimand: Estimand
):
    channel, decoders = rows_of(mechanism), decoders_of(mechanism)
    p = rising_shares(mechanism.size)
    units = [[Fraction(x == v) for x in range(mechanism.size)] for v in range(mechanism.size)]
    mixed = [Fraction(7 * v % 5 - 2, 3) for v in range(mechanism.size)]
    pair = [Fraction(v < 2) for v in range(mechanism.size)]
    whole = [Fraction(int(b == 0)) for b in mechanism.blocks.of_value]
    exact = [
        float(variance_of(channel, decoders, w, p, estimand)) for w in [*units, mixed, pair, whole]
    ]
    shares = np.array([float(share) for share in p])
    known = {"shares": shares, "estimand": estimand}
    values = predicted_value_variances(mechanism, range(mechanism.size), **known) / N
    weights = np.array([[float(a) for a in mixed]])
    linear = predicted_linear_variances(mechanism, weights, **known) / N
    sets = [np.array([0, 1]), np.flatnonzero(mechanism.blocks.of_value == 0)]
    found = [*values, *linear, *(predicted_set_variances(mechanism, sets, **known) / N)]
    np.testing.assert_allclose(np.array(found) * N, exact, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("epsilon", "size"), [(0.5, 19), (1.0, 40), (3.0, 300), (9.0, 70)])
def test_noise_of_any_weights_is_that_of_the_pairwise_inclusions(epsilon: float, size: int):
    """`sum_ij w_i w_j (P(i, j held) - P(i held) P(j held))`, from the probabilities of pairs."""
    blocks = Blocks((np.arange(size) % 7 == 0).astype(np.int64))
    mechanism = SubsetSelection(epsilon, blocks)
    w = np.random.default_rng(1).normal(size=size)
    expected = np.zeros(size)
    for block in range(2):
        members = np.flatnonzero(blocks.of_value == block)
        s = mechanism.subsets[mechanism.layout.kinds[block]]
        k, d, a = s.size, s.chosen, s.threshold / WORD
        one = a * (d - 1) / (k - 1) + (1 - a) * d / (k - 1)
        with_own = a * (d - 1) / (k - 1)
        two = a * (d - 1) * (d - 2) + (1 - a) * d * (d - 1)
        two /= (k - 1) * (k - 2)
        step = float(1 / s.support.gap)
        for place, value in enumerate(members):
            pairs = np.full((k, k), two)
            pairs[place, :] = pairs[:, place] = with_own
            single = np.full(k, one)
            single[place] = a
            np.fill_diagonal(pairs, single)
            covariance = pairs - np.outer(single, single)
            expected[value] = step**2 * w[members] @ covariance @ w[members]
    np.testing.assert_allclose(mechanism.decoder.noise(w), expected, rtol=1e-9)


def test_weights_that_are_equal_in_a_block_have_no_noise():
    mechanism = SubsetSelection(1.0, Blocks(np.arange(300) // 40))
    weights = (np.arange(300) // 40) * 0.1 + 0.3
    assert not mechanism.decoder.noise(weights).any()
    values = np.arange(300)
    statistic = counted(mechanism, values, 1)
    found = estimate_sets(mechanism, statistic, 300, [np.arange(40), np.arange(280, 300)])
    assert found.value.tolist() == pytest.approx([40 / 300, 20 / 300], rel=1e-12)
    assert found.se.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("epsilon", "ratio"), [(1.0, 1.27), (2.0, 2.4), (3.0, 5.5), (4.0, 14.0)])
def test_large_blocks_have_the_variance_of_the_theory(epsilon: float, ratio: float):
    """Respondents: `(4 e^eps/(e^eps - 1)^2 P_j + p_x)/n`, Hadamard `(c^2 P_j - p_x)/n`."""
    blocks = Blocks(np.arange(8000) // 4000)
    mechanism = SubsetSelection(epsilon, blocks)
    p = np.full(8000, 0.5 / 8000)
    p[:2] = 0.25 / 4000 / 2, 0.3
    p[4000:] = 0.2 / 4000
    p[2:4000] = (0.8 - p[:2].sum()) / 3998
    e = math.exp(epsilon)
    found = predicted_value_variances(mechanism, [0, 1], shares=p)
    expected = 4 * e / (e - 1) ** 2 * 0.8 + p[:2]
    # "Large": what the block's size leaves out falls as 1/k.
    np.testing.assert_allclose(found, expected, rtol=100 / 4000)
    rare = p[0]
    hadamard = predicted_value_variances(BlockHadamard(epsilon, blocks), [0], shares=p)[0]
    c = (e + 1) / (e - 1)
    assert hadamard == pytest.approx(c**2 * 0.8 - rare, rel=1e-9)
    assert hadamard / found[0] == pytest.approx(ratio, rel=0.03)


def test_hadamard_wins_where_a_value_holds_most_of_its_block():
    blocks = Blocks.one(2000)
    for share, better in [(0.4, SubsetSelection), (0.6, BlockHadamard)]:
        p = np.full(2000, (1 - share) / 1999)
        p[0] = share
        variances = {
            kind: predicted_value_variances(kind(1.0, blocks), [0], shares=p)[0]
            for kind in (SubsetSelection, BlockHadamard)
        }
        assert min(variances, key=variances.__getitem__) is better


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0, 5.0, 44.0])
@pytest.mark.parametrize("size", [2, 3, 5, 8, 33, 100])
def test_no_other_number_of_values_has_less_variance(epsilon: float, size: int):
    exact = budget(epsilon)
    found = best_subsets(exact, size)
    every = [Subsets(size, d, set_threshold(exact, d, size - d)) for d in range(1, size)]
    assert found.support.mean_noise(size) == min(s.support.mean_noise(size) for s in every)


def test_plain_ldp_is_as_good_as_any_channel_can_be():
    """k = 8, epsilon = 1, uniform: 22.611 in all, 21.736 among respondents, known to be optimal."""
    mechanism = SubsetSelection(1.0, Blocks.one(8))
    for estimand, total in [("population", 22.611), ("respondents", 21.736)]:
        found = predicted_value_variances(mechanism, range(8), estimand=estimand).sum()
        assert found == pytest.approx(total, abs=5e-4)


def test_noise_extremes_at_the_edges_of_floats():
    for epsilon in (1e-9, 44.0):
        decoder = SubsetSelection(epsilon, Blocks.one(6)).decoder
        closed, general = decoder.noise_extremes(), Decoder.noise_extremes(decoder)
        np.testing.assert_allclose(closed, general, rtol=1e-6, atol=1e-12)
