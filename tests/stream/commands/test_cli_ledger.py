"""`--ledger` of the commands, and `ldpstream ledger`, without a broker."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from tests.stream.cli import configured, invoke, refused

TABLE = """
[collection.modes]
mechanism = "randomized-response"
epsilon = 0.5
domain = { values = ["bus", "train", "walk"] }
minimum = 1
window = { size = "1h", hop = "30m" }
"""
BUDGET = ("--budget", "1.5", "--horizon", "1d")


@pytest.fixture
def file(tmp_path: Path) -> str:
    return configured(tmp_path, TABLE)


def privatize(file: str, stdin: str, *options: str) -> list[dict[str, str]]:
    ledger = str(Path(file).parent / "ledger")
    result = invoke("privatize", "-c", file, "modes", "--ledger", ledger, *options, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_pane_keeps_its_one_report(file: str):
    # Windows of an hour begin every half hour, so panes have 30 minutes.
    lines = "2026-11-22T10:00:00Z,bus\n2026-11-22T10:29:59Z,walk\n2026-11-22T10:30:00Z,walk\n"
    first = privatize(file, lines, "--times", "--replay", *BUDGET)
    assert [one["time"] for one in first] == [
        "2026-11-22T10:00:00Z",
        "2026-11-22T10:00:00Z",
        "2026-11-22T10:30:00Z",
    ]
    assert first[0] == first[1]
    again = lines.replace("bus", "train").replace("10:30:00", "10:59:59")
    assert privatize(file, again, "--times", "--replay", *BUDGET) == first
    # Estimates take such reports like any others.
    reports = "".join(json.dumps(one) + "\n" for one in first[1:])
    estimated = invoke("estimate", "--json", "-c", file, "modes", stdin=reports)
    assert json.loads(estimated.stdout)["n"] == 2


def test_without_times_reports_are_of_now_and_show_no_time(file: str):
    (one, *others) = privatize(file, "bus\n" * 50, "--budget", "1.5")
    assert "time" not in one
    # The pane may end while the command runs: two panes at most.
    assert len({other["report"] for other in others}) <= 2


def test_beyond_the_budget_the_line_is_named_and_those_before_are_kept(file: str):
    ledger = Path(file).parent / "ledger"
    lines = [f"2026-11-22T{hour:02}:00:00Z,train\n" for hour in range(5)]
    options = "--times", "--replay", "--ledger", str(ledger), *BUDGET
    arguments = "privatize", "-c", file, "modes", *options
    result = invoke(*arguments, stdin="".join(lines))
    message = refused(result, 1)
    told = "expected at most 1.5 (--budget) in a period of 1d (--horizon), got 1.5 spent"
    assert f"stdin: line 4: modes: {told}" in message
    assert "which begins at 2026-11-23T00:00:00Z, or choose a larger --budget" in message
    assert "train" not in message
    printed = result.stdout.splitlines()
    assert len(printed) == 3
    # The next day has a budget of its own.
    assert invoke(*arguments, stdin="2026-11-23T00:00:00Z,bus\n").exit_code == 0
    assert invoke(*arguments, stdin="".join(lines[:3])).stdout.splitlines() == printed
    shown = json.loads(invoke("ledger", str(ledger)).stdout)
    assert (shown["exact"], shown["spent"], len(shown["windows"])) == ("2", 2.0, 4)
    assert Fraction(shown["windows"][0]["exact"]) == Fraction(1, 2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--ledger", "L"), "--budget: expected a number above 0 with --ledger"),
        (("--ledger", "L", "--budget", "many"), "--budget: expected a finite number above 0"),
        (("--ledger", "L", "--budget", "0"), "--budget: expected a finite number above 0"),
        (("--budget", "1"), "--budget: expected --ledger with it"),
        (("--horizon", "1d"), "--horizon: expected --ledger with it"),
        (("--ledger", "L", "--budget", "1", "--horizon", "day"), "--horizon: expected a duration"),
        (("--ledger", "L", "--budget", "1", "--horizon", "0s"), "expected a duration above 0"),
        (("--ledger", "L", "--budget", "1", "--horizon", "45m"), "windows that divide the horizon"),
        (("--ledger", "X", "--budget", "1"), "expected a ledger that can be used"),
    ],
)
@pytest.mark.parametrize("command", ["privatize", "send"])
def test_wrong_use_is_refused(file: str, command: str, options: tuple[str, ...], said: str):
    folder = Path(file).parent
    (folder / "X").write_bytes(b"no ledger, nor any other kind of database" * 100)
    given = [str(folder / one) if one in {"L", "X"} else one for one in options]
    assert said in refused(invoke(command, "-c", file, "modes", *given, stdin="bus\n"))


def test_a_ledger_is_for_values(file: str):
    options = ("--ledger", str(Path(file).parent / "L"), "--budget", "1", "--reports")
    said = refused(invoke("send", "-c", file, "modes", *options, stdin=""))
    assert said.strip() == "--ledger: expected values, not --reports"


def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path):
    (tmp_path / "x").write_text("hello, I am a text" * 50)
    assert "expected a ledger that can be used" in refused(invoke("ledger", str(tmp_path / "x")))
