"""`privatize` and `send` read tables of Parquet and Arrow as they read CSV."""

import io
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpstream.agents.config import load_config
from ldpstream.agents.terminal.errors import Refused
from ldpstream.agents.terminal.reading import Reading
from ldpstream.agents.terminal.values import read_values
from tests.stream.cli import configured, invoke, refused

WHEN = datetime(2026, 11, 21, 10, 0, 0, 999_999, UTC).replace(tzinfo=None)
CERTAIN = """
[collection.c]
mechanism = "randomized-response"
epsilon = 60.0
domain = { values = ["0", "1", "2", "true", "2026-11-21T10:00:00.999Z"] }
[collection.g]
mechanism = "l1-bits"
epsilon = 60.0
domain = { sizes = [3, 4] }
"""


def parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def arrow_file(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def arrow_stream(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


FORMS = [parquet, arrow_file, arrow_stream]
Form = Callable[[pa.Table], bytes]


@pytest.fixture
def file(tmp_path: Path) -> str:
    return configured(tmp_path, CERTAIN)


def keep(folder: Path, content: bytes) -> str:
    path = folder / "values"
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize("form", FORMS)
def test_columns_are_found_by_name_and_give_what_csv_gives(file: str, tmp_path: Path, form: Form):
    """Epsilon is so large that nothing is random: a report shows its value."""
    table = pa.table({"y": [3, 0, 1], "id": [b"\xff"] * 3, "x": [0.0, None, 2.0]})
    command = ["privatize", "-c", file, "--columns", "x,y", "--skip-bad", "g"]
    csv = invoke(*command, stdin="y,id,x\n3,,0\n0,,\n1,,2\n")
    found = invoke(*command, keep(tmp_path, form(table)))
    assert found.stdout == csv.stdout
    assert len(found.stdout.splitlines()) == 2
    assert "left out 1 of 3 lines as bad: line 2: expected 2 integers in 0..2" in found.stderr


@pytest.mark.parametrize("form", FORMS)
def test_bad_rows_are_counted_over_chunks(file: str, tmp_path: Path, form: Form):
    reading = Reading(columns=("mode",))
    domain = load_config(file).collections["c"].spec.domain
    labels = ["1"] * 10
    labels[3] = labels[8] = "secret"
    path = Path(keep(tmp_path, form(pa.table({"mode": labels}))))
    with path.open("rb") as stream, pytest.raises(Refused) as said:
        list(read_values(stream, domain, reading, chunk=4))
    assert "line 4: expected one of the 5 labels" in str(said.value)
    assert "2 of 10 lines are bad, also 9" in str(said.value)
    assert "secret" not in str(said.value)
    with path.open("rb") as stream:
        reading = Reading(columns=("mode",), skip_bad=True)
        read = list(read_values(stream, domain, reading, chunk=4))
        assert [chunk.lines.tolist() for chunk in read] == [[1, 2, 3], [5, 6, 7, 8], [10]]
        assert not stream.closed


@pytest.mark.parametrize(
    ("cells", "index"),
    [
        (pa.array([2], pa.int8()), 2),
        (pa.array([2.0]), 2),
        (pa.array(["2"]).dictionary_encode(), 2),
        (pa.array([True]), 3),
        (pa.array([WHEN]), 4),
        (pa.array([WHEN.replace(tzinfo=UTC)], pa.timestamp("us", "Europe/Berlin")), 4),
    ],
)
def test_cells_are_read_as_text(file: str, tmp_path: Path, cells: Any, index: int):
    domain = load_config(file).collections["c"].spec.domain
    content = parquet(pa.table({"only": cells}))
    # A pipe is not seekable.
    for stream in (io.BytesIO(content), Pipe(content)):
        (chunk,) = read_values(stream, domain, Reading(), chunk=10)
        assert chunk.indices.tolist() == [index]


class Pipe(io.BytesIO):
    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation


def test_times_are_a_column_too(file: str, tmp_path: Path):
    table = pa.table({"mode": ["1", "2"], "at": [WHEN, None]})
    path = keep(tmp_path, parquet(table))
    command = ["privatize", "-c", file, "--times", "--replay", "--columns", "at,mode"]
    found = invoke(*command, "--skip-bad", "c", path)
    assert [json.loads(line)["time"] for line in found.stdout.splitlines()] == [
        "2026-11-21T10:00:00Z"
    ]
    assert "line 2: expected an RFC 3339 time" in found.stderr


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        (parquet(pa.table({"a": ["1"]})), "b", "values: expected a column 'b', once"),
        (parquet(pa.table({"a": [["1"]]})), "a", "column 'a': expected texts, numbers or times"),
        (parquet(pa.table({"a": [b"\xff"]})), "a", "column 'a': expected texts, numbers or times"),
        (parquet(pa.table({"a": ["1"] * 99}))[:150], "a", "expected a complete Parquet or Arrow"),
        (
            arrow_file(pa.table({"a": ["1"] * 99}))[:300],
            "a",
            "expected a complete Parquet or Arrow",
        ),
        (arrow_stream(pa.table({"a": ["1"] * 99}))[:300], "a", "expected a complete Parquet or"),
        (arrow_stream(pa.table({"a": pa.array([], pa.string())})), "a", "at least one value line"),
    ],
)
def test_unusable_tables_are_refused(
    file: str, tmp_path: Path, content: bytes, columns: str, message: str
):
    path = keep(tmp_path, content)
    assert message in refused(invoke("privatize", "-c", file, "--columns", columns, "c", path))


def test_a_missing_pyarrow_is_named(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = keep(tmp_path, parquet(pa.table({"a": ["1"]})))
    result = invoke("privatize", "-c", file, "c", path)
    assert result.exit_code == 1
    assert "pip install 'ldpstream[parquet]'" in result.stderr
