"""Bad values and bad reports: one message names the line and what was expected."""

import json
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from ldpstream.agents.cli.main import main
from ldpstream.agents.config import load_config
from tests import forked
from tests.stream.cli import PLACES, configured, invoke, refused

CELL = "expected 2 integers in 0..1, 0..2"
MODE = "expected one of the 3 labels of the domain"
AGE = "expected a number in [0, 100]"


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("places", "0,0\n1,3\n", f"stdin: line 2: {CELL}"),
        ("places", "0,0\n-1,0\n", f"stdin: line 2: {CELL}"),
        ("places", "0\n", f"stdin: line 1: {CELL}"),
        ("places", "0,0,0\n", f"stdin: line 1: {CELL}"),
        ("places", "0,0\n\n0,0\n", f"stdin: line 2: {CELL}"),
        ("places", "0,x17\n", f"stdin: line 1: {CELL}"),
        ("places", f"0,{'9' * 30}\n", f"stdin: line 1: {CELL}"),
        ("places", "1.5,0\n", f"stdin: line 1: {CELL}"),
        ("modes", "bus\ntaxi\n", f"stdin: line 2: {MODE}"),
        ("modes", "walk, slowly\n", f"stdin: line 1: {MODE}"),
        ("modes", "Bus\n", f"stdin: line 1: {MODE}"),
        ("ages", "17\nnan\n", f"stdin: line 2: {AGE}"),
        ("ages", "inf\n", f"stdin: line 1: {AGE}"),
        ("ages", "100.5\n", f"stdin: line 1: {AGE}: --clamp moves numbers to the nearest end"),
        ("ages", "young\n", f"stdin: line 1: {AGE}"),
        ("places", "", "stdin: expected at least one value line, got none"),
        ("modes", 'bus\n"bus\ntrain"\n', "stdin: expected one value per line, without line breaks"),
        ("modes", 'bus\n"bus"x\n', "stdin: line 2: expected CSV: "),
        ("modes", b"bus\n\xff\n", "stdin: line 1 or later: expected UTF-8"),
        ("modes", "b" * 200_000 + "\n", "stdin: line 1: expected CSV: field larger than"),
    ],
)
def test_values_outside_the_domain_are_refused_by_line_and_never_repeated(
    tmp_path: Path, name: str, values: str | bytes, message: str
):
    file = configured(tmp_path)
    result = invoke("privatize", "-c", file, name, stdin=values)
    said = refused(result)
    assert message in said
    bad = {"taxi", "x17", "9" * 30, "100.5", "young", "slowly", "-1", "Bus"}
    assert not any(word in said for word in bad)
    assert result.stdout == ""


@pytest.mark.parametrize(
    "line", ["bus", "yesterday,bus", ",bus", "2026-11-21,bus", "2026-11-21T10:00:00,bus",
             "2026-13-21T10:00:00Z,bus", "99999999999999999999,bus", "1e3,bus", ""],
)  # fmt: skip
def test_times_are_refused_by_line(tmp_path: Path, line: str):
    file = configured(tmp_path)
    values = f"1795255200000,bus\n{line}\n"
    result = invoke("privatize", "-c", file, "--times", "--replay", "modes", stdin=values)
    assert refused(result).startswith(
        "stdin: line 2: expected an RFC 3339 time with Z or an offset, or epoch milliseconds"
    )


def test_a_time_without_a_value_is_refused_as_such(tmp_path: Path):
    file = configured(tmp_path)
    result = invoke(
        "privatize", "-c", file, "--times", "--replay", "modes", stdin="1795255200000\n"
    )
    assert refused(result) == f"stdin: line 1: {MODE}, such as 'bus' after the time"


def report_lines(tmp_path: Path, **changes: Any) -> str:
    """Return a good report line and one with fields changed; None removes a field."""
    spec = load_config(configured(tmp_path)).collections["places"].spec
    good = {"collection": "places", "fingerprint": spec.fingerprint.hex(), "report": "AA=="}
    changed = {name: value for name, value in {**good, **changes}.items() if value is not None}
    return f"{json.dumps(good)}\n{json.dumps(changed)}\n"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"report": ""}, "expected a report of 1 bytes, got 0"),
        ({"report": b64encode(b"\0\0").decode()}, "expected a report of 1 bytes, got 2"),
        ({"report": "A"}, "expected a report in base64"),
        ({"report": 3}, "expected a report in base64"),
        ({"report": None}, "expected a JSON object with collection, fingerprint, report"),
        ({"report": b64encode(b"\xff").decode()}, "expected a report that places can produce"),
        ({"collection": "modes"}, "expected a report of collection places, got one from another"),
        ({"fingerprint": "00" * 8}, "got one from another spec"),
        ({"fingerprint": 3}, "got one from another spec"),
        ({"extra": 1}, "expected a JSON object with collection, fingerprint, report and"),
        ({"time": "2026-11-21T10:00:00Z"}, "expected times on all lines, or on none"),
        ({"time": "noon"}, "expected an RFC 3339 time"),
        ({"time": None, "report": ["AA=="]}, "expected a report in base64"),
    ],
)
def test_malformed_reports_are_refused_by_line(
    tmp_path: Path, changes: dict[str, Any], message: str
):
    lines = report_lines(tmp_path, **changes)
    said = refused(invoke("estimate", "--json", "-c", configured(tmp_path), "places", stdin=lines))
    assert said.startswith("stdin: line 2: ")
    assert message in said


@pytest.mark.parametrize("line", ["", "{", "[]", "3", "null", "[" * 100_000, "\0"])
def test_lines_that_are_not_json_objects_are_refused(tmp_path: Path, line: str):
    good = report_lines(tmp_path).splitlines()[0]
    file = configured(tmp_path)
    said = refused(invoke("estimate", "--json", "-c", file, "places", stdin=f"{good}\n{line}\n"))
    assert said.startswith("stdin: line 2: expected a JSON object")


def test_reports_of_a_changed_spec_are_refused(tmp_path: Path):
    file = configured(tmp_path)
    reports = invoke("privatize", "-c", file, "modes", stdin="bus\n").stdout
    configured(tmp_path, PLACES.replace("epsilon = 1.0", "epsilon = 1.5"))
    said = refused(invoke("estimate", "--json", "-c", file, "modes", stdin=reports))
    assert "stdin: line 1: expected a report with fingerprint" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--range", "0..1"], "--range: expected 2 pairs [low, high], of numbers"),
        (["--range", "0..2,0..0"], "--range: expected whole numbers in 0..1, got 0..2"),
        (["--range", "north"], "--range: expected LO..HI, one per dimension"),
        (["--quantile", "0"], "--quantile: expected a number above 0 and below 1, got 0"),
        (["--quantile", "1.0"], "--quantile: expected a number above 0 and below 1, got 1.0"),
        (["--quantile", "nan"], "--quantile: expected a number above 0 and below 1, got nan"),
        (["--confidence", "95"], "--confidence: expected a number above 0 and below 1, got 95"),
        (["--top", "many"], '--top: expected a whole number or "all", got many'),
        (["--method", "wilson"], "Invalid value for '--method'"),
        (["--estimand", "everybody"], "Invalid value for '--estimand'"),
        (["--project", "sphere"], "Invalid value for '--project'"),
    ],
)
def test_impossible_queries_are_refused(tmp_path: Path, options: list[str], message: str):
    lines = report_lines(tmp_path)
    result = invoke(
        "estimate", "--json", "-c", configured(tmp_path), *options, "places", stdin=lines
    )
    assert message in refused(result)


@pytest.mark.slow
def test_a_full_disk_is_named(tmp_path: Path):
    file = configured(tmp_path)
    for command in (("privatize", "-c", file, "modes"), ("certify", "-c", file)):
        with Path("/dev/full").open("wb") as full:
            ran = forked.run(command, stdin=b"bus\n", stdout=full, strict=True)
        assert ran.returncode == 2
        assert ran.stderr == (
            b"cannot write to standard output, /dev/full: No space left on device\n"
        )


def test_closed_input_is_read_as_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SystemExit) as ended:
        main(["privatize", "-c", configured(tmp_path), "modes"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "stdin: expected at least one value line, got none\n"


def test_input_that_cannot_be_read_is_named(tmp_path: Path):
    file = configured(tmp_path)
    for command in ("privatize", "estimate"):
        said = refused(invoke(command, "-c", file, "modes", "/proc/self/mem"))
        assert said == "/proc/self/mem: cannot read it: Input/output error"


def test_a_nominal_budget_passes_with_a_warning(tmp_path: Path):
    file = configured(tmp_path, PLACES.replace("epsilon = 1.0", "epsilon = 100.0"))
    result = invoke("certify", "-c", file)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["pass"]
    (line,) = result.stderr.splitlines()
    assert line.startswith("collection.modes: warning: its least budget is 100, so a report may be")


def test_all_bad_report_lines_are_counted_and_the_first_ones_named(tmp_path: Path):
    lines = report_lines(tmp_path).splitlines()[:1] * 100
    for place in (4, 5, 50, 99):
        lines[place] = "no report"
    said = refused(
        invoke("estimate", "--json", "-c", configured(tmp_path), "places", stdin="\n".join(lines))
    )
    assert said == (
        "stdin: line 5: expected a JSON object as privatize writes it; "
        "4 of 100 lines are bad, also 6, 51, ..."
    )
