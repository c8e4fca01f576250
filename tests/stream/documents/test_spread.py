"""`spread` and `hold`: configuration, documents, certificate, statement and commands."""

import json
import math
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ldpstream.agents.cli.python.plans import certify
from ldpstream.agents.config import CollectionConfig, ConfigError, load_config
from ldpstream.agents.config.privacy.certificate import certify_collection
from ldpstream.agents.config.privacy.over_time import spent_sentences
from ldpstream.agents.config.privacy.year import year_in_words
from ldpstream.agents.config.query.capabilities import read_options
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.build import build_document
from ldpstream.agents.document.flat import document_rows
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.state.context import WindowTotals
from ldpstream.mechanisms.ledger import Ledger
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


DAY_MS = 86_400_000
DAYS = """
[collection.modes]
mechanism = "randomized-response"
epsilon = 1.0
domain = { values = ["bus", "train", "walk"] }
minimum = 1
window = { size = "1d" }
"""
TWO = "hold = { windows = 4, epsilon = 2.0 }\n"


def modes(folder: Path, extra: str = "hold = 4\n") -> CollectionConfig:
    return configured_modes(folder, DAYS + extra)


def bounds(config: CollectionConfig, *, days: int, n: int = 4_000, **asked: str) -> np.ndarray:
    """Return value, se, low and high of each share in a document of n reports."""
    values = np.repeat(np.arange(3), [n // 2, n // 4, n // 4])
    mechanism = config.spec.mechanism
    statistic = counted(mechanism, values, 3)
    totals = WindowTotals(0, days * DAY_MS, statistic, n, late=0, rejected=0)
    words = {word: [text] for word, text in {"top": "all", **asked}.items()}
    options = read_options(config.options, config.spec, words)
    found = build_document(config, totals, window=(0, days * DAY_MS), final=True, options=options)
    assert found.n == n
    return np.array([[one.share, one.se, one.low, one.high] for one in found.distribution])


@pytest.mark.parametrize(("extra", "epoch"), [("hold = 4\n", 1), (TWO, 2)])
def test_certify_states_the_loss_of_any_windows(tmp_path: Path, extra: str, epoch: int):
    """For how many epochs any windows touch see tests/exact/ledger/test_hold_losses.py."""
    config, hold = modes(tmp_path, extra), modes(tmp_path, extra).spec.hold
    file = configured(tmp_path, DAYS + extra)
    for windows, epochs in ((1, 1), (4, 2), (5, 2), (6, 3)):
        (found,) = certified(file, "--windows", str(windows))
        said = found["windows"]
        assert (said["windows"], said["charges"]) == (windows, epochs)
        assert said["loss"]["exact"] == str(epochs * epoch)
        if hold.chain is not None:
            parts = hold.worst_split(windows).items()
            exact = math.log(math.prod(hold.chain.ratio(m) ** times for m, times in parts))
            assert said["loss"]["low"] <= exact * (1 + 1e-15)
            assert said["loss"]["high"] >= exact * (1 - 1e-15)
            assert said["loss"]["high"] - said["loss"]["low"] < 1e-12
            assert said["loss"]["high"] <= said["loss"]["float"]
    assert found["hold"]["loss"]["epoch"]["exact"] == str(epoch)
    assert found["hold"]["repeated"] == (epoch == 1)
    assert found["pass"]
    assert found["hold"]["draw"]["pass"]
    assert any("epoch of 4 windows" in one for one in found["disclosed"])
    assert config.privacy.disclosed == found["disclosed"]


def test_a_draw_that_breaks_its_policy_fails_every_certificate(tmp_path: Path):
    """Of Python, the command, HTTP and the page; a report by itself keeps its own."""
    text = DAYS.replace("randomized-response", "groups") + 'sensitive = ["bus", "walk"]\n'
    config = configured_modes(tmp_path, text + TWO)
    proof, thresholds = certify(config), config.spec.hold.permanent.thresholds
    assert (proof.passed, proof.draw.passed, proof.violation) == (True, True, None)
    object.__setattr__(thresholds, "own", thresholds.own + (1 << 50))
    proof, document = certify(config), certify_collection("modes", config.spec, None)
    assert config.spec.mechanism.certify().passed
    assert not proof.passed
    assert not proof.draw.passed
    assert "the permanent draw: " in proof.violation
    assert (document["pass"], document["violation"]) == (False, proof.violation)
    assert not document["hold"]["draw"]["pass"]
    assert "FAILS" in json.dumps(year_in_words(config, passed=document["pass"]))


@pytest.mark.parametrize("mechanism", ["l1-bits", "l1-geometric"])
def test_certify_states_the_loss_of_a_step_for_budgets_of_steps(tmp_path: Path, mechanism: str):
    """The ends of 3 values are two steps apart; geometric noise has upper bounds alone."""
    text = DAYS.replace("randomized-response", mechanism)
    text = text.replace('{ values = ["bus", "train", "walk"] }', "{ sizes = [3] }") + TWO
    hold = configured_modes(tmp_path, text).spec.hold
    ran = invoke("certify", "-c", configured(tmp_path, text), "--windows", "3")
    (found,) = json.loads(ran.stdout)["collections"]
    said, step = found["windows"]["loss"], found["windows"]["step"]
    parts = hold.worst_split(3).items()
    exact = math.log(math.prod(hold.chain.ratio(m) ** times for m, times in parts))
    assert step["high"] == pytest.approx(exact, rel=1e-12)
    # Two epochs of a draw with a budget of 2 a step.
    assert (said["exact"], said["float"]) == ("8", 8.0)
    assert said["high"] == pytest.approx(2 * exact, rel=1e-12)
    assert ("low" in said, "low" in step) == ((True, True) if hold.chain.exact else (False, False))
    assert found["pass"]


def test_certify_counts_windows_without_hold_too(tmp_path: Path):
    for extra, charges in (
        ("", 10),
        ('spread = { reports = 2, horizon = "6d" }\n', 6),
        ('spread = { reports = 2, horizon = "6d", rolling = true }\n', 4),
    ):
        file = configured(tmp_path, DAYS + extra)
        (found,) = certified(file, "--windows", "10")
        assert found["windows"]["charges"] == charges
    ran = invoke("certify", "-c", file, "--windows", "0")
    assert "--windows" in refused(ran)


def test_the_privacy_statement_explains_hold(tmp_path: Path):
    (said,) = [one for one in modes(tmp_path, TWO).privacy.protected if "ledger" in one]
    assert "draws one report in 4 windows (4d)" in said
    assert "lose at most 2 together (a factor of 7.39)" in said
    # 366 windows touch 93 epochs at most.
    assert "any 365 days, which touch up to 366 windows, 186, from at most 93 draws" in said
    assert not any("multiply" in one for one in modes(tmp_path).privacy.protected)


def test_a_ledger_states_reports_and_their_loss(tmp_path: Path):
    spec, now = modes(tmp_path).spec, time.time_ns() // 1_000_000
    with Ledger(tmp_path / "ledger", specs=[(spec, DAY_MS)], budget=9) as ledger:
        for days in range(4):
            ledger.release(spec, "bus", time_ms=now - days * DAY_MS)
        spent = ledger.spent()
    assert spent.total in (1, 2)
    said = spent_sentences(spent, "the past year")[0]
    assert f"given 4 reports: 4 to modes ({spent.total})" in said
    found = json.loads(invoke("ledger", str(tmp_path / "ledger")).stdout)
    assert Fraction(found["year"]["exact"]) == spent.total
    assert said == found["said"][0]


@pytest.mark.parametrize("method", ["padded", "exact", "normal", "bernstein", "anytime"])
@pytest.mark.parametrize("estimand", ["respondents", "population"])
def test_hold_widens_the_bounds_of_spans_and_not_those_of_a_window(
    tmp_path: Path, method: str, estimand: str
):
    fresh, held = modes(tmp_path, ""), modes(tmp_path)
    asked = {"method": method, "estimand": estimand}
    once = bounds(fresh, days=1, **asked)
    assert (bounds(held, days=1, **asked) == once).all()
    noise = bounds(fresh, days=1, estimand="respondents")[:, 1] ** 2
    for days in (2, 4, 9):
        value, se, low, high = bounds(held, days=days, **asked).T
        shared = min(days, 4)
        assert (value == once[:, 0]).all()
        # Noise is shared by the reports of one draw, sampling by all reports of a device.
        expected = noise * shared + (once[:, 1] ** 2 - noise) * days
        assert se**2 == pytest.approx(expected, rel=0.02)
        wider = np.sqrt(expected) / once[:, 1]
        assert (high - low >= 0.97 * wider * (once[:, 3] - once[:, 2])).all()


def test_documents_of_held_reports_state_no_central_loss(tmp_path: Path):
    off = DAYS.replace("minimum = 1\n", 'minimum = 100\npublish = { every = "off" }\n')
    folder = configured(tmp_path, off)
    assert load_config(folder).collections["modes"].central is not None
    folder = configured(tmp_path, off + "hold = 4\n")
    assert load_config(folder).collections["modes"].central is None
    (found,) = certified(folder, "--published", "100")
    assert "share one draw" in found["published"]["why"]


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("hold = 1\n", r"hold: expected a whole number of windows from 2 to 1,000,000, got 1"),
        ("hold = { windows = 4, epsilon = 0.5 }\n", r"hold\.epsilon: expected more than epsilon"),
        ('hold = 4\nspread = { reports = 1, horizon = "2d" }\n', "expected no spread with hold"),
    ],
)
def test_impossible_holds_are_refused(tmp_path: Path, extra: str, said: str):
    with pytest.raises(ConfigError, match=said):
        modes(tmp_path, extra)
