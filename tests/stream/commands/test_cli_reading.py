"""`privatize` and `send`: columns by name, bad lines, spellings, implausible times."""

import io
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ldpstream.agents.cli.send import from_reports, from_values
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.value_options import Reading, near_now
from ldpstream.agents.config import load_config
from ldpstream.mechanisms.base.errors import ValueOutsideDomainError
from ldpstream.mechanisms.base.times import format_time
from ldpstream.mechanisms.domains.fitting import find_bad, nearest
from ldpstream.mechanisms.domains.parse import Grid, Interval, Labels, RoundedInterval, Size
from ldpstream.mechanisms.exact.entropy import SystemEntropy
from tests.forked import Forked
from tests.stream.cli import configured, invoke, refused

AGES = Interval(((0.0, 100.0),), (10,))
DAY = "2026-11-21T10:00:00Z"


@pytest.fixture
def file(tmp_path: Path) -> str:
    return configured(tmp_path)


def reports(said: str) -> int:
    return len([json.loads(line) for line in said.splitlines()])


def test_all_bad_lines_are_counted_and_the_first_ones_named(file: str):
    lines = ["bus"] * 1_000
    for place in (16, 17, 400, 999):
        lines[place] = "secret"
    said = refused(invoke("privatize", "-c", file, "modes", stdin="\n".join(lines)))
    assert said == (
        "stdin: line 17: expected one of the 3 labels of the domain, such as 'bus'; "
        "4 of 1,000 lines are bad, also 18, 401, ...: --skip-bad leaves them out"
    )


@pytest.mark.parametrize(("first", "hint"), [("2026-11-30T10:00:00Z", True), ("12", False)])
def test_lines_that_begin_with_a_time_need_times(file: str, first: str, *, hint: bool):
    said = refused(invoke("privatize", "-c", file, "modes", stdin=f"{first},bus\n"))
    assert said.endswith(": --times reads a time first in each line") == hint


@pytest.mark.slow
def test_bad_lines_are_counted_over_chunks_of_a_file_and_not_waited_for_in_a_pipe(
    file: str, tmp_path: Path
):
    text = "bad\n" + 20_000 * "bus\n" + "bad\n"
    (tmp_path / "values.csv").write_text(text)
    said = refused(invoke("privatize", "-c", file, "modes", str(tmp_path / "values.csv")))
    assert "2 of 20,002 lines are bad, also 20,002: --skip-bad" in said
    with Forked(["privatize", "-c", file, "modes"], stdin=subprocess.PIPE) as endless:
        endless.stdin.write(text.encode())
        endless.stdin.flush()
        # The command answers although the pipe stays open.
        assert endless.stderr.readline().startswith(b"stdin: line 1: expected one of the 3 labels")
        endless.stdin.close()


def test_a_file_that_is_bad_throughout_is_not_read_to_its_end(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ldpstream.agents.cli.privatize.CHUNK", 100)
    monkeypatch.setattr("ldpstream.agents.cli.terminal.values._ENOUGH_LINES", 150)
    (tmp_path / "values.csv").write_text(1_000 * "b\n" + "bus\n")
    said = refused(invoke("privatize", "-c", file, "modes", str(tmp_path / "values.csv")))
    assert "; 200 of the first 200 lines are bad, also 2, 3, ...: --skip-bad" in said


def test_bad_lines_are_left_out_and_counted(file: str):
    result = invoke("privatize", "-c", file, "--skip-bad", "modes", stdin="bus\nx\n\nbus\ny\n")
    assert result.exit_code == 0
    assert reports(result.stdout) == 2
    assert result.stderr == (
        "stdin: left out 3 of 5 lines as bad: line 2: expected one of the 3 labels of the domain, "
        "such as 'bus'\n"
    )


def test_nothing_but_bad_lines_is_refused_all_the_same(file: str):
    said = refused(invoke("privatize", "-c", file, "--skip-bad", "modes", stdin="x\ny\n"))
    assert said.startswith("stdin: line 1: expected one of")


def test_numbers_move_to_the_nearest_end_and_other_texts_do_not(file: str):
    result = invoke("privatize", "-c", file, "--clamp", "ages", stdin="-4\n50\n1e9\n")
    assert result.exit_code == 0
    assert reports(result.stdout) == 3
    assert result.stderr == "stdin: moved 2 of 3 values to the nearest end of the domain\n"
    said = refused(invoke("privatize", "-c", file, "--clamp", "ages", stdin="-4\nold\nnan\n"))
    assert said.startswith("stdin: line 2: expected a number in [0, 100]; 2 of 3 lines are bad")


def test_clamped_values_are_the_ends_themselves(tmp_path: Path):
    """Epsilon is so large that nothing is random: a report shows its value."""
    text = '[collection.c]\nmechanism = "l1-bits"\nepsilon = 60.0\ndomain = { size = 3 }\n'
    file = configured(tmp_path, text)
    ends = invoke("privatize", "-c", file, "c", stdin="0\n2\n").stdout
    assert invoke("privatize", "-c", file, "--clamp", "c", stdin="-7\n5\n").stdout == ends


def test_labels_have_no_ends(file: str):
    said = refused(invoke("privatize", "-c", file, "--clamp", "modes", stdin="bus\n"))
    assert said == "--clamp: expected a collection with only numbers, which modes is not"


def test_columns_are_found_by_name_in_the_order_of_the_option(file: str):
    table = f"y,id,x,when\n2,a,1,{DAY}\n0,b,0,{DAY}\n"
    command = ["privatize", "-c", file, "--times", "--replay", "--columns", "when, x, y", "places"]
    result = invoke(*command, stdin=table)
    assert result.exit_code == 0
    assert [json.loads(line)["time"] for line in result.stdout.splitlines()] == [DAY, DAY]
    swapped = refused(invoke("privatize", "-c", file, "--columns", "y,x", "places", stdin=table))
    assert swapped == (
        "stdin: line 2: expected 2 integers in 0..1, 0..2: --clamp moves numbers to the nearest "
        "end of the domain"
    )


@pytest.mark.parametrize(
    ("columns", "table", "message"),
    [
        (
            "mode",
            "bus\ncar\n",
            "stdin: line 1: expected column names with 'mode' once among them (`head -1 FILE`",
        ),
        ("mode", "mode,mode\nbus,bus\n", "stdin: line 1: expected column names with 'mode' once"),
        ("mode", "", "stdin: line 1: expected column names with 'mode' once among them"),
        ("mode", "mode\n", "stdin: expected at least one value line, got none"),
        ("mode", "id,mode\n1\n", "stdin: line 2: expected 2 cells, one for each column"),
        ("mode,", "mode\nbus\n", "--columns: expected names separated by commas, each once"),
        ("mode,mode", "mode\nbus\n", "--columns: expected names separated by commas, each once"),
    ],
)
def test_a_header_that_does_not_fit_is_refused_and_not_repeated(
    file: str, columns: str, table: str, message: str
):
    said = refused(invoke("privatize", "-c", file, "--columns", columns, "modes", stdin=table))
    assert said.startswith(message)
    assert "car" not in said


def test_bad_times_are_left_out_too_and_values_keep_theirs(file: str):
    lines = f"soon,bus\n{DAY},bus\n{DAY},nothing\n2001-01-01T00:00:00Z,train\n"
    result = invoke("privatize", "-c", file, "--times", "--skip-bad", "modes", stdin=lines)
    assert [json.loads(line)["time"] for line in result.stdout.splitlines()] == [DAY]
    assert "left out 3 of 4 lines as bad: line 1: expected an RFC 3339 time" in result.stderr


def test_a_ledger_counts_the_lines_of_the_file(file: str, tmp_path: Path):
    """A refusal names the line of the file, whatever was skipped before it."""
    ledger = str(tmp_path / "ledger.db")
    table = f"when,mode\nnever,bus\n{DAY},bus\n2026-11-21T12:00:00Z,bus\n"
    command = ["privatize", "-c", file, "--times", "--replay", "--columns", "when,mode"]
    command += ["--skip-bad", "--ledger", ledger, "--budget", "1.0", "modes"]
    assert "stdin: line 4: " in invoke(*command, stdin=table).stderr


def test_reports_have_no_values_to_move(file: str):
    said = refused(invoke("send", "-c", file, "--reports", "--skip-bad", "modes", stdin=""))
    assert said.startswith("--reports: expected no --columns, --clamp or --skip-bad")


def test_few_bad_values_among_many_cost_few_calls():
    calls = []

    def check(start: int, end: int) -> None:
        calls.append(end - start)
        for position in (5, 70_000):
            if start <= position < end:
                raise ValueOutsideDomainError(position - start, "another")

    assert find_bad(100_000, check) == {5: "another", 70_000: "another"}
    assert len(calls) < 60


@pytest.mark.parametrize(
    ("domain", "row", "point"),
    [
        (Size(9), ["12"], [8]),
        (Size(9), ["3.5"], None),
        (Size(9), ["inf"], None),
        (Grid(3, 5), [-1, 2], [0, 2]),
        (Grid(3, 5), [-1], None),
        (AGES, ["-0.5"], [0.0]),
        (AGES, ["inf"], None),
        (AGES, [float("inf")], [100.0]),
        (AGES, ["nan"], None),
        (RoundedInterval(AGES), [1e300], [100.0]),
        (Labels(("a", "b")), ["c"], None),
    ],
)
def test_the_nearest_point(domain: object, row: list[object], point: list[object] | None):
    assert nearest(domain, row) == point
    if point is not None:
        texts = [repr(number) for number in point]
        assert len(domain.place_columns([texts], entropy=SystemEntropy())) == 1


SPELLED = """
[collection.scores]
mechanism = "randomized-response"
epsilon = 60.0
domain = { size = 100 }
[collection.people]
mechanism = "randomized-response"
epsilon = 60.0
domain = { attributes = { age = { size = 100 }, "score" = { size = 100 } } }
[collection.cafes]
mechanism = "randomized-response"
epsilon = 60.0
domain = { values = ["Caf\u00e9", "bar"] }
"""
NFC, NFD = "Caf\u00e9", "Cafe\u0301"


@pytest.fixture
def spelled(tmp_path: Path) -> str:
    return configured(tmp_path, SPELLED)


@pytest.mark.parametrize(
    ("row", "columns", "name"),
    [
        ("Doe, Jane,41,7", "age", "scores"),
        ("Doe", "age", "scores"),
        ("Doe,41", "age", "scores"),
        ("Doe,41,7,", "age", "scores"),
        ("", "age", "scores"),
        ("Doe, Jane,41,7", None, "people"),
        ("Doe,41", None, "people"),
    ],
)
def test_rows_with_more_or_fewer_cells_than_the_first_line_are_bad(
    spelled: str, row: str, columns: str | None, name: str
):
    chosen = () if columns is None else ("--columns", columns)
    lines = f"who,age,score\nRoe,40,8\n{row}\nPoe,42,9\n"
    said = refused(invoke("privatize", "-c", spelled, *chosen, name, stdin=lines))
    assert said == "stdin: line 3: expected 3 cells, one for each column that the first line names"
    found = invoke("privatize", "-c", spelled, *chosen, "--skip-bad", name, stdin=lines)
    assert len(found.stdout.splitlines()) == 2


def test_a_ragged_row_is_bad_for_its_cells_and_not_for_its_time(spelled: str):
    lines = "at,age\n2026-11-21T10:00:00Z,1\nsoon,1,2\n"
    command = ("privatize", "-c", spelled, "--times", "--replay", "--columns", "at,age", "scores")
    assert "line 3: expected 2 cells" in refused(invoke(*command, stdin=lines))


def test_a_report_with_a_repeated_key_is_refused(spelled: str):
    line = invoke("privatize", "-c", spelled, "scores", stdin="1\n").stdout
    twice = line.replace('"report"', '"collection":"scores","report"')
    assert json.loads(twice) == json.loads(line)
    said = refused(invoke("estimate", "-c", spelled, "scores", stdin=twice))
    assert said == "stdin: line 1: expected a JSON object as privatize writes it"


@pytest.mark.parametrize("spelling", [NFC, NFD])
def test_a_label_is_found_in_every_spelling(spelled: str, spelling: str):
    columns = ("--columns", spelling)
    for label in (NFC, NFD):
        lines = f"x,{label}\n1,{label}\n"
        found = invoke("privatize", "-c", spelled, *columns, "cafes", stdin=lines)
        # Epsilon is so large that the report shows the value.
        alone = invoke("privatize", "-c", spelled, "cafes", stdin=f"{NFC}\n")
        assert json.loads(found.stdout)["report"] == json.loads(alone.stdout)["report"]


@pytest.mark.parametrize("alike", [NFD, f" {NFC}", f"{NFC}\u00a0"])
@pytest.mark.parametrize("in_file", [False, True])
def test_labels_that_look_the_same_are_refused(tmp_path: Path, alike: str, in_file: bool):
    (tmp_path / "labels.csv").write_text(f"{NFC}\nbar\n{alike}\n")
    values = 'file = "labels.csv"' if in_file else f"values = {json.dumps([NFC, 'bar', alike])}"
    text = SPELLED.replace('values = ["Caf\u00e9", "bar"]', values)
    said = refused(invoke("certify", "-c", configured(tmp_path, text), "cafes"))
    place = "file line 3: expected each label" if in_file else "values[2]: expected each value"
    assert f"collection.cafes.domain.{place} once" in said
    assert ("line 1 again" if in_file else "which looks like values[0]") in said


def test_blocks_of_a_file_are_the_same_in_every_spelling(tmp_path: Path):
    (tmp_path / "labels.csv").write_text(f"a,{NFC}\nb,{NFD}\nc,bar\nd,bar\n")
    text = SPELLED.replace('values = ["Caf\u00e9", "bar"]', 'file = "labels.csv", header = false')
    found = invoke("certify", "-c", configured(tmp_path, text), "cafes")
    assert found.exit_code == 0, found.output
    assert "the value's block, one of 2" in found.output
    assert "alone in" not in found.output


DAY_MS = 86_400_000
SECONDS = "1795255200"
LEDGER = ("--ledger", "L", "--budget", "9")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return configured(tmp_path)


def near(days: float) -> int:
    """Return the epoch milliseconds of now plus some days."""
    return time.time_ns() // 1_000_000 + round(days * DAY_MS)


@pytest.mark.parametrize("ledger", [(), LEDGER])
@pytest.mark.parametrize("replay", [(), ("--replay",)])
def test_seconds_are_refused_by_line_in_a_replay_too(
    here: str, ledger: tuple[str, ...], replay: tuple[str, ...]
):
    values = f"{near(0)},bus\n{SECONDS},bus\n"
    result = invoke("privatize", "-c", here, "--times", *ledger, *replay, "modes", stdin=values)
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
    here: str, days: float, said: str, written: Callable[[int], str]
):
    values = f"{near(0)},bus\n{written(near(days))},bus\n"
    result = invoke("privatize", "-c", here, "--times", "modes", stdin=values)
    assert refused(result) == f"stdin: line 2: {said} --replay takes any"
    ran = invoke("privatize", "-c", here, "--times", "--replay", "modes", stdin=values)
    assert (ran.exit_code, ran.stdout.count("\n")) == (0, 2)


@pytest.mark.parametrize("days", [-364, -1, 0, 0.9])
def test_times_of_a_year_and_up_to_a_day_ahead_are_taken(here: str, days: float):
    ran = invoke("privatize", "-c", here, "--times", "modes", stdin=f"{near(days)},bus\n")
    assert ran.exit_code == 0


def test_windows_that_are_kept_longer_take_older_times(here: str):
    text = Path(here).read_text().replace('sensitive = ["bus"]', 'sensitive = ["bus"]\n{}')
    Path(here).write_text(text.replace("{}", 'window = { retention = "800d" }'))
    ran = invoke("privatize", "-c", here, "--times", "modes", stdin=f"{near(-799)},bus\n")
    assert ran.exit_code == 0
    result = invoke("privatize", "-c", here, "--times", "modes", stdin=f"{near(-801)},bus\n")
    assert "line 1: expected a time of the 800d before now" in refused(result)


@pytest.mark.parametrize("replay", [False, True])
def test_send_takes_neither_values_nor_reports_of_1970(here: str, replay: bool):
    collection = load_config(here, environment={}).collections["modes"]
    ran = invoke("privatize", "-c", here, "modes", stdin="bus\n")
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


@pytest.mark.parametrize(
    ("until", "said"),
    [
        *((until, "") for until in ("noon", "2026-11-21", "2026-11-21T10:00:00", "")),
        (SECONDS, " (this looks like seconds)"),
        ("2026", ", got 2026, which is 1970-01-01T00:00:02.026Z"),
        ("-5", ", got -5, which is 1969-12-31T23:59:59.995Z"),
    ],
)
def test_close_needs_a_time(here: str, until: str, said: str):
    message = refused(invoke("close", "-c", here, f"--until={until}", "modes"))
    assert "an RFC 3339 time with Z or an offset" in message
    assert f"or epoch milliseconds{said}" in message
