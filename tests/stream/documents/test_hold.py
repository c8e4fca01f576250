"""`hold` of a collection: configuration, certificate, privacy statement, documents of spans."""

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
from ldpstream.agents.config.privacy.over_time import SpreadConfig, spent_sentences
from ldpstream.agents.config.privacy.year import year_in_words
from ldpstream.agents.config.query.capabilities import read_options
from ldpstream.agents.document.build import build_document
from ldpstream.agents.state.context import WindowTotals
from ldpstream.mechanisms.ledger import Ledger
from tests.exact.enumeration import counted
from tests.stream.cli import certified, configured, configured_modes, invoke, refused

DAY_MS = 86_400_000
MODES = """
[collection.modes]
mechanism = "randomized-response"
epsilon = 1.0
domain = { values = ["bus", "train", "walk"] }
minimum = 1
window = { size = "1d" }
"""
TWO = "hold = { windows = 4, epsilon = 2.0 }\n"


def modes(folder: Path, extra: str = "hold = 4\n") -> CollectionConfig:
    return configured_modes(folder, MODES + extra)


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
    file = configured(tmp_path, MODES + extra)
    for windows, epochs in ((1, 1), (4, 2), (5, 2), (6, 3)):
        (found,) = certified(file, "--windows", str(windows))
        said = found["windows"]
        assert (said["windows"], said["charges"]) == (windows, epochs)
        assert said["loss"]["exact"] == str(epochs * epoch)
        if hold.chain is not None:
            parts = hold.worst_split(windows).items()
            exact = math.log(math.prod(hold.ratio(m) ** times for m, times in parts))
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
    text = MODES.replace("randomized-response", "groups") + 'sensitive = ["bus", "walk"]\n'
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
    text = MODES.replace("randomized-response", mechanism)
    text = text.replace('{ values = ["bus", "train", "walk"] }', "{ sizes = [3] }") + TWO
    hold = configured_modes(tmp_path, text).spec.hold
    ran = invoke("certify", "-c", configured(tmp_path, text), "--windows", "3")
    (found,) = json.loads(ran.stdout)["collections"]
    said, step = found["windows"]["loss"], found["windows"]["step"]
    parts = hold.worst_split(3).items()
    exact = math.log(math.prod(hold.ratio(m) ** times for m, times in parts))
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
        file = configured(tmp_path, MODES + extra)
        (found,) = certified(file, "--windows", "10")
        assert found["windows"]["charges"] == charges
    ran = invoke("certify", "-c", file, "--windows", "0")
    assert "--windows" in refused(ran)


def test_the_most_windows_in_a_row_are_counted():
    """The number agrees with all ways to report in 2 of 4 windows in each of three periods."""
    spread = SpreadConfig(2, 4, 4 * DAY_MS, rolling=False)
    sets = [{a, b} for a in range(4) for b in range(a)]
    for windows in range(1, 10):
        most = max(
            sum((first + t) % 4 in (one, other, third)[(first + t) // 4] for t in range(windows))
            for first in range(4)
            for one in sets
            for other in sets
            for third in sets
            if first + windows <= 12
        )
        assert spread.most(windows) == most


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
    off = MODES.replace("minimum = 1\n", 'minimum = 100\npublish = { every = "off" }\n')
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
