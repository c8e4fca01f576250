"""Bounds where devices take part in some windows, and report several times in a span.

That every estimand is covered, and the parts of that.

Seeds are fixed. With other seeds a check fails with probability below 1e-6 / CHECKS as long as the
true coverage is at least 0.935 (0.94 to 0.97 in 2,000 repetitions of each setting; normal bounds of
a share are that far from 0.95 at a few hundred devices).
"""

from collections.abc import Iterator
from typing import get_args

import numpy as np
import pytest
from benchmarks.accuracy.life import AGAIN, EPSILONS, RULES, Setting
from benchmarks.accuracy.life_crowd import Rule
from numpy.typing import NDArray
from scipy.stats import binom

from ldpstream.estimators.bounds.options import ONE_REPORT_EACH, Estimand, sampling_of
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.estimate import estimate_values
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from tests.exact.enumeration import accumulated
from tests.seeded import SeededEntropy
from tests.soak import chosen

Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]

CHECKS = 100
TAIL = 1e-6 / CHECKS
REPETITIONS = 150
SIZE = 5
SHARES = np.array([0.4, 0.25, 0.2, 0.1, 0.05])


def least(coverage: float = 0.935) -> float:
    """The lowest share of covered repetitions that chance leaves.

    Shares of one repetition are counted apart: those of a single value are independent.
    """
    return float(binom.ppf(TAIL / SIZE, REPETITIONS, coverage)) / REPETITIONS


def parts(
    draw: np.random.Generator,
    devices: int,
    panes: int,
    *,
    windows: int,
    reports: int,
) -> Bools:
    """Which device takes part in which pane, drawn for each period."""
    periods = [
        draw.random((devices, windows)).argsort(axis=1) < reports
        for _ in range(-(-panes // windows))
    ]
    return np.concatenate(periods, axis=1)[:, :panes]


def estimated(
    values: Integers, epsilon: float, entropy: SeededEntropy, **options: object
) -> Estimate:
    mechanism = BlockHadamard(epsilon, Blocks.one(SIZE))
    statistic = accumulated(mechanism, mechanism.privatize(values, entropy=entropy))
    return estimate_values(mechanism, statistic, values.size, **options)


def spans(
    epsilon: float,
    seed: int,
    *,
    panes: int,
    windows: int,
    reports: int,
    devices: int,
) -> Iterator[tuple[Integers, Integers, SeededEntropy]]:
    """Yield the values of the active device-panes, those reported, and what randomises them."""
    draw, entropy = np.random.default_rng(seed), SeededEntropy(seed)
    for _ in range(REPETITIONS):
        values = draw.choice(SIZE, size=(devices, 1), p=SHARES)
        values = np.broadcast_to(values, (devices, panes))
        active = np.ones((devices, panes), dtype=np.bool_)
        # Half of them come in the middle.
        active[devices // 2 :, : panes // 2] = False
        taken = parts(draw, devices, panes, windows=windows, reports=reports)
        yield values[active], values[active & taken], entropy


@pytest.mark.parametrize("method", ["bernstein", "anytime"])
def test_bounds_for_every_n_cover_clusters_too(method: str):
    setting = {"panes": 12, "windows": 1, "reports": 1, "devices": 120}
    sampling, covered = sampling_of(0, 12, windows=None), np.zeros(SIZE)
    for _, values, entropy in spans(5.0, 12, **setting):
        found = estimated(
            values, 5.0, entropy, estimand="population", sampling=sampling, method=method
        )
        covered += (found.low <= SHARES) & (found.high >= SHARES)
    assert (covered / REPETITIONS >= least(0.95)).all()


def repeats(first: int, panes: int, windows: int, reports: int, *, rolling: bool) -> float:
    """How often the device of a report reports in the span, by counting pairs of panes."""
    again = (reports - 1) / (windows - 1) if windows > 1 else 1.0

    def also(one: int, other: int) -> float:
        if one == other or (rolling and (one - other) % windows == 0):
            return 1.0
        return again if rolling or one // windows == other // windows else reports / windows

    span = range(first, first + panes)
    return sum(also(one, other) for one in span for other in span) / panes


@pytest.mark.parametrize("rolling", [False, True])
@pytest.mark.parametrize(("windows", "reports"), [(1, 1), (2, 1), (6, 2), (6, 6), (7, 3)])
def test_the_reports_of_a_device_are_counted_pair_by_pair(
    windows: int, reports: int, rolling: bool
):
    for first in range(-3, 5):
        for panes in range(1, 20):
            found = sampling_of(first, panes, windows=windows, reports=reports, rolling=rolling)
            expected = repeats(first, panes, windows, reports, rolling=rolling)
            assert found.population == pytest.approx(expected)
            assert 0.0 <= found.active <= found.population


@pytest.mark.parametrize("estimand", get_args(Estimand))
def test_independent_reports_are_bounded_as_without_sampling(estimand: Estimand):
    values = np.repeat(np.arange(SIZE), 100)
    plain = "population" if estimand == "active" else estimand
    found = estimated(values, 1.0, SeededEntropy(1), estimand=estimand)
    expected = estimated(values, 1.0, SeededEntropy(1), estimand=plain)
    assert (found.low == expected.low).all()
    assert (found.high == expected.high).all()


LIVES, DEVICES = chosen(60, soak=200), 120
CELLS = 600
LEAST = int(binom.ppf(1e-6 / CELLS, LIVES, 0.94))


@pytest.mark.soak
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_estimand_is_covered(rule: Rule) -> None:
    """With newcomers; rules take turns in mechanisms, and in whether values change."""
    turn = RULES.index(rule)
    mechanism = "randomized-response" if turn % 2 else "block-hadamard"
    setting = Setting(rule, mechanism, changing=turn % 3 == 0, newcomers=True)
    assert setting.cells <= CELLS / len(RULES)
    for cell in setting.run(LIVES, DEVICES):
        assert cell.covered >= LEAST, cell


@pytest.mark.parametrize("mechanism", AGAIN)
def test_reports_that_any_chain_randomises_again_are_covered(mechanism: str) -> None:
    (rule,) = (rule for rule in RULES if rule.name == "hold 4 at twice epsilon, 12 windows")
    for cell in Setting(rule, mechanism, changing=False, newcomers=True).run(LIVES, DEVICES):
        assert cell.covered >= LEAST, cell


@pytest.mark.parametrize(
    ("name", "mechanism", "estimand"),
    [
        ("hold 12, 4 windows", "block-hadamard", "respondents"),
        ("every window, 12 windows", "randomized-response", "population"),
    ],
)
def test_bounds_that_assume_independent_reports_cover_too_rarely(
    monkeypatch: pytest.MonkeyPatch, name: str, mechanism: str, estimand: str
) -> None:
    """Repeated reports of a device are about the same person, and may share their noise."""
    monkeypatch.setattr(
        "ldpstream.agents.document.build.sampling_between", lambda *_, **__: ONE_REPORT_EACH
    )
    (rule,) = (rule for rule in RULES if rule.name == name)
    setting = Setting(rule, mechanism, changing=False, newcomers=False)
    cells = [
        cell.coverage
        for cell in setting.run(LIVES, DEVICES)
        if (cell.epsilon, cell.estimand) == (EPSILONS[mechanism][-1], estimand)
    ]
    assert np.mean(cells) < 0.88
