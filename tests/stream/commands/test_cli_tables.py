"""`privatize` and `send` read tables of Parquet and Arrow as they read CSV."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpstream import define_collection
from ldpstream.agents.cli.terminal.columnar import read_table
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.reports import read_reports, write_table
from ldpstream.agents.cli.terminal.value_options import Reading
from ldpstream.agents.cli.terminal.values import read_values
from ldpstream.agents.config import load_config
from tests.stream.cli import configured, invoke, refused

START_MS = 1_795_255_200_000
WHEN = datetime(2026, 11, 21, 10, 0, 0, 999_999, UTC)
FAR = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
CERTAIN = """
[collection.c]
mechanism = "randomized-response"
epsilon = 60.0
domain = { values = ["0", "1", "2", "true", "2026-11-21T10:00:00.999Z", 1700000000123, "2.50",
  16777216, 9007199254740992] }
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


NONE = (parquet, "s")
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
def test_rows_that_repeat_give_what_csv_gives(file: str, form: Form):
    domain = load_config(file).collections["g"].spec.domain
    rng = np.random.default_rng(7)
    x, y = rng.integers(0, 4, 1_000), rng.integers(0, 4, 1_000)
    whens = START_MS + 1_000 * rng.integers(0, 30, 1_000)
    times = pa.array(whens).cast(pa.timestamp("ms", tz="UTC"))
    table = pa.table({"time": times, "x": x, "y": y.astype(np.float32)})
    lines = "".join(f"{when},{a},{b}\n" for when, a, b in zip(whens, x, y, strict=True))
    reading = Reading(times=True, skip_bad=True)
    columns, csv = (
        list(read_values(io.BytesIO(content), domain, reading, chunk=300))
        for content in (form(table), lines.encode())
    )
    # 3 is no x.
    assert 0 < sum(len(chunk.indices) for chunk in columns) < 1_000
    for name in ("indices", "times_ms", "lines"):
        one, other = (np.concatenate([getattr(c, name) for c in read]) for read in (columns, csv))
        assert np.array_equal(one, other)


def test_rows_of_many_columns_stay_what_they_are():
    columns = {name: [f"{name}{row * 7 % 2_003}" for row in range(2_000)] for name in "abcdefgh"}
    content = io.BytesIO(arrow_stream(pa.table(columns)))
    (chunk,) = read_table(content, (), name="table", chunk=20_000, times=False)
    assert list(chunk.rows) == list(zip(*columns.values(), strict=True))


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_integers_are_read_as_their_digits_however_far_apart(kind: str):
    ends, drawn = np.iinfo(kind), np.random.default_rng(4)
    low, high = int(ends.min), int(ends.max)
    for first, last in ((low, low + 5), (high - 5, high), (0, 100), (low, high)):
        numbers = drawn.integers(first, last, 60, dtype=kind, endpoint=True)
        table = pa.table({"value": pa.array(numbers)}).slice(3, 50)
        rows = [
            chunk.rows
            for chunk in read_table(
                io.BytesIO(arrow_file(table)), [], name="t", chunk=20, times=False
            )
        ]
        texts = [coded.distinct[code] for coded in rows for code in coded.codes.tolist()]
        assert texts == [(str(number),) for number in numbers[3:53].tolist()]


def test_a_table_that_is_bad_throughout_is_not_read_to_its_end(file: str):
    domain = load_config(file).collections["c"].spec.domain
    out, batch = io.BytesIO(), pa.record_batch({"mode": ["secret"] * 1_500})
    with pa.ipc.new_stream(out, batch.schema) as writer:
        for _ in range(20):
            writer.write_batch(batch)
    with pytest.raises(Refused, match=r"10,500 of the first 10,500 lines are bad"):
        list(read_values(io.BytesIO(out.getvalue()), domain, Reading(), chunk=20_000))


def test_no_table_makes_a_command_import_pandas(file: str, tmp_path: Path):
    """Where it is installed, pyarrow imports it for conversions, a fifth of a command."""
    assert find_spec("pandas") is not None
    times = pa.array([START_MS, None]).cast(pa.timestamp("ms", tz="UTC"))
    script = (
        "import sys; from ldpstream.agents.cli.main import main\n"
        "def run(*arguments):\n  try: main(arguments)\n"
        "  except SystemExit as end: assert not end.code\n"
    )
    for form in FORMS:
        values, to = tmp_path / form.__name__, str(tmp_path / f"{form.__name__} reports")
        values.write_bytes(form(pa.table({"time": times, "mode": ["1", None]})))
        options = ["--times", "--replay", "--skip-bad", "--to", to, "c", str(values)]
        for name, *rest in (["privatize", *options], ["estimate", "c", to]):
            script += f"run{(name, '-c', file, *rest)!r}\n"
    script += "print('pandas' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("form", FORMS)
def test_bad_rows_are_counted_over_chunks(file: str, tmp_path: Path, form: Form):
    reading = Reading(columns=("mode",))
    domain = load_config(file).collections["c"].spec.domain
    labels = ["1"] * 10
    labels[3] = labels[8] = "secret"
    path = Path(keep(tmp_path, form(pa.table({"mode": labels}))))
    with path.open("rb") as stream, pytest.raises(Refused) as said:
        list(read_values(stream, domain, reading, chunk=4))
    assert "line 4: expected one of the 9 labels" in str(said.value)
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
        (pa.array([2.0], pa.float32()), 2),
        (pa.array([2.0], pa.float32()).cast(pa.float16()), 2),
        (pa.array([-0.0]), 0),
        (pa.array([1_700_000_000_123.0]), 5),
        (pa.array([Decimal("2.00")], pa.decimal128(38, 18)), 2),
        (pa.array([Decimal(0)], pa.decimal128(38, 18)), 0),
        (pa.array([Decimal("2.50")], pa.decimal128(4, 2)), 6),
        (pa.array([Decimal(1_700_000_000_123)], pa.decimal256(60, 0)), 5),
        (pa.array(["2"], pa.large_string()).dictionary_encode(), 2),
        (pa.array(["2"], pa.string_view()), 2),
        (pa.array(["2"]).dictionary_encode(), 2),
        (pa.array([True]), 3),
        (pa.array([WHEN]), 4),
        (pa.array([WHEN], pa.timestamp("us", "Europe/Berlin")), 4),
        (pa.array([WHEN], pa.timestamp("us", "UTC")).dictionary_encode(), 4),
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


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_without_a_zone_are_refused(file: str, tmp_path: Path, form: Form, unit: str):
    at = pa.array([WHEN.replace(tzinfo=None, microsecond=0)], pa.timestamp(unit))
    path = keep(tmp_path, form(pa.table({"mode": ["1"], "at": at})))
    command = ["privatize", "-c", file, "--times", "--replay", "--columns", "at,mode", "c", path]
    said = refused(invoke(*command))
    assert said == (
        f"{path}: column 'at': expected times with a zone, such as UTC, got times without one"
    )


@pytest.mark.parametrize(
    ("form", "unit"),
    # Parquet has no seconds.
    [(form, unit) for form in FORMS for unit in ("s", "ms", "us", "ns") if (form, unit) != NONE],
)
def test_extreme_and_missing_times_are_bad_lines(file: str, tmp_path: Path, form: Form, unit: str):
    ends = pa.array([-(1 << 63), (1 << 63) - 1, None, 10**9], pa.timestamp(unit, "UTC"))
    path = keep(tmp_path, form(pa.table({"mode": ["1"] * 4, "at": ends})))
    command = ["privatize", "-c", file, "--times", "--replay", "--skip-bad", "--columns", "at,mode"]
    found = invoke(*command, "c", path)
    times = [json.loads(line)["time"] for line in found.stdout.splitlines()]
    # Nanoseconds end within the years 1 to 9999: there is nothing extreme about them.
    extreme = ["1677-09-21T00:12:43Z", "2262-04-11T23:47:16Z"] if unit == "ns" else []
    plain = {"s": "2001-09-09T01:46:40Z", "ms": "1970-01-12T13:46:40Z"}
    assert times == [*extreme, plain.get(unit, times[-1])]
    assert "as bad: line" in found.stderr


def test_an_old_parquet_time_does_not_change_its_year(file: str, tmp_path: Path):
    """INT96 has no zone; pyarrow turns its year 9999 into 1816."""
    table = pa.table({"mode": ["1"], "at": pa.array([FAR], pa.timestamp("us", "UTC"))})
    out = io.BytesIO()
    pq.write_table(table, out, use_deprecated_int96_timestamps=True)
    command = ["privatize", "-c", file, "--times", "--replay", "--columns", "at,mode", "c"]
    said = refused(invoke(*command, keep(tmp_path, out.getvalue())))
    assert "column 'at': expected times with a zone" in said


@pytest.mark.parametrize("form", FORMS)
def test_a_name_may_be_repeated_where_nobody_asks_for_it(file: str, tmp_path: Path, form: Form):
    names = ["mode", "a", "a"]
    table = pa.table([pa.array(["1"]), pa.array([1]), pa.array([2])], names=names)
    path = keep(tmp_path, form(table))
    command = ["privatize", "-c", file]
    assert invoke(*command, "--columns", "mode", "c", path).exit_code == 0
    assert "expected a column 'a', once" in refused(invoke(*command, "--columns", "a", "c", path))
    path = keep(tmp_path, form(table.select([1, 2])))
    assert invoke(*command, "g", path).exit_code == 0


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        (parquet(pa.table({"a": ["1"]})), "b", "values: expected a column 'b', once"),
        (parquet(pa.table({"a": [["1"]]})), "a", "column 'a': expected texts, numbers or times"),
        (parquet(pa.table({"a": [b"\xff"]})), "a", "column 'a': expected texts, numbers or times"),
        (parquet(pa.table({"a": pa.array([1], pa.duration("s"))})), "a", "expected texts, numbers"),
        (parquet(pa.table({"a": pa.array([2.0**24], pa.float32())})), "a", "line 1: expected one"),
        (
            parquet(pa.table({"a": pa.array([2.0**53])})),
            "a",
            "line 1: expected one of the 9 labels",
        ),
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


def test_reports_are_written_and_read_as_a_table(file: str, tmp_path: Path):
    """Epsilon is so large that nothing is random: both forms hold the same reports."""
    values = keep(tmp_path, b"2026-11-21T10:00:00Z,0\n2026-11-21T10:00:01.5Z,2\n")
    command = ["privatize", "-c", file, "--times", "--replay", "c", values]
    table, lines = tmp_path / "reports.arrow", tmp_path / "reports"
    assert invoke(*command, "--to", str(table)).stdout == ""
    lines.write_text(invoke(*command).stdout)
    spec = load_config(file).collections["c"].spec
    for chunk in (1, 10):
        with table.open("rb") as first, lines.open("rb") as second:
            pairs = [
                [np.concatenate(each) for each in zip(*rows, strict=True)]
                for rows in (
                    [
                        (part.reports, part.times_ms)
                        for part in read_reports(stream, spec, chunk=chunk)
                    ]
                    for stream in (first, second)
                )
            ]
        assert all(map(np.array_equal, *pairs))
    estimate = ["estimate", "-c", file, "--json", "c"]
    assert invoke(*estimate, str(table)).stdout == invoke(*estimate, str(lines)).stdout
    assert "collection g" in refused(invoke("estimate", "-c", file, "g", str(table)))


def test_bad_input_leaves_the_old_table_and_nothing_else(file: str, tmp_path: Path):
    table, folder = tmp_path / "out" / "reports.arrow", tmp_path / "out"
    folder.mkdir()
    table.write_bytes(b"an older one")
    command = ["privatize", "-c", file, "--to"]
    refused(invoke(*command, str(table), "c", keep(tmp_path, b"0\nelephant\n")))
    assert table.read_bytes() == b"an older one"
    assert [*folder.iterdir()] == [table]
    (link := tmp_path / "link").symlink_to(table)
    assert invoke(*command, str(link), "c", keep(tmp_path, b"0\n")).exit_code == 0
    assert link.is_symlink()
    assert pa.ipc.open_file(table).read_all().num_rows == 1
    os.mkfifo(pipe := tmp_path / "pipe")
    said = refused(invoke(*command, str(pipe), "c", keep(tmp_path, b"0\n")))
    assert said == f"--to: {pipe}: expected a file, got something else"


def test_buffers_of_reports_are_read_without_what_fills_them_up():
    spec = define_collection(
        "c", mechanism="randomized-response", epsilon=1.0, domain={"size": 300}
    ).spec
    reports, file = np.arange(300), io.BytesIO()
    write_table(file, spec, [(reports, None)])
    written = pa.ipc.open_file(file).get_batch(0)
    column = written.column(0)
    filled = pa.py_buffer(column.buffers()[1].to_pybytes() + b"\0")
    columns = [pa.FixedSizeBinaryArray.from_buffers(column.type, 300, [None, filled])]
    file = io.BytesIO(arrow_stream(pa.Table.from_arrays(columns, schema=written.schema)))
    read = [part.reports for part in read_reports(file, spec, chunk=200)]
    assert np.array_equal(np.concatenate(read), reports)


def test_tables_with_other_reports_are_refused(file: str, tmp_path: Path):
    path = tmp_path / "reports.arrow"
    values = keep(tmp_path, b"0\n2\n1\n")
    invoke("privatize", "-c", file, "--to", str(path), "c", values)
    good = pa.ipc.open_file(path).read_all()
    bare = good.replace_schema_metadata()
    impossible = good.set_column(0, good.schema.field(0), pa.array([b"\xff"] * 3, pa.binary(1)))
    missing = good.set_column(0, good.schema.field(0), pa.array([None] * 3, pa.binary(1)))
    for table, expected in (
        (bare, "privatize --to wrote"),
        (good.rename_columns(["reports"]), "expected the columns report (fixed_size_binary[1])"),
        (impossible, "line 1: expected a report that c can produce; 3 of 3 lines are bad"),
        (missing, "expected no missing cells"),
        (good.slice(0, 0), "expected at least one report line, got none"),
    ):
        if table is not bare:
            table = table.replace_schema_metadata(good.schema.metadata)
        path.write_bytes(arrow_file(table))
        assert expected in refused(invoke("estimate", "-c", file, "c", str(path)))
    path.write_bytes(arrow_file(good)[:-8])
    assert "complete Parquet or Arrow table" in refused(
        invoke("estimate", "-c", file, "c", str(path))
    )
