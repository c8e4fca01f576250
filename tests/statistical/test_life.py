"""Bounds of devices that report again and again: a short `benchmarks.accuracy.life`.

Seeds are fixed. With other seeds a cell fails with probability below 1e-6 / cells as long as its
true coverage is at least 0.94, and 0.924 or more was seen in 1,000 repetitions of every cell.
"""

import numpy as np
import pytest
from benchmarks.accuracy.life import AGAIN, EPSILONS, RULES, Setting
from benchmarks.accuracy.life_crowd import Rule
from scipy.stats import binom

from ldpstream.estimators.bounds.options import ONE_REPORT_EACH
from tests.soak import chosen

REPETITIONS, DEVICES = chosen(60, soak=200), 120
CELLS = 600
LEAST = int(binom.ppf(1e-6 / CELLS, REPETITIONS, 0.94))


@pytest.mark.soak
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_estimand_is_covered(rule: Rule) -> None:
    """With newcomers; rules take turns in mechanisms, and in whether values change."""
    turn = RULES.index(rule)
    mechanism = "randomized-response" if turn % 2 else "block-hadamard"
    setting = Setting(rule, mechanism, changing=turn % 3 == 0, newcomers=True)
    assert setting.cells <= CELLS / len(RULES)
    for cell in setting.run(REPETITIONS, DEVICES):
        assert cell.covered >= LEAST, cell


@pytest.mark.parametrize("mechanism", AGAIN)
def test_reports_that_any_chain_randomises_again_are_covered(mechanism: str) -> None:
    (rule,) = (rule for rule in RULES if rule.name == "hold 4 at twice epsilon, 12 windows")
    for cell in Setting(rule, mechanism, changing=False, newcomers=True).run(REPETITIONS, DEVICES):
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
        for cell in setting.run(REPETITIONS, DEVICES)
        if (cell.epsilon, cell.estimand) == (EPSILONS[mechanism][-1], estimand)
    ]
    assert np.mean(cells) < 0.88
