"""How many bins: the rule's values, and where plans, `check` and `init` name them."""

import math
from pathlib import Path

import numpy as np
import pytest

from ldpstream.agents.cli.configuration import TEMPLATE
from ldpstream.agents.cli.plans.bins import bins_warnings, recommend_bins
from ldpstream.agents.config import load_config
from ldpstream.estimators.planning.bins import recommended_bins, recommended_tree_bins
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from tests.stream.cli import configured, invoke

TABLE = """
[collection.fares]
mechanism = "{mechanism}"
epsilon = {epsilon}
domain = {{ interval = [0, 100], bins = {bins}{more} }}
sharpest = {reports}
"""
ROUNDED = ', rounding = "random"'


def table(
    bins: int,
    *,
    mechanism: str = "l1-bits",
    whole: float = 2.0,
    more: str = ROUNDED,
    reports: int = 10_000,
) -> str:
    return TABLE.format(
        mechanism=mechanism, epsilon=whole / bins, bins=bins, more=more, reports=reports
    )


@pytest.mark.parametrize(
    ("budget", "n", "bins"),
    [
        (2.0, 10**4, [5, 10, 20]),
        (2.0, 10**6, [16, 31, 63]),
        (0.5, 10**5, [4, 9, 18]),
        (10.0, 10**4, [10, 21, 44]),
        (10.0, 10**6, [34, 69, 140]),
        (100.0, 10**4, [27, 61, 130]),
    ],
)
def test_the_rule_has_its_values(budget: float, n: int, bins: list[int]):
    assert [recommended_bins(budget, n, peak=peak) for peak in (1.0, 4.0, 16.0)] == bins


@pytest.mark.parametrize("budget", [1e-300, 1e-9, 0.3, 7.0, 1e6, 1e300])
@pytest.mark.parametrize("n", [1, 10_000, 10**15])
def test_the_rule_minimises_the_noise_of_a_prefix_and_what_a_line_misses(budget: float, n: int):
    found = recommended_bins(budget, n)
    assert found >= 2
    if budget > 1e100:
        return

    def error(bins: float) -> float:
        width = budget / bins
        return (1.0 + width) / width / width / n + (4.0 / (8.0 * bins)) ** 2

    if found > 2:
        assert error(found) <= min(error(found / 1.2 - 1), error(found * 1.2 + 1))


@pytest.mark.parametrize("mechanism", ["l1-bits", "l1-geometric"])
@pytest.mark.parametrize("more", ["", ROUNDED])
def test_check_warns_where_most_bins_are_noise(tmp_path: Path, mechanism: str, more: str):
    few = load_config(configured(tmp_path, table(40, mechanism=mechanism, more=more)))
    assert list(bins_warnings(few.collections.values())) == []
    file = configured(tmp_path, table(41, mechanism=mechanism, more=more))
    (warning,) = bins_warnings(load_config(file).collections.values())
    assert warning.startswith(
        "collection.fares: warning: 41 bins are noise, not resolution, at 10,000 reports: with the "
        "same budget for the whole interval bins = 10 and epsilon = 0.2 have the least error"
    )
    # It is said before the broker, which there is none of here, is asked.
    assert warning in invoke("check", "-c", file).stderr


@pytest.mark.parametrize(
    "text",
    [
        table(41, reports=10_000_000),
        table(41).replace("[0, 100]", "[[0, 1], [0, 1]]").replace("= 41", "= [41, 41]"),
        table(2000, mechanism="tree", more=""),
    ],
)
def test_nothing_is_said_of_enough_reports_and_other_policies(tmp_path: Path, text: str):
    config = load_config(configured(tmp_path, text))
    assert list(bins_warnings(config.collections.values())) == []


def test_attributes_of_records_are_warned_of_by_name(tmp_path: Path):
    text = (
        '[collection.rides]\nmechanism = "sampled"\ndomain.attributes = { '
        'fare = { mechanism = "l1-bits", epsilon = 0.01, interval = [0, 9], bins = 200 }, '
        'kind = { mechanism = "randomized-response", epsilon = 1, values = ["a", "b"] } }\n'
    )
    (warning,) = bins_warnings(load_config(configured(tmp_path, text)).collections.values())
    assert "200 bins are noise" in warning
    assert warning.startswith("collection.rides.domain.attributes.fare: warning: ")


def test_a_plan_recommends_the_number(tmp_path: Path):
    file = configured(tmp_path, table(160))
    result = invoke("plan", "-c", file, "fares", "--respondents", "10000", "--search", "0")
    assert "160 bins are noise, not resolution, at 10,000 reports" in result.stdout
    assert "bins: 10 and epsilon = 0.2 are recommended for 10,000 reports" in result.stdout
    few = invoke("plan", "-c", configured(tmp_path, table(12)), "fares", "--respondents", "10000")
    assert "noise, not" not in few.stdout
    assert "; 12 are configured" in few.stdout


@pytest.mark.parametrize(
    ("epsilon", "n", "bins"),
    [(1.0, 10**4, [8, 32, 128]), (0.5, 10**4, [4, 16, 64]), (3.0, 10, [2, 8, 16])],
)
def test_fewer_bins_of_a_tree_have_less_noise(epsilon: float, n: int, bins: list[int]):
    found = [recommended_tree_bins(epsilon, n, peak=peak) for peak in (1.0, 4.0, 16.0)]
    assert found == bins


def test_a_plan_shows_fewer_bins_where_any_two_values_are_hidden_alike(tmp_path: Path):
    file = configured(tmp_path, table(200, mechanism="tree", whole=200.0, more=""))
    options = ("--respondents", "10000", "--search", "0")
    result = invoke("plan", "-c", file, "fares", *options)
    assert "bins: 32 and epsilon = 1 are recommended for 10,000 reports" in result.stdout
    assert "noise, not" not in result.stdout


def test_init_writes_the_number_with_its_kappa(tmp_path: Path):
    assert recommended_bins(10 * 0.2, 10_000, peak=4.0) == 10
    for part in ('bins = 10, rounding = "random"', "epsilon = 0.2", "kappa = 4", "for 10,000"):
        assert part in TEMPLATE
    spec = load_config(configured(tmp_path, table(10))).collections["fares"].spec
    found = recommend_bins(spec, 10_000)
    assert found is not None
    assert (found.recommended, round(found.epsilon, 9)) == (10, 0.2)


@pytest.mark.parametrize(
    ("bins", "bits", "geometric"), [(5, 0.029580, 0.042514), (160, 0.804984, 5.742615)]
)
def test_more_bins_are_noise(bins: int, bits: float, geometric: float):
    """Standard errors of a share below a threshold: a budget of .02 a unit of 100, 10,000 users."""
    shape = (bins + 1,)
    for kind, error in ((L1Bits, bits), (L1Geometric, geometric)):
        decoder = kind(math.log1p(2.0 / bins), shape).decoder
        worst = max(decoder.noise(prefix).mean() for prefix in np.tri(bins + 1)[:-1])
        assert math.sqrt(worst / 10_000) == pytest.approx(error, abs=6e-7)
