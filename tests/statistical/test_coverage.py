"""Bounds cover the truth as often as they say: the short form of `python -m benchmarks.coverage`.

Seeds are fixed. With other seeds a check fails with probability below 1e-6 / CHECKS as long as the
true coverage is what `allowed` assumes: the numbers below are binomial tails.
"""

import numpy as np
import pytest
from benchmarks.coverage import (
    judged,
    pointwise,
    seed_of,
    small_mechanisms,
    top_together,
)
from benchmarks.simulate import Case, draw_from_channel, uniform, zipf
from scipy.stats import binom

from ldpstream.estimators.estimate import estimate_sets
from ldpstream.estimators.prefixes import Prefixes
from ldpstream.estimators.quantiles import estimate_quantiles
from ldpstream.estimators.ranges import range_values
from ldpstream.mechanisms.block_hadamard import BlockHadamard
from ldpstream.mechanisms.blocks import Blocks
from ldpstream.mechanisms.high_low import HighLow
from ldpstream.mechanisms.l1_geometric import L1Geometric
from ldpstream.mechanisms.mechanism import Mechanism

CHECKS = 1000
TAIL = 1e-6 / CHECKS
POINTWISE = 2000
TOGETHER = 1000
QUANTILES = 1000

TOP_CASES = [
    Case("one block", BlockHadamard(1.0, Blocks.one(1000)), "zipf", zipf(1000), 5000),
    # Where plug-ins at the estimate itself covered 0.46 (uniform) and 0.15 (zipf, small n).
    Case("tens", BlockHadamard(3.0, Blocks(np.arange(1000) // 10)), "uni", uniform(1000), 5000),
    Case("tens", BlockHadamard(3.0, Blocks(np.arange(1000) // 10)), "zipf", zipf(1000), 200),
    Case("high-low", HighLow(3.0, 1000, frozenset(range(0, 1000, 4))), "uni", uniform(1000), 200),
]


def allowed(repetitions: int, least: float, largest: float) -> tuple[float, float]:
    """Shares of covered repetitions left only with probability TAIL if coverage is in between."""
    low = binom.ppf(TAIL, repetitions, least) / repetitions
    return low, binom.isf(TAIL, repetitions, largest) / repetitions


@pytest.mark.parametrize("name", small_mechanisms(1.0))
@pytest.mark.parametrize("estimand", ["respondents", "population"])
def test_pointwise_bounds(name: str, estimand: str):
    """Assumes a coverage of 0.94 to 0.96 (`normal`), at least 0.99 (`bernstein`)."""
    mechanism = small_mechanisms(1.0)[name]
    case = Case(name, mechanism, "zipf", zipf(mechanism.size), 5000)
    counts, statistics = draw_from_channel(case, POINTWISE, seed_of(case))
    chosen = judged(case, estimand, "normal")
    assert chosen.sum() >= 2
    least, largest = allowed(POINTWISE, 0.94, 0.96)
    assert least > 0.90
    assert largest < 0.99
    found = pointwise(case, counts, statistics, estimand, "normal")[chosen]
    assert (found >= least).all()
    assert (found <= largest).all()
    part = slice(0, POINTWISE // 4)
    found = pointwise(case, counts[part], statistics[part], estimand, "bernstein")
    assert (found >= 0.95).all()


@pytest.mark.parametrize("case", TOP_CASES, ids=lambda c: f"{c.name}-{c.data}-{c.n}")
@pytest.mark.parametrize("estimand", ["respondents", "population"])
def test_top_lists_are_covered_together(case: Case, estimand: str):
    """Assumes a coverage of at least 0.96; the long form finds 0.965 and more."""
    found = top_together(case, TOGETHER, seed_of(case), estimand, "normal")
    assert found >= allowed(TOGETHER, 0.96, 1.0)[0]


@pytest.mark.parametrize(
    "mechanism", [BlockHadamard(1.0, Blocks.one(32)), L1Geometric(1.0, (32,))], ids=lambda m: m.id
)
@pytest.mark.parametrize("estimand", ["respondents", "population"])
def test_quantile_bounds(mechanism: Mechanism, estimand: str):
    """Assumes a coverage of at least 0.95, which Woodruff's interval has by its construction."""
    case = Case("line", mechanism, "zipf", zipf(32), 5000)
    counts, statistics = draw_from_channel(case, QUANTILES, seed_of(case))
    prefixes, p = Prefixes.of(mechanism), np.array([0.25, 0.5, 0.9])
    covered = np.zeros(p.size)
    for row, statistic in zip(counts, statistics, strict=True):
        shares = row / case.n if estimand == "respondents" else case.shares
        truth = np.searchsorted(np.cumsum(shares) + 1e-12, p)
        found = estimate_quantiles(
            mechanism, statistic, case.n, p.tolist(), prefixes=prefixes, estimand=estimand
        )
        covered += (found.low <= truth) & (truth <= found.high)
    assert (covered / QUANTILES >= allowed(QUANTILES, 0.95, 1.0)[0]).all()


BOXES = ([(0, 2), (1, 6)], [(1, 3), (3, 3)], [(0, 4), (4, 7)], [(2, 2), (2, 2)])


@pytest.mark.parametrize("estimand", ["respondents", "population"])
def test_range_bounds_in_two_dimensions(estimand: str):
    """Assumes a coverage of 0.94 to 0.96."""
    mechanism = L1Geometric(1.0, (5, 8))
    case = Case("plane", mechanism, "zipf", zipf(40), 5000)
    counts, statistics = draw_from_channel(case, POINTWISE, seed_of(case))
    sets = [range_values((5, 8), bounds) for bounds in BOXES]
    covered = np.zeros(len(sets))
    for row, statistic in zip(counts, statistics, strict=True):
        shares = row / case.n if estimand == "respondents" else case.shares
        truth = np.array([shares[members].sum() for members in sets])
        found = estimate_sets(mechanism, statistic, case.n, sets, estimand=estimand)
        covered += (found.low <= truth) & (truth <= found.high)
    least, largest = allowed(POINTWISE, 0.94, 0.96)
    assert (covered / POINTWISE >= least).all()
    assert (covered / POINTWISE <= largest).all()
