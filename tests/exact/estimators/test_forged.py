"""How many forged reports move an estimate beyond its bounds, against all possible data sets."""

from collections.abc import Callable
from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpstream.estimators.bounds.bounded import forged_reports
from ldpstream.estimators.bounds.options import Estimand
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.interface.symbols import SymbolMechanism
from tests.exact.enumeration import accumulated
from tests.seeded import SeededEntropy

N = 4
MECHANISMS = {
    "binary": Binary(1.0, 2.0),
    "high-low": HighLow(1.0, 4, frozenset({0, 2})),
    "randomized-response": RandomizedResponse(1.5, Blocks(np.array([0, 0, 1]))),
    "block-hadamard": BlockHadamard(3.0, Blocks.one(3)),
}
BOUNDS = [
    {"method": "normal"},
    {"method": "normal", "estimand": "population", "confidence": 0.5},
    {"method": "anytime", "estimand": "population", "confidence": 0.5},
    {"method": "normal", "confidence": 0.1, "simultaneous": True},
]


def values(mechanism: Mechanism, statistic: NDArray[np.int64], n: int, **options: object):
    return estimate_values(mechanism, statistic, n, **options)


def sets(mechanism: Mechanism, statistic: NDArray[np.int64], n: int, **options: object):
    members = [
        np.arange(1, mechanism.size),
        np.arange(mechanism.size),
        np.array([], dtype=np.int64),
    ]
    return estimate_sets(mechanism, statistic, n, members, **options)


def weights(mechanism: Mechanism, statistic: NDArray[np.int64], n: int, **options: object):
    rows = np.stack([np.arange(mechanism.size, dtype=float), np.cos(np.arange(mechanism.size))])
    return estimate_linear(mechanism, statistic, n, rows, **options)


def all_data(mechanism: SymbolMechanism) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return every multiset of N reports, as statistics, and by how many reports two differ."""
    reports = mechanism.possible_reports()
    single = [accumulated(mechanism, reports[y : y + 1]) for y in range(len(reports))]
    chosen = combinations_with_replacement(range(len(single)), N)
    counts = np.array([np.bincount(c, minlength=len(single)) for c in chosen])
    common = np.minimum(counts[:, None, :], counts[None, :, :]).sum(axis=2)
    return counts @ np.array(single), N - common


@pytest.mark.slow
@pytest.mark.parametrize("options", BOUNDS, ids=str)
@pytest.mark.parametrize("query", [values, sets, weights])
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_number_is_the_least_that_moves_an_estimate_beyond_its_bounds(
    name: str, query: Callable[..., Estimate], options: dict[str, object]
):
    mechanism = MECHANISMS[name]
    statistics, differing = all_data(mechanism)
    estimates = [query(mechanism, statistic, N, **options) for statistic in statistics]
    shares = np.array([estimate.value for estimate in estimates])
    # The most that m forged reports move each query, over all data: rows m, from 0 to N.
    moved = np.abs(shares[:, None, :] - shares[None, :, :])
    most = np.array([moved[differing <= m].max(axis=0) for m in range(N + 1)])
    numbers = set()
    for estimate in estimates:
        found = forged_reports(estimate)
        room = estimate.value - estimate.lowest, estimate.highest - estimate.value
        distance = np.minimum(*room)
        for q, number in enumerate(found.tolist()):
            if np.isnan(number):
                assert not np.isfinite(distance[q]) or most[N, q] <= distance[q] + 1e-9
                continue
            assert most[int(number) - 1, q] <= distance[q] + 1e-9
            assert most[int(number), q] > distance[q]
            numbers.add(int(number))
    assert numbers <= set(range(1, N + 1))
    assert numbers


@pytest.mark.parametrize("estimand", ["respondents", "population"])
def test_an_estimate_below_0_is_no_easier_to_forge(estimand: Estimand):
    """Bounds inside of a block end at 0, but not the distance that counts."""
    mechanism = RandomizedResponse(0.5, Blocks(np.arange(40) // 10))
    statistic = mechanism.empty()
    statistic[:10] = [40, 40, 45, 45, 40, 40, 40, 40, 40, 30]
    estimate = estimate_values(mechanism, statistic, 400, estimand=estimand, simultaneous=True)
    few = forged_reports(estimate)[:10]
    assert estimate.value[9] < 0.0
    assert few[9] > few.max() / 2.0


def test_reports_added_to_honest_ones_move_no_further():
    """m reports are added to honest ones, and the estimate is compared with that of those alone."""
    mechanism = MECHANISMS["randomized-response"]
    statistics, _ = all_data(mechanism)
    single = np.unique(statistics[(statistics == N).any(axis=1)] // N, axis=0)
    for statistic in statistics:
        honest = values(mechanism, statistic, N)
        for m in (1, 2, 3):
            for one in single:
                both = values(mechanism, statistic + m * one, N + m)
                moved = np.abs(both.value - honest.value)
                assert (moved <= m * both.influence + 1e-12).all()


def test_nothing_moves_the_whole_domain_and_one_report_moves_what_is_known_exactly():
    mechanism = RandomizedResponse(1.0, Blocks(np.array([0, 0, 1, 1])))
    statistic = np.array([30, 20, 25, 25])
    members = [np.arange(4), np.array([], dtype=np.int64), np.array([0, 1])]
    whole, empty, block = forged_reports(estimate_sets(mechanism, statistic, 100, members))
    assert np.isnan(whole)
    assert np.isnan(empty)
    assert block == 1
    nothing = estimate_values(mechanism, np.zeros(4, dtype=np.int64), 0)
    assert np.isnan(forged_reports(nothing)).all()


@pytest.mark.parametrize(
    ("epsilon", "n", "number"),
    [(1.0, 1_000, 31), (1.0, 100_000, 308), (3.0, 1_000, 30), (3.0, 100_000, 302)],
)
def test_forged_reports_grow_with_the_root_of_n(epsilon: float, n: int, number: int):
    """The budget hardly matters; draws differ by one."""
    mechanism = BlockHadamard(epsilon, Blocks.one(16))
    statistic = np.zeros(mechanism.statistic_size, dtype=np.int64)
    values = np.arange(n) % 16
    mechanism.accumulate(statistic, mechanism.privatize(values, entropy=SeededEntropy(3)))
    assert abs(forged_reports(estimate_values(mechanism, statistic, n)).min() - number) <= 1
