"""Linear queries do not depend on the unit and the zero that their weights are counted in."""

import numpy as np
import pytest

from ldpstream.estimators.planning.predictions import predicted_linear_variances
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.strategy import Strategy
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.metric import MetricPolicy
from tests.exact.enumeration import counted, some_statistic
from tests.seeded import SeededEntropy

PAIRED = Blocks(np.array([0, 0, 1, 1]))
MECHANISMS: dict[str, Mechanism] = {
    "one block": BlockHadamard(1.0, Blocks.one(4)),
    "two blocks": BlockHadamard(1.0, PAIRED),
    "randomized-response": RandomizedResponse(1.0, Blocks.one(4)),
    "high-low": HighLow(1.0, 4, frozenset({0, 1})),
    "l1-geometric": L1Geometric(1.0, (4,)),
    "l1-bits": L1Bits(1.0, (4,)),
    "subset-selection": SubsetSelection(1.0, PAIRED),
    "matrix": Matrix(MetricPolicy(1.0, (4,)), Strategy.built_in("prefix", 4)),
}
WEIGHTS = np.array([[0.0, 3.0, 1.0, 2.0], [5.0, 5.0, 5.0, 5.0]])
METHODS = [
    (estimand, method)
    for estimand in ("respondents", "population")
    for method in ("padded", "exact", "normal", "bernstein", "anytime")
]


@pytest.mark.grid
@pytest.mark.parametrize(("unit", "zero"), [(1e-9, 0.0), (1e30, 0.0), (1.0, 1e9), (1e-3, -1e7)])
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_bounds_are_those_of_any_other_unit_and_zero(
    mechanism: Mechanism, unit: float, zero: float
):
    _, statistic = some_statistic(mechanism, 500)
    weights = WEIGHTS * unit + zero
    # What rounding leaves of differences of such weights, in units.
    accuracy = 1e-15 * np.abs(weights).max() / unit + 1e-12
    for estimand, method in METHODS:
        options = {"estimand": estimand, "method": method}
        plain = estimate_linear(mechanism, statistic, 500, WEIGHTS, **options)
        assert (plain.low < plain.high)[0]
        moved = estimate_linear(mechanism, statistic, 500, weights, **options)
        for name in ("value", "low", "high"):
            expected = (getattr(plain, name) * unit + zero) / unit
            np.testing.assert_allclose(getattr(moved, name) / unit, expected, rtol=accuracy)
        for name in ("se", "influence"):
            relative = np.abs(getattr(moved, name) / unit - getattr(plain, name))
            assert (relative <= 10.0 * accuracy).all()


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_predicted_variances_are_those_of_any_other_unit_and_zero(mechanism: Mechanism):
    plain = predicted_linear_variances(mechanism, WEIGHTS) / 100
    assert plain[0] > 0.0
    for unit, zero in ((1e-9, 0.0), (1.0, 1e9)):
        found = predicted_linear_variances(mechanism, WEIGHTS * unit + zero) / 100 / unit**2
        np.testing.assert_allclose(found, plain, rtol=1e-6)


def test_blocks_whose_weights_hardly_differ_are_no_more_exact_than_others():
    mechanism, n = BlockHadamard(1.0, PAIRED), 300
    values = np.repeat([0, 1], [100, 200])
    statistic = counted(mechanism, values, 2)
    # Nobody reported the second block, where weights differ a billion times as much.
    weights = np.array([[0.0, 1e-9, 0.0, 1.0], [0.0, 1e-9, 0.0, 1e-9]])
    for method in ("normal", "bernstein", "anytime"):
        found = estimate_linear(mechanism, statistic, n, weights, method=method)
        assert (found.se > 0.0).all()
        assert (found.low < found.value).all()
        np.testing.assert_allclose(found.se[0], found.se[1], rtol=1e-6)


@pytest.mark.parametrize("weight", [0.1, 0.3, 0.7])
def test_a_population_whose_reports_are_all_of_one_block_is_not_known_exactly(weight: float):
    mechanism, n = BlockHadamard(1.0, PAIRED), 1_001
    statistic, values = mechanism.empty(), np.zeros(1_001, dtype=np.int64)
    mechanism.accumulate(statistic, mechanism.privatize(values, entropy=SeededEntropy(3)))
    # Every report of the first block says exactly this much; rounding is no variance.
    weights = np.array([[weight, weight, 1.0, 1.0], [0.0, 0.0, weight, weight]])
    found = estimate_linear(mechanism, statistic, n, weights, estimand="population")
    np.testing.assert_allclose(found.value, [weight, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.se, [(1.0 - weight) / n, weight / n], rtol=1e-9)
