"""`spread` of a collection: configuration, documents, certificate, statement and commands."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ldpstream.agents.config import CollectionConfig, ConfigError
from ldpstream.agents.config.query.capabilities import read_options
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.build import build_document
from ldpstream.agents.document.flat import document_rows
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.state.context import WindowTotals
from tests.exact.enumeration import counted
from tests.stream.cli import certified, configured, configured_modes, invoke, refused
from tests.stream.harness import HOUR_MS

MODES = """
[collection.modes]
mechanism = "randomized-response"
epsilon = 1.0
domain = { values = ["bus", "train", "walk"] }
minimum = 1
"""
HOURS = MODES + 'window = { size = "1h" }\n'
HOPPING = MODES + 'window = { size = "6h", hop = "1h" }\n'
FOUR = 'spread = { reports = 4, horizon = "1d" }\n'


def document(config: CollectionConfig, *, hours: int = 1, **asked: str) -> EstimateDocument:
    values = np.repeat(np.arange(3), [500, 300, 200])
    mechanism = config.spec.mechanism
    statistic = counted(mechanism, values, 3)
    totals = WindowTotals(0, hours * HOUR_MS, statistic, 1_000, late=0, rejected=0)
    words = {word: [text] for word, text in asked.items()}
    options = read_options(config.options, config.spec, words)
    return build_document(config, totals, window=(0, hours * HOUR_MS), final=True, options=options)


def errors(config: CollectionConfig, estimand: str, *, hours: int = 1) -> np.ndarray:
    found = document(config, hours=hours, estimand=estimand, method="normal")
    assert found.estimand == estimand
    return np.array([one.se for one in found.distribution])


def test_the_active_share_has_a_smaller_error_than_the_populations(tmp_path: Path):
    config = configured_modes(tmp_path, HOURS + FOUR)
    noise, active, drawn = (errors(config, one) for one in ("respondents", "active", "population"))
    assert active**2 == pytest.approx(noise**2 + (drawn**2 - noise**2) * 20 / 24)


def test_without_spread_the_active_are_a_population(tmp_path: Path):
    config = configured_modes(tmp_path, HOURS)
    assert (errors(config, "active") == errors(config, "population")).all()
    assert document(config).active is None


@pytest.mark.parametrize(("rolling", "days"), [(False, 1), (False, 3), (True, 1), (True, 3)])
def test_the_number_of_active_devices_is_estimated(tmp_path: Path, rolling: bool, days: int):
    """With a rolling draw a device that is active at one hour reports on all days, or on none."""
    four = FOUR.replace("}", ", rolling = true }") if rolling else FOUR
    found = document(configured_modes(tmp_path, HOURS + four), hours=24 * days).active
    assert found is not None
    variance = 30_000 * (days if rolling else 1)
    assert (found.count, found.se) == (6_000, pytest.approx(variance**0.5))


@pytest.mark.parametrize(
    ("text", "factor"),
    [
        (HOPPING, 6.0),  # a device may report in each of six panes
        # Six panes of one day; the device takes part in 4 of 24.
        (HOPPING + FOUR, 1 + 5 * 3 / 23),
        (HOPPING + 'spread = { reports = 4, horizon = "1d", rolling = true }\n', 1 + 5 * 3 / 23),
        (HOPPING + 'spread = { reports = 1, horizon = "1d" }\n', 1.0),
    ],
)
def test_devices_that_report_several_times_make_fewer_than_reports(
    tmp_path: Path, text: str, factor: float
):
    config = configured_modes(tmp_path, text)
    noise, drawn = errors(config, "respondents", hours=6), errors(config, "population", hours=6)
    alone = errors(configured_modes(tmp_path, HOURS), "population")
    assert drawn**2 == pytest.approx(noise**2 + (alone**2 - noise**2) * factor)
    values = document(config, hours=6, estimand="population", method="normal").distribution
    for value in values:
        assert value.low is not None
        assert value.high is not None
        assert value.se is not None
        assert value.high - value.low >= 2 * 1.959 * value.se


@pytest.mark.parametrize("method", ["normal", "bernstein", "anytime"])
@pytest.mark.parametrize("estimand", ["respondents", "population", "active"])
def test_every_method_bounds_spans(tmp_path: Path, method: str, estimand: str):
    """Bounds for the population widen with the reports of a device, those for the active do not."""
    config = configured_modes(tmp_path, HOURS + FOUR)
    one, span = (
        document(config, hours=hours, method=method, estimand=estimand, top="all").distribution
        for hours in (1, 48)
    )
    for first, second in zip(one, span, strict=True):
        narrow, wide = first.high - first.low, second.high - second.low
        if estimand == "population":
            assert wide > 1.05 * narrow
        else:
            assert wide == pytest.approx(narrow, rel=0.02)


def test_csv_says_whose_shares_they_are(tmp_path: Path):
    rows = document_rows(document(configured_modes(tmp_path, HOURS + FOUR), estimand="active"))
    assert "active" in next(iter(rows))


@pytest.mark.parametrize(
    ("spread", "said"),
    [
        ('{ reports = 0, horizon = "1d" }', "spread.reports"),
        ('{ reports = 25, horizon = "1d" }', "expected at most the 24 panes of horizon, got 25"),
        ('{ reports = 1, horizon = "90m" }', r"expected a multiple of a pane \(1h\), got 90m"),
        ("{ reports = 1 }", "spread.horizon"),
        ('{ reports = 1, horizon = "1d", often = true }', "spread.often"),
    ],
)
def test_impossible_spreads_are_refused(tmp_path: Path, spread: str, said: str):
    with pytest.raises(ConfigError, match=said):
        configured_modes(tmp_path, HOURS + f"spread = {spread}\n")


def test_a_period_has_a_limit(tmp_path: Path):
    seconds = 'window = { size = "1s" }\nspread = { reports = 1, horizon = "20d" }\n'
    with pytest.raises(ConfigError, match="at most 1,000,000 panes of 1s, got 1,728,000"):
        configured_modes(tmp_path, MODES + seconds)


def test_certify_states_the_loss_of_a_device(tmp_path: Path):
    for more, stretch in (("", 8), (", rolling = true", 4)):
        file = configured(tmp_path, HOURS + f'spread = {{ reports = 4, horizon = "1d"{more} }}\n')
        (found,) = certified(file)
        assert found["spread"]["loss"] == {
            "period": {"exact": "4", "float": 4.0},
            "any_stretch": {"exact": str(stretch), "float": float(stretch)},
        }
    (plain,) = certified(configured(tmp_path, HOURS))
    assert "spread" not in plain


def test_the_privacy_statement_explains_spread(tmp_path: Path):
    said = " ".join(configured_modes(tmp_path, HOURS + FOUR).privacy.protected)
    assert "reports in 4 of the 24 windows of each 1d" in said
    assert "lose at most 4 together (a factor of 54.6)" in said
    # They touch up to 366 days, and the 4 reports of each lose 1.
    assert "and those of any 365 days, which touch up to 8,761 windows, 1464." in said
    weekly = MODES + 'window = { size = "7d" }\nspread = { reports = 1, horizon = "7d" }\n'
    assert "reports in the one window of each 7d" in " ".join(
        configured_modes(tmp_path, weekly).privacy.protected
    )


def privatize(file: str, *options: str, hours: int = 24) -> tuple[list[dict], str]:
    lines = "".join(f"2026-11-22T{hour:02}:10:00Z,bus\n" for hour in range(hours))
    given = "--times", "--replay", "--ledger", str(Path(file).parent / "ledger"), *options
    result = invoke("privatize", "-c", file, "modes", *given, stdin=lines)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()], result.stderr


def test_privatize_reports_in_the_windows_of_the_spread(tmp_path: Path):
    file = configured(tmp_path, HOURS + FOUR)
    found, said = privatize(file)
    assert len(found) == 4
    assert "20 lines skipped: the budget is spread over other windows" in said
    assert privatize(file)[0] == found
    spent = json.loads(invoke("ledger", str(tmp_path / "ledger")).stdout)
    assert Fraction(spent["exact"]) == 4


def test_a_horizon_without_a_ledger_is_refused(tmp_path: Path):
    file = configured(tmp_path, HOURS)
    ran = invoke("privatize", "-c", file, "modes", "--horizon", "1d")
    assert "--horizon: expected --ledger" in refused(ran)


def test_options_sample_the_whole_population_by_default():
    assert EstimateOptions().sampling.population == 1.0
