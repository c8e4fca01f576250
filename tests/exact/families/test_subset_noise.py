"""The variance of `subset-selection`: by enumeration, and as the theory says of large blocks."""

import math

import numpy as np
import pytest

from ldpstream.mechanisms import Blocks
from ldpstream.mechanisms.exact.dyadic import budget, set_threshold
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.families.subset.subsets import Subsets, best_subsets
from tests.exact.enumeration import predicted_value_variances


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
