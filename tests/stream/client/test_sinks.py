"""Finals in files and databases: typed rows, the same however often they are stored."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

import ldpstream as ldp
from tests.stream.modes import AGES, MODES


@pytest.fixture(scope="module")
def finals() -> list[ldp.EstimateDocument]:
    documents = []
    for collection, values in ((MODES, ["bus"] * 300), (AGES, [30.0, 40.0] * 200)):
        driver = ldp.Driver(collection, start="2026-11-21T10:00:00Z")
        for _ in range(2):
            driver.send(values)
            driver.advance("65m")
        documents += driver.finals
    assert len(documents) == 4
    return documents


def test_a_replay_leaves_identical_rows(finals: list[ldp.EstimateDocument], tmp_path: Path):
    file, base = str(tmp_path / "finals.parquet"), tmp_path / "finals.db"

    def stored() -> tuple[bytes, list[Any]]:
        with closing(sqlite3.connect(base)) as connection, connection:
            rows = connection.execute("select * from ldpstream_finals order by 1, 2, 3, 4, 5")
            return Path(file).read_bytes(), list(rows)

    for to in (file, f"sqlite:///{base}"):
        ldp.store_documents(finals[:3], to)
        ldp.store_documents(finals[2:], to)
    first = stored()
    for to in (file, f"sqlite:///{base}"):
        ldp.store_documents(reversed(finals), to)
        ldp.store_documents([finals[1], finals[0], finals[1]], to)
    assert stored() == first
    frame, rows = pd.read_parquet(file), pq.read_table(file).to_pylist()
    assert [tuple(row.values()) for row in rows] == first[1]
    shares = {(row["start"], row["name"]): row["value"] for row in rows if row["kind"] == "value"}
    for document in finals:
        assert document.window is not None
        for one in document.distribution:
            name = str(one.value)
            assert shares[document.window.start, name] == one.share
    assert frame["n"].dtype == "int64"
    assert frame["final"].all()


def test_a_new_document_of_a_window_replaces_all_its_rows(
    finals: list[ldp.EstimateDocument], tmp_path: Path
):
    withheld = finals[0].model_copy(update={"withheld": True, "n": 3})
    for to in (str(tmp_path / "f.parquet"), f"sqlite:///{tmp_path / 'f.db'}"):
        ldp.store_documents(finals, to)
        ldp.store_documents([withheld], to)
    rows = pq.read_table(tmp_path / "f.parquet").to_pylist()
    assert finals[0].window is not None
    key = ("modes", finals[0].window.start)
    of = [row for row in rows if (row["collection"], row["start"]) == key]
    assert [(row["kind"], row["n"], row["value"]) for row in of] == [("none", 3, None)]
    with closing(sqlite3.connect(tmp_path / "f.db")) as connection, connection:
        (count,) = connection.execute("select count(*) from ldpstream_finals").fetchone()
    assert count == len(rows)


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("finals.csv", "expected NAME.parquet, or a database such as sqlite:///NAME.db, got"),
        ("nothing://", "expected an SQLAlchemy URL"),
        ("other.parquet", "other.parquet: expected a Parquet file"),
        ("table.parquet", "table.parquet: expected the columns of finals: choose another file"),
    ],
)
def test_other_destinations_are_refused(
    finals: list[ldp.EstimateDocument], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str,
    said: str,
):  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("other.parquet").write_text("no table")
    pd.DataFrame({"a": [1]}).to_parquet("table.parquet")
    with pytest.raises(ValueError, match=said):
        ldp.store_documents(finals, to)
    with closing(sqlite3.connect("other.db")) as connection, connection:
        connection.execute("create table ldpstream_finals (a int)")
    with pytest.raises(ValueError, match="expected the columns of finals in its table"):
        ldp.store_documents(finals, "sqlite:///other.db")
