"""`privatize` and `send`: columns by name; bad lines are counted, skipped or clamped."""

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.mechanisms.base.errors import ValueOutsideDomainError
from ldpstream.mechanisms.domains.fitting import find_bad, fit, nearest
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
        assert endless.stdin is not None
        assert endless.stderr is not None
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


@given(st.lists(st.sampled_from(["bus", "car", "plane", ""]), max_size=40))
def test_every_bad_label_is_found_and_no_other(labels: list[str]):
    domain = Labels(("bus", "car"))
    found = fit(labels, place=domain.index, check=domain.index)
    bad = [place for place, label in enumerate(labels) if label not in ("bus", "car")]
    assert list(found.bad) == bad
    assert found.good.tolist() == [p for p in range(len(labels)) if p not in bad]
    assert found.indices.tolist() == [["bus", "car"].index(labels[p]) for p in found.good]


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
