"""Bounds of devices that report again and again: the short form of `python -m benchmarks.life`.

Seeds are fixed. With other seeds a cell fails with probability below 1e-6 / cells as long as its
true coverage is at least 0.94, and 0.933 or more was seen in 1,000 repetitions of every cell.
"""

import pytest
from benchmarks.life import RULES, Setting
from benchmarks.life_crowd import Rule
from scipy.stats import binom

REPETITIONS, DEVICES = 120, 150
CELLS = 600
LEAST = int(binom.ppf(1e-6 / CELLS, REPETITIONS, 0.94))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_estimand_is_covered(rule: Rule) -> None:
    """Newcomers come; the mechanism, and whether values change, go by turns."""
    turn = RULES.index(rule)
    mechanism = "randomized-response" if turn % 2 else "block-hadamard"
    setting = Setting(rule, mechanism, changing=turn % 3 == 0, newcomers=True)
    assert setting.cells <= CELLS / len(RULES)
    for cell in setting.run(REPETITIONS, DEVICES):
        assert cell.covered >= LEAST, cell
