"""Finals in files: typed rows, the same however often they are stored."""

import os
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

import ldpstream as ldp
from ldpstream.agents.document.sinks import check_target
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
    file = tmp_path / "finals.parquet"
    ldp.store_documents(finals[:3], str(file))
    ldp.store_documents(finals[2:], str(file))
    first = file.read_bytes()
    ldp.store_documents(reversed(finals), str(file))
    ldp.store_documents([finals[1], finals[0], finals[1]], str(file))
    assert file.read_bytes() == first
    frame, rows = pd.read_parquet(file), pq.read_table(file).to_pylist()
    shares = {(row["start"], row["name"]): row["value"] for row in rows if row["kind"] == "value"}
    for document in finals:
        for one in document.distribution:
            name = str(one.value)
            assert shares[document.window.start, name] == one.share
    assert frame["n"].dtype == "int64"
    assert frame["final"].all()


def test_a_new_document_of_a_window_replaces_all_its_rows(
    finals: list[ldp.EstimateDocument], tmp_path: Path
):
    withheld = finals[0].model_copy(update={"withheld": True, "n": 3})
    file = str(tmp_path / "f.parquet")
    ldp.store_documents(finals, file)
    ldp.store_documents([withheld], file)
    rows = pq.read_table(file).to_pylist()
    key = ("modes", finals[0].window.start)
    of = [row for row in rows if (row["collection"], row["start"]) == key]
    assert [(row["kind"], row["n"], row["value"]) for row in of] == [("none", 3, None)]


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("finals.csv", "expected a file NAME.parquet, which databases load, got finals.csv"),
        ("sqlite:///finals.db", "expected a file NAME.parquet, which databases load, got sqlite"),
        ("other.parquet", "other.parquet: expected a Parquet file"),
        ("pipe.parquet", "pipe.parquet: expected a file, got something else"),
        ("table.parquet", "table.parquet: expected the columns of finals: choose another file"),
    ],
)
def test_other_destinations_are_refused(
    finals: list[ldp.EstimateDocument], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str,
    said: str,
):  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("other.parquet").write_text("no table")
    os.mkfifo("pipe.parquet")
    pd.DataFrame({"a": [1]}).to_parquet("table.parquet")
    with pytest.raises(ValueError, match=said):
        ldp.store_documents(finals, to)


def test_what_a_file_needs_is_asked_for_before_there_is_a_final(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"the extra parquet brings: pip install"):
        check_target("finals.parquet")
