"""A-priori bounds of prefixes and quantiles: against their formulas, inverses and exact tails."""

import math

import numpy as np
import pytest
from benchmarks.papers.a_priori import prefix_half_widths
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.quantiles.quantiles import invert
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.strategy import Strategy
from ldpstream.mechanisms.interface.symbols import SymbolMechanism
from ldpstream.mechanisms.policies.metric import MetricPolicy
from tests.exact.enumeration import matrix_of

M = 9
MECHANISMS = [
    L1Bits(1.0, (M,)),
    L1Geometric(1.0, (M,)),
    BlockHadamard(1.0, Blocks.one(M)),
    RandomizedResponse(1.0, Blocks(np.array([0, 1, 0, 0, 1, 2, 2, 1, 3]))),
    BlockHadamard(2.0, Blocks(np.repeat([0, 1, 2], 3))),
    Matrix(MetricPolicy(4.0, (M,)), Strategy.built_in("prefix", M)),
]
each = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.id)
both = pytest.mark.parametrize("estimand", ["respondents", "population"])


def test_bits_have_the_bound_of_the_theory():
    """`R = c`: docs/theory.md section 6, over the prefixes that can err."""
    prefixes, n = Prefixes.of(L1Bits(1.0, (M,))), 400
    c = (math.e + 1) / (math.e - 1)
    np.testing.assert_allclose(prefixes.spread[:-1], c, rtol=1e-9)
    found = prefix_half_widths(prefixes, n)
    expected = c * math.sqrt(math.log(2 * (M - 1) / 0.05) / (2 * n))
    assert (found[:-1] <= expected * (1 + 1e-9)).all()
    # The paper's assumption, the worst variance c^2/4, makes Bernstein's no better here.
    assert prefix_half_widths(prefixes, n, estimand="population")[0] == pytest.approx(expected)
    assert found[-1] == 0.0


@pytest.mark.parametrize("positions", [2, 10, 1024, 2**20, 2**140])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.9999])
def test_theorem_4_is_wider_than_hoeffding_over_all_prefixes(positions: int, confidence: float):
    delta, bits = 1 - confidence, math.log2(positions)
    theirs = 2 * math.sqrt(2 * math.log(2 * bits / delta))
    assert theirs >= math.sqrt((bits * math.log(2) + math.log(2 / delta)) / 2)


@pytest.mark.parametrize(
    "mechanism", [m for m in MECHANISMS if isinstance(m, SymbolMechanism)], ids=lambda m: m.id
)
@both
def test_one_report_errs_by_more_with_at_most_the_allowed_probability(
    mechanism: SymbolMechanism, estimand: str
):
    """Exactly, over every report of a user of every value, or of a uniform population."""
    prefixes = Prefixes.of(mechanism)
    estimates = np.array(
        [
            prefixes.estimate(np.eye(mechanism.outputs, dtype=np.int64)[y], 1).value
            for y in range(mechanism.outputs)
        ]
    )
    channel = matrix_of(mechanism)
    widths = prefix_half_widths(prefixes, 1, confidence=0.9, estimand=estimand)
    truths = np.arange(M)[:, None] <= np.arange(M)
    if estimand == "population":
        channel, truths = channel.mean(axis=0)[None], truths.mean(axis=0)[None]
    for row, truth in zip(channel, truths, strict=True):
        wrong = (np.abs(estimates - truth) > widths + 1e-9).any(axis=1)
        assert row[wrong].sum() <= 0.1


@given(st.data())
def test_quantiles_of_prefixes_within_d_err_by_at_most_d(data: st.DataObject):
    """Isotonic regression with any weights keeps the largest error, so inversion does."""
    m = data.draw(st.integers(2, 12))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    sigma = np.cumsum(rng.dirichlet(np.full(m, rng.choice([0.1, 1.0]))))
    sigma[-1], half = 1.0, data.draw(st.floats(0.0, 1.0))
    value, se = sigma + rng.uniform(-half, half, m), rng.uniform(0.01, 1.0, m)
    value[-1], se[-1] = 1.0, 0.0
    estimate = Estimate(
        value=value,
        se=se,
        low=value - half,
        high=value + half,
        influence=se,
        lowest=value - half,
        highest=value + half,
        form=np.array(["normal"]),
        n=100,
        confidence=0.95,
        method="bernstein",
        estimand="respondents",
        simultaneous=True,
    )
    p = rng.uniform(1e-6, 1.0 - 1e-6, 50)
    found = invert(estimate, p)
    # How far each p is from `(sigma(x - 1), sigma(x)]`: [ML] V's error.
    at = np.asarray(found.value, dtype=np.int64)
    below = np.where(at > 0, sigma[at - 1], 0.0)
    assert (np.maximum(below - p, p - sigma[at]) <= half + 1e-9).all()
    # Bounds that hold for all prefixes hold for any number of quantiles at once.
    truth = np.searchsorted(sigma, p)
    assert (found.low <= truth).all()
    assert (truth <= found.high).all()
