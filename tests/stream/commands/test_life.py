"""What devices lose over time: in words, and in plans next to the error."""

import io
import json
import time
from fractions import Fraction
from math import exp
from pathlib import Path

import pytest
from rich.console import Console

from ldpstream.agents.cli.plans.model import LifePart, LifeWay
from ldpstream.agents.cli.plans.tables import _show_life
from ldpstream.agents.config.privacy.over_time import spent_sentences
from ldpstream.mechanisms.ledger import Ledger
from tests.exact.ledgers import DAY_MS, HOUR_MS, spec
from tests.stream.cli import configured, invoke, refused

MODES = """
[collection.modes]
mechanism = "block-hadamard"
epsilon = 1.0
domain = { size = 7 }
minimum = 1
window = { size = "1d" }
"""
PLAN = "--respondents", "100000", "--search", "0"


def test_a_ledger_states_the_loss_of_the_past_year_and_against_whom(tmp_path: Path):
    modes, rides, now = spec(), spec("rides", 0.25), time.time_ns() // 1_000_000
    listed = [(modes, HOUR_MS), (rides, DAY_MS)]
    with Ledger(tmp_path / "ledger", specs=listed, budget=2) as ledger:
        for days in (0, 1, 2, 400):
            ledger.release(modes, "bus", time_ms=now - days * DAY_MS)
        ledger.release(rides, "bus", time_ms=now)
    found = json.loads(invoke("ledger", str(tmp_path / "ledger")).stdout)
    assert (found["exact"], found["year"]["exact"]) == ("13/20", "11/20")
    spent, against = found["said"]
    assert "given 4 reports: 3 to modes (0.3), 1 to rides (0.25)" in spent
    assert "lose at most 0.55 together: all of them are at most 1.74 times likelier" in spent
    assert exp(0.55) < 1.74
    assert "operators of broker, gateway and workers" in against
    assert "bus" not in spent + against


def test_a_ledger_without_reports_says_so(tmp_path: Path):
    with Ledger(tmp_path / "ledger", specs=[(spec(), HOUR_MS)], budget=1) as ledger:
        (said,) = spent_sentences(ledger.spent(), "the past year")
    assert said == "In the past year this device has reported nothing."


@pytest.mark.slow
def test_a_plan_compares_reports_in_all_windows_and_in_some(tmp_path: Path):
    asked = "plan", "-c", configured(tmp_path, MODES), "modes", *PLAN, "--json"
    ran = invoke(*asked, "--windows", "365", "--budget", "4")
    assert ran.exit_code == 0, ran.stderr
    found = json.loads(ran.stdout)["life"]
    held = {way["hold"]: way for way in found["ways"] if way["way"] == "hold"}
    ways = {way["reports"]: way for way in found["ways"] if way["way"] != "hold"}
    # 365 windows touch 2, 4 or 12 epochs of these lengths at most; all devices are in all of them.
    assert {hold: way["loss"] for hold, way in held.items()} == pytest.approx(
        {364: 2, 122: 1, 34: 1 / 3}
    )
    assert all(way["respondents"] == 100_000 for way in held.values())
    assert held[122]["error"] < ways[4]["error"] / 9
    assert [one for one, way in ways.items() if way["way"] == "fresh"] == [365]
    assert [one for one, way in ways.items() if way["configured"]] == [4]
    for one, way in ways.items():
        assert way["loss"] * one == pytest.approx(4)
        assert way["respondents"] == pytest.approx(100_000 * one / 365)
    # A report each day with epsilon 4/365, against one in 91 days with the collection's epsilon.
    assert ways[365]["error"] > 3 * ways[4]["error"]
    # Hadamard at 1 (c^2 = 4.68): 427 times a report's variance for each of n devices.
    hadamard = ((exp(1) + 1) / (exp(1) - 1)) ** 2
    share = 1 / 7
    noise = hadamard - share
    sampled = share * (1 - share) * (1 - 4 / 365)
    expected = ((noise + sampled) * 365 / 4 / 100_000) ** 0.5
    assert ways[4]["error"] <= expected * 1.0001
    assert Fraction(found["budget"]) == 4


@pytest.mark.parametrize(
    ("hold", "windows", "draw", "total"),
    # 365 windows touch at most 14 epochs of 30, and 3 of 200.
    [("30", 30, 1, 14), ("{ windows = 200, epsilon = 1.25 }", 200, 1.25, 3.75)],
)
def test_a_plan_marks_the_configured_hold_at_its_own_loss(
    hold: str, windows: int, draw: float, total: float, tmp_path: Path
):
    asked = configured(tmp_path, f"{MODES}hold = {hold}\n")
    ran = invoke("plan", "-c", asked, "modes", *PLAN, "--json", "--windows", "365", "--budget", "4")
    assert ran.exit_code == 0, ran.stderr
    ways = json.loads(ran.stdout)["life"]["ways"]
    (own,) = [way for way in ways if way["configured"]]
    assert (own["way"], own["hold"], own["reports"]) == ("hold", windows, 365)
    assert (own["loss"], own["total"]) == pytest.approx((draw, total))
    # A window's report is drawn with the collection's epsilon, as one of four in a year would be.
    (alike,) = [way for way in ways if way["way"] == "hold" and way["hold"] == 122]
    assert own["error"] == pytest.approx(alike["error"])
    assert all(way["total"] == pytest.approx(4) for way in ways if way != own)


def test_the_table_names_the_best_way():
    ways = [
        LifeWay(
            way="fresh" if reports == 30 else "spread",
            reports=reports,
            loss=2 / reports,
            total=2,
            mechanism="block-hadamard",
            variant="",
            respondents=1_000.0,
            error=error,
            configured=reports == 2,
        )
        for reports, error in ((1, 0.02), (2, 0.01), (30, 0.04))
    ]
    console = Console(file=io.StringIO(), width=200)
    _show_life(LifePart(windows=30, budget=2.0, ways=ways), 100_000, console)
    said = console.file.getvalue()
    assert said.startswith(
        "A budget of 2 for 30 windows, 100,000 devices: the error of a window is least if each "
        "reports in 2 of them: 0.01.\n"
    )
    assert "\nEach row has the mechanism that is best for reports of its loss.\n" in said
    assert "* spread" in said
    assert "fresh" in said
    held = ways[1].model_copy(update={"way": "hold", "reports": 30, "hold": 10, "error": 0.001})
    _show_life(LifePart(windows=30, budget=2.0, ways=[*ways, held]), 100_000, console)
    assert "With hold = 10: 0.001, of values up to 9 windows old." in console.file.getvalue()
    dear = held.model_copy(update={"hold": 5, "error": 1e-4, "total": 7.0, "configured": True})
    _show_life(LifePart(windows=30, budget=2.0, ways=[*ways, held, dear]), 100_000, console)
    said = console.file.getvalue()
    assert "9 windows old. The configured hold = 5 may lose 7, above it.\n" in said
    assert "* hold = 5" in said


def test_windows_and_budget_are_asked_for_together(tmp_path: Path):
    file = configured(tmp_path, MODES)
    for options in (("--windows", "30"), ("--budget", "2")):
        ran = invoke("plan", "-c", file, "modes", *PLAN, *options)
        assert "--windows: expected --budget with it" in refused(ran)
    ran = invoke("plan", "-c", file, "modes", *PLAN, "--windows", "30", "--budget", "much")
    assert "--budget: expected a finite number above 0" in refused(ran)
