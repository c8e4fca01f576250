"""Changes between two spans: equal truths show none, and true ones are found.

Of 600 repetitions a binomial of 0.95 leaves fewer than 530 with probability 1e-11, and of 2,500 one
of 0.84 fewer than 2,000 with probability 4e-8: with other seeds a check of this file fails with
probability below 1e-6.
"""

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
from benchmarks.accuracy.coverage_grid import MECHANISMS, SIZE, shares_of
from benchmarks.accuracy.repeated import AffineSums, draw_of
from numpy.typing import NDArray

from ldpstream.estimators.bounds.bounded import bound
from ldpstream.estimators.bounds.options import Method, OptionKeywords, Options
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.comparison.change import (
    Bounds,
    Change,
    Devices,
    estimate_change,
    quantile_change,
)
from ldpstream.estimators.estimate import set_sums, value_sums
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.quantiles.quantiles import estimate_quantiles
from ldpstream.estimators.queries import indicator, prepare_queries
from ldpstream.mechanisms.interface.mechanism import Mechanism

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
REPETITIONS = 600
LEAST = 530 / REPETITIONS
N = (2_000, 5_000)
"""Reports of the two spans."""


def people(shares: Floats, n: int, seed: int, repetitions: int = REPETITIONS) -> Integers:
    return np.random.default_rng([seed, n]).multinomial(n, shares, repetitions)


def bounds_of(
    mechanism: Mechanism, counts: Integers, seed: int, sets: list[Integers] | None = None
) -> Bounds:
    """Return the bounds of all values, or of sets, of many repetitions at once: `(r, q)`."""
    if sets is None:
        sums = AffineSums.of(mechanism, lambda s: value_sums(mechanism, s, mechanism.count(s)))
    else:
        queries = prepare_queries(mechanism)
        indicators = [indicator(mechanism.size, members) for members in sets]
        sums = AffineSums.of(mechanism, lambda s: set_sums(queries, s, indicators))
    n = int(counts[0].sum())
    given = sums.at(draw_of(mechanism, counts, seed))

    def bounded(options: OptionKeywords) -> Estimate:
        return bound(given, n, Options(**options))

    return bounded


def told(change: Change) -> NDArray[np.bool_]:
    """Return in which repetitions a change of any query is shown."""
    return ((change.low > 0.0) | (change.high < 0.0)).any(axis=-1)


def equal_truths(name: str, epsilon: float, share: float, **options: Any) -> float:
    mechanism = MECHANISMS[name](epsilon)
    shares = shares_of(share, mechanism.size)
    spans = [
        bounds_of(mechanism, people(shares, n, seed), seed) for seed, n in enumerate(N, start=11)
    ]
    found = estimate_change(
        *spans, devices="different", estimand="population", simultaneous=True, **options
    )
    return float(told(found).mean())


SETTINGS = [
    ("randomized-response", 1.0, 0.1),
    ("block-hadamard, blocks", 2.0, 0.01),
    ("l1-geometric", 0.5, 0.1),
    ("l1-bits", 1.0, 0.5),
    ("high-low", 3.0, 0.001),
]


@pytest.mark.parametrize(
    ("setting", "method"),
    [
        *((setting, "padded") for setting in SETTINGS),
        *((setting, "normal") for setting in SETTINGS[1:4]),
        *((setting, "exact") for setting in SETTINGS[3:]),
        (SETTINGS[0], "bernstein"),
    ],
    ids=str,
)
def test_equal_truths_show_no_change(setting: tuple[str, float, float], method: Method):
    assert equal_truths(*setting, method=method) <= 1.0 - LEAST


def some_power(devices: Devices, families: int) -> float:
    """Return how often some change of `families` sets, each of 3 standard errors, is shown."""
    mechanism, (n, then) = MECHANISMS["block-hadamard"](2.0), (40_000, 100_000)
    shares = np.full(mechanism.size, 1.0 / mechanism.size)
    # Each set gains what its neighbour loses.
    sets = [np.arange(3) + 3 * number for number in range(families)]
    losing = [members + 16 for members in sets]
    options: Any = {"devices": devices, "estimand": "population", "simultaneous": True}
    before = bounds_of(mechanism, people(shares, n, 1, 2_500), 1, sets)
    few = [
        bounds_of(mechanism, people(shares, of, seed, 100), seed, sets)
        for seed, of in ((4, n), (2, then))
    ]
    step = 3.0 * float(estimate_change(*few, **options).se.mean()) / 3
    moved = shares.copy()
    for gaining, other in zip(sets, losing, strict=True):
        moved[gaining] += step
        moved[other] -= step
    after = bounds_of(mechanism, people(moved, then, 3, 2_500), 3, sets)
    return float(told(estimate_change(before, after, **options)).mean())


@pytest.mark.parametrize(
    ("devices", "families"), [("different", 1), ("different", 4), ("fresh", 1)]
)
def test_changes_of_three_standard_errors_are_found(devices: Devices, families: int):
    assert some_power(devices, families) >= 0.8


def test_devices_that_swap_are_no_change_only_if_they_may_report_twice():
    """Everybody moves to the other block: each share errs in one span as it does in the other."""
    mechanism = MECHANISMS["block-hadamard, blocks"](1.0)
    groups = mechanism.decoder.groups()
    assert groups is not None
    sets = [np.flatnonzero(groups == 0)]
    counts = np.zeros((2, REPETITIONS, mechanism.size), dtype=np.int64)
    inside = np.random.default_rng(3).binomial(1_000, 0.5, REPETITIONS)
    first, other = int(sets[0][0]), int(np.flatnonzero(groups == 1)[0])
    counts[0][:, first], counts[0][:, other] = inside, 1_000 - inside
    counts[1][:, first], counts[1][:, other] = 1_000 - inside, inside
    spans = [bounds_of(mechanism, each, seed, sets) for seed, each in enumerate(counts)]
    shown = {
        devices: told(estimate_change(*spans, devices=devices, estimand="population")).mean()
        for devices in get_args(Devices)
    }
    assert shown["different"] > 0.1
    assert shown["fresh"] <= 1.0 - LEAST
    assert shown["held"] <= 1.0 - LEAST


@pytest.mark.parametrize("method", ["padded", "exact"])
def test_quantiles_that_move_are_covered(method: Method):
    mechanism = MECHANISMS["l1-geometric"](1.0)
    prefixes = Prefixes.of(mechanism)
    shares = np.linspace(1.0, 2.0, SIZE)
    before, after = shares / shares.sum(), np.roll(shares, 2) / shares.sum()
    truth = [int(np.searchsorted(np.cumsum(one), 0.5)) for one in (before, after)]

    def quantiles(shares: Floats, n: int, seed: int) -> Callable[[int], Any]:
        statistics = draw_of(mechanism, people(shares, n, seed, 200), seed)

        def at(place: int) -> Any:
            def bounded(options: OptionKeywords) -> Any:
                return estimate_quantiles(
                    mechanism, statistics[place], n, [0.5], prefixes=prefixes, **options
                )

            return bounded

        return at

    spans = [quantiles(before, N[0], 1), quantiles(after, N[1], 2)]
    changes = [
        quantile_change(
            *(span(place) for span in spans),
            devices="different",
            last=mechanism.size - 1,
            correlation=0.0,
            estimand="population",
            method=method,
        )
        for place in range(200)
    ]
    moved = truth[1] - truth[0]
    # Of 200 repetitions a binomial of 0.95 leaves fewer than 165 with probability 1e-9.
    assert sum(bool(c.low[0] <= moved <= c.high[0]) for c in changes) >= 165
