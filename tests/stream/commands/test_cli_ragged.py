"""Nothing is taken silently for something else: other columns, repeated keys, spellings."""

import json
from pathlib import Path

import pytest

from tests.stream.cli import configured, invoke, refused

CONFIGURATION = """
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
def file(tmp_path: Path) -> str:
    return configured(tmp_path, CONFIGURATION)


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
    file: str, row: str, columns: str | None, name: str
):
    chosen = () if columns is None else ("--columns", columns)
    lines = f"who,age,score\nRoe,40,8\n{row}\nPoe,42,9\n"
    said = refused(invoke("privatize", "-c", file, *chosen, name, stdin=lines))
    assert said == "stdin: line 3: expected 3 cells, one for each column that the first line names"
    found = invoke("privatize", "-c", file, *chosen, "--skip-bad", name, stdin=lines)
    assert len(found.stdout.splitlines()) == 2


def test_a_ragged_row_is_bad_for_its_cells_and_not_for_its_time(file: str):
    lines = "at,age\n2026-11-21T10:00:00Z,1\nsoon,1,2\n"
    command = ("privatize", "-c", file, "--times", "--replay", "--columns", "at,age", "scores")
    assert "line 3: expected 2 cells" in refused(invoke(*command, stdin=lines))


def test_a_report_with_a_repeated_key_is_refused(file: str):
    line = invoke("privatize", "-c", file, "scores", stdin="1\n").stdout
    twice = line.replace('"report"', '"collection":"scores","report"')
    assert json.loads(twice) == json.loads(line)
    said = refused(invoke("estimate", "-c", file, "scores", stdin=twice))
    assert said == "stdin: line 1: expected a JSON object as privatize writes it"


@pytest.mark.parametrize("spelling", [NFC, NFD])
def test_a_label_is_found_in_every_spelling(file: str, spelling: str):
    columns = ("--columns", spelling)
    for given in (NFC, NFD):
        found = invoke("privatize", "-c", file, *columns, "cafes", stdin=f"x,{given}\n1,{given}\n")
        line = json.loads(found.stdout)
        # Epsilon is so large that the report shows the value.
        assert (
            line["report"]
            == json.loads(invoke("privatize", "-c", file, "cafes", stdin=f"{NFC}\n").stdout)[
                "report"
            ]
        )


@pytest.mark.parametrize("alike", [NFD, f" {NFC}", f"{NFC}\u00a0"])
@pytest.mark.parametrize("in_file", [False, True])
def test_labels_that_look_the_same_are_refused(tmp_path: Path, alike: str, in_file: bool):
    (tmp_path / "labels.csv").write_text(f"{NFC}\nbar\n{alike}\n")
    values = 'file = "labels.csv"' if in_file else f"values = {json.dumps([NFC, 'bar', alike])}"
    text = CONFIGURATION.replace('values = ["Caf\u00e9", "bar"]', values)
    said = refused(invoke("certify", "-c", configured(tmp_path, text), "cafes"))
    place = "file line 3: expected each label" if in_file else "values[2]: expected each value"
    assert f"collection.cafes.domain.{place} once" in said
    assert ("line 1 again" if in_file else "which looks like values[0]") in said


def test_blocks_of_a_file_are_the_same_in_every_spelling(tmp_path: Path):
    (tmp_path / "labels.csv").write_text(f"a,{NFC}\nb,{NFD}\nc,bar\nd,bar\n")
    text = CONFIGURATION.replace(
        'values = ["Caf\u00e9", "bar"]', 'file = "labels.csv", header = false'
    )
    found = invoke("certify", "-c", configured(tmp_path, text), "cafes")
    assert found.exit_code == 0, found.output
    assert "the value's block, one of 2" in found.output
    assert "alone in" not in found.output
