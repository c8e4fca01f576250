"""The device document: with it alone a device can privatize; every digest in it can be checked."""

import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms.base.canonical import text_table
from ldpstream.mechanisms.families.matrix.strategy import Strategy, strategy_tables
from tests.exact.wire.test_vectors import SPECS, read, spec_of
from tests.stream.cli import configured, invoke

VECTORS = {vector["name"]: vector for vector in read("devices.json")}
OF_FILES = ("matrix", "channel")


@pytest.mark.parametrize("name", [name for name in SPECS if not name.startswith(OF_FILES)])
def test_tables_have_the_digests_of_the_parameters(name: str):
    document = spec_of(SPECS[name]).device_document()
    canonical = document["canonical"].encode("ascii")
    assert hashlib.sha256(canonical).hexdigest()[:16] == document["fingerprint"]
    parameters = json.loads(canonical)["parameters"]
    assert document["collection"] == json.loads(canonical)["collection"]
    check_tables(document["tables"], parameters)


def check_tables(tables: dict, parameters: dict) -> None:
    """Check tables against the digests of their parameters, those of records by attribute."""
    if "attributes" in parameters:
        for one in parameters["attributes"]:
            check_tables(tables.get("attributes", {}).get(one["name"], {}), one["parameters"])
        return
    if "blocks" in tables:
        numbers = [block for block, length in tables["blocks"] for _ in range(length)]
        assert sha256(numbers) == parameters["blocks"]["sha256"]
    if "sensitive" in tables:
        numbers = np.hstack(tables["sensitive"]).tolist()
        assert sha256(numbers) == parameters["sensitive"]["sha256"]
    several = parameters.get("blocks", {"count": 1})["count"] > 1
    assert list(tables) == ["blocks"] * several + ["sensitive"] * ("sensitive" in parameters)


@pytest.mark.parametrize("name", [name for name in VECTORS if name.startswith(OF_FILES)])
def test_tables_of_files_have_the_digests_of_the_parameters(name: str):
    document = spec_of(VECTORS[name]).device_document()
    parameters, tables = json.loads(document["canonical"])["parameters"], document["tables"]
    found = {table: digest(content) for table, content in tables.items()}
    known = {
        "channel": parameters.get("channel"),
        "policy": parameters.get("policy"),
        "blocks": parameters.get("policy"),
        "strategy": parameters.get("strategy"),
    }
    assert found == {table: known[table]["sha256"] for table in tables}
    # What the parameters hold in full has no table, and every digest has one. That of sensitive
    # values has none either: they join all values, whichever they are.
    assert sorted(tables) == sorted(
        {"block": "blocks"}.get(one["kind"], "policy") if key == "policy" else key
        for key, one in parameters.items()
        if isinstance(one, dict) and "sha256" in one and one.get("kind") != "high-low"
    )


def digest(content: object) -> str:
    if isinstance(content, str):
        return hashlib.sha256(content.encode("ascii")).hexdigest()
    assert isinstance(content, list)
    if len(content[0]) == 2:
        return sha256([block for block, length in content for _ in range(length)])
    return sha256([entry for row in content for entry in row])


def test_tables_of_more_than_a_mebibyte_are_left_out():
    assert text_table("policy", bytes(1 << 20)) != {}
    assert text_table("policy", bytes((1 << 20) + 1)) == {}
    entries = np.ones((513, 512), dtype=np.int32)
    assert strategy_tables(Strategy("file", entries)) == {}
    assert list(strategy_tables(Strategy("file", entries[:-1]))) == ["strategy"]


def sha256(numbers: list[int]) -> str:
    return hashlib.sha256(struct.pack(f"<{len(numbers)}i", *numbers)).hexdigest()


def test_the_command_prints_the_device_document(tmp_path: Path):
    result = invoke("spec", "-c", configured(tmp_path), "places")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["collection"] == "places"
    assert document["tables"] == {"blocks": [[0, 1], [1, 1], [2, 1], [0, 1], [1, 1], [2, 1]]}
