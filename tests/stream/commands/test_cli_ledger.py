"""Ledgers, and collections whose devices need one: `one_report` and words. Without a broker."""

import json
import time
from fractions import Fraction
from math import exp
from pathlib import Path

import pytest

from ldpstream.agents.config import ConfigError, load_config
from ldpstream.agents.config.privacy.over_time import spent_sentences
from ldpstream.mechanisms.ledger import Ledger
from tests.exact.ledgers import DAY_MS, HOUR_MS, spec
from tests.stream.cli import certified, configured, invoke, refused

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


TOKENS = """
[collection.modes]
mechanism = "randomized-response"
epsilon = 0.5
domain = { values = ["bus", "train", "walk"] }
one_report = true
partitions = 3
window = { size = "1h" }
"""


@pytest.fixture
def tokens_file(tmp_path: Path) -> str:
    return configured(tmp_path, TOKENS)


@pytest.mark.parametrize(
    ("arguments", "instead"),
    [
        (["privatize"], "send --ledger, because a line of privatize has no token"),
        (["estimate"], "a worker, because lines of reports have no tokens"),
        (["send"], "--ledger, which keeps the secret of the device's tokens"),
        (["send", "--reports"], "--ledger, which keeps the secret of the device's tokens"),
    ],
)
def test_commands_without_tokens_are_refused(tokens_file: str, arguments: list[str], instead: str):
    result = invoke(arguments[0], "-c", tokens_file, *arguments[1:], "modes", stdin="bus\n")
    message = refused(result)
    assert message.strip().endswith(f"collection.modes.one_report: expected {instead}")


def test_the_certificate_and_the_device_document_state_one_report(tokens_file: str):
    (one,) = certified(tokens_file)
    assert "a token: which reports of one window are one device's" in one["disclosed"]
    document = json.loads(invoke("spec", "-c", tokens_file, "modes").stdout)
    rule = json.loads(document["canonical"])["one_report"]
    assert rule == {"partitions": 3, "window_ms": 3_600_000}


WORDS = """
[collection.words]
mechanism = "projective-geometry"
epsilon = 4.0
domain = { words = { bits = 16, rounds = 3, kept = 4 } }
window = { size = "1d" }
"""


def test_a_certificate_says_what_a_device_loses_in_all(tmp_path: Path):
    result = invoke("certify", "-c", configured(tmp_path, WORDS), "--windows", "5")
    assert result.exit_code == 0, result.output
    (certificate,) = json.loads(result.stdout)["collections"]
    own = certificate["words"]
    assert (own["rounds"], own["loss"]["run"]["exact"]) == (3, "4")
    assert "one report, which loses at most 4" in own["said"]
    # Five windows in a row touch three runs at most, each of one report.
    assert certificate["windows"]["loss"]["exact"] == "12"
    config = load_config(configured(tmp_path, WORDS), environment={})
    collection = config.collections["words"]
    assert own["said"] in collection.privacy.protected
    assert collection.topics.rounds == "words.reports.rounds"


@pytest.mark.parametrize(
    "more", ['hop = "12h"', 'grace = "1h" }\nspread = { reports = 1, horizon = "3d"']
)
def test_windows_that_cannot_be_rounds_are_refused(tmp_path: Path, more: str):
    text = WORDS.replace('size = "1d"', f'size = "1d", {more}')
    with pytest.raises(ConfigError, match=r"domain.words: expected windows that do not overlap"):
        load_config(configured(tmp_path, text), environment={})


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("privatize", "words"), "domain.words: expected send --ledger"),
        (("send", "words"), "domain.words: expected send --ledger"),
        (("simulate", "words"), "domain.words: expected send --ledger"),
        (("plan", "words", "--respondents", "9"), "words: expected known values, got words"),
    ],
)
def test_commands_without_a_round_are_refused(tmp_path: Path, command: tuple[str, ...], said: str):
    result = invoke(command[0], "-c", configured(tmp_path, WORDS), *command[1:], stdin="ab\n")
    assert said in refused(result)
