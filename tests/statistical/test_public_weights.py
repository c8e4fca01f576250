"""Public weights: bounds of sums cover. Seeds are fixed; with others a test fails as it states."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from benchmarks.accuracy.simulate import Case, draw_by_privatizing, zipf
from scipy.stats import binom

from ldpstream.estimators.weights import estimate_public_weights
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.weights.public import PublicWeights
from tests.soak import chosen

REPETITIONS, N = chosen(100, soak=300), 1500
FAR = chosen(0.8, soak=0.5)
TAIL = 1e-8
LARGEST = 40
METHODS = ("normal", "bernstein", "anytime")
SETS = [np.arange(8), np.arange(2, 9), np.array([3]), np.arange(3, 16)]
MECHANISMS = [
    PublicWeights(L1Bits(1.0, (16,)), LARGEST),
    PublicWeights(L1Geometric(1.0, (4, 4)), LARGEST),
    PublicWeights(BlockHadamard(2.0, Blocks(np.arange(16) // 6)), LARGEST),
]


def pairs() -> np.ndarray:
    """Shares of pairs: weights grow with the value, and few are large."""
    values, weights = np.arange(16)[:, None], np.arange(LARGEST + 1)
    table = zipf(16)[:, None] * np.exp(-weights / (2.0 + values))
    return (table / table.sum()).ravel()


@cache
def drawn(mechanism: PublicWeights) -> list[tuple[np.ndarray, np.ndarray]]:
    """Repetitions of what N users hold and report, for every estimand."""
    return list(draw_by_privatizing(Case("", mechanism, "zipf", pairs(), N), REPETITIONS, 7))


@pytest.mark.soak
@pytest.mark.parametrize("estimand", ["respondents", "population"])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.values.id)
def test_bounds_of_sums_cover(mechanism: PublicWeights, estimand: str):
    """Assumes a coverage of at least 0.93 (`normal`, at most 0.985) or 0.95 (the others).

    80 shares, each wrong with probability below 1e-8 then: below 1e-6 together.
    """
    shares, weights = pairs(), np.tile(np.arange(LARGEST + 1), 16)
    sets = np.stack([np.isin(np.arange(16), s).repeat(LARGEST + 1) for s in SETS]) * weights
    hits, errors, spread = (
        np.zeros((len(METHODS), len(SETS))),
        np.zeros(len(SETS)),
        np.zeros(len(SETS)),
    )
    for counts, statistic in drawn(mechanism):
        truth = sets @ (counts / N if estimand == "respondents" else shares)
        for row, method in zip(hits, METHODS, strict=True):
            options: dict[str, Any] = {"estimand": estimand, "method": method}
            found = estimate_public_weights(mechanism, statistic, N, SETS, **options)
            row += (found.low <= truth) & (truth <= found.high)
        errors += (found.value - truth) ** 2
        spread += found.se**2
    normal, *others = hits / REPETITIONS
    assert (normal >= binom.ppf(TAIL, REPETITIONS, 0.93) / REPETITIONS).all()
    assert (normal <= binom.isf(TAIL, REPETITIONS, 0.985) / REPETITIONS).all()
    assert (np.array(others) >= binom.ppf(TAIL, REPETITIONS, 0.95) / REPETITIONS).all()
    # Squared errors are as standard errors say: of 300 draws they differ by 8.2%, of 100 by 14%.
    np.testing.assert_allclose(errors / spread, 1.0, atol=FAR)
