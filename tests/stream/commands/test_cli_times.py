"""Implausible times: refused by line, unless a replay is asked for."""

import io
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ldpstream.agents.cli.send import from_reports, from_values
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.value_options import Reading, near_now
from ldpstream.agents.config import load_config
from ldpstream.mechanisms.base.times import format_time
from tests.stream.cli import configured, invoke, refused

DAY_MS = 86_400_000
SECONDS = "1795255200"
LEDGER = ("--ledger", "L", "--budget", "9")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return configured(tmp_path)


def near(days: float) -> int:
    """Return the epoch milliseconds of now plus some days."""
    return time.time_ns() // 1_000_000 + round(days * DAY_MS)


@pytest.mark.parametrize("ledger", [(), LEDGER])
@pytest.mark.parametrize("replay", [(), ("--replay",)])
def test_seconds_are_refused_by_line_in_a_replay_too(
    file: str, ledger: tuple[str, ...], replay: tuple[str, ...]
):
    values = f"{near(0)},bus\n{SECONDS},bus\n"
    result = invoke("privatize", "-c", file, "--times", *ledger, *replay, "modes", stdin=values)
    said = refused(result)
    assert said == (
        "stdin: line 2: expected an RFC 3339 time with Z or an offset, or epoch milliseconds "
        "(this looks like seconds) in the first column"
    )
    assert SECONDS not in said


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (-366, "expected a time of the 365d before now, in milliseconds since 1970 or RFC 3339;"),
        (1.5, "expected a time at most 1d after now, in milliseconds since 1970 or RFC 3339;"),
    ],
)
@pytest.mark.parametrize("written", [str, format_time])
def test_times_far_from_now_need_a_replay(
    file: str, days: float, said: str, written: Callable[[int], str]
):
    values = f"{near(0)},bus\n{written(near(days))},bus\n"
    result = invoke("privatize", "-c", file, "--times", "modes", stdin=values)
    assert refused(result) == f"stdin: line 2: {said} --replay takes any"
    ran = invoke("privatize", "-c", file, "--times", "--replay", "modes", stdin=values)
    assert (ran.exit_code, ran.stdout.count("\n")) == (0, 2)


@pytest.mark.parametrize("days", [-364, -1, 0, 0.9])
def test_times_of_a_year_and_up_to_a_day_ahead_are_taken(file: str, days: float):
    ran = invoke("privatize", "-c", file, "--times", "modes", stdin=f"{near(days)},bus\n")
    assert ran.exit_code == 0


def test_windows_that_are_kept_longer_take_older_times(file: str):
    text = Path(file).read_text().replace('sensitive = ["bus"]', 'sensitive = ["bus"]\n{}')
    Path(file).write_text(text.replace("{}", 'window = { retention = "800d" }'))
    ran = invoke("privatize", "-c", file, "--times", "modes", stdin=f"{near(-799)},bus\n")
    assert ran.exit_code == 0
    result = invoke("privatize", "-c", file, "--times", "modes", stdin=f"{near(-801)},bus\n")
    assert "line 1: expected a time of the 800d before now" in refused(result)


@pytest.mark.parametrize("replay", [False, True])
def test_send_takes_neither_values_nor_reports_of_1970(file: str, replay: bool):
    collection = load_config(file, environment={}).collections["modes"]
    ran = invoke("privatize", "-c", file, "modes", stdin="bus\n")
    # A report whose writer took seconds for milliseconds.
    line = json.dumps(json.loads(ran.stdout) | {"time": format_time(int(SECONDS))})
    values = f"{format_time(int(SECONDS))},bus\n"
    for read, text, times in ((from_reports, line, False), (from_values, values, True)):
        stream = io.BytesIO(text.encode())
        reading = Reading(times=times, near=near_now(collection.window, replay=replay))
        chunks = read(stream, collection, reading, size=10)
        if replay:
            (chunk,) = chunks
            assert chunk.times_ms.tolist() == [int(SECONDS)]
            continue
        with pytest.raises(Refused) as caught:
            list(chunks)
        assert caught.value.message == (
            "stdin: line 1: expected a time of the 365d before now, in milliseconds since 1970 or "
            "RFC 3339 (this looks like seconds); --replay takes any"
        )


def test_a_replay_needs_times(file: str):
    for command in ("privatize", "send"):
        result = invoke(command, "-c", file, "--replay", "modes", stdin="bus\n")
        assert refused(result).startswith("--replay: expected --times with it")


def test_close_refuses_seconds(file: str):
    said = refused(invoke("close", "-c", file, "--until", SECONDS, "modes"))
    assert "epoch milliseconds (this looks like seconds)" in said


@pytest.mark.parametrize(
    ("until", "meant"), [("2026", "1970-01-01T00:00:02.026Z"), ("-5", "1969-12-31T23:59:59.995Z")]
)
def test_close_refuses_a_year_and_a_relative_time(file: str, until: str, meant: str):
    said = refused(invoke("close", "-c", file, f"--until={until}", "modes"))
    assert f"or epoch milliseconds, got {until}, which is {meant}" in said
