"""Impossible keys of a collection are refused, each by its path."""

import math
from pathlib import Path

import pytest

from ldpstream.mechanisms import SpecError, load_spec
from tests.exact.specs import BASE, BINARY, BITS, GEOMETRIC, HIGH_LOW, make

PATH = "collection.checkins"
HIDDEN = {**HIGH_LOW, "mechanism": "groups"}
IMPOSSIBLE = {
    "mechanism": (
        BASE,
        {"mechanism": "laplace"},
        "mechanism",
        "binary, block-hadamard, groups, high-low",
    ),
    "mechanism type": (BASE, {"mechanism": ["binary"]}, "mechanism", "one of"),
    "epsilon 0": (BASE, {"epsilon": 0}, "epsilon", "a finite number above 0, got 0"),
    "epsilon NaN": (BASE, {"epsilon": math.nan}, "epsilon", "a finite number above 0, got nan"),
    "epsilon true": (BASE, {"epsilon": True}, "epsilon", "a finite number above 0, got true"),
    "epsilon list": (BASE, {"epsilon": [1.0, 2.0]}, "epsilon", "got a list of 2"),
    "budgets one": (BINARY, {"epsilon": 1.0}, "epsilon", "a list of two numbers"),
    "budgets three": (BINARY, {"epsilon": [1, 2, 3]}, "epsilon", "a list of two numbers"),
    "budget 0": (BINARY, {"epsilon": [1.0, 0]}, "epsilon[1]", "a number above 0, got 0"),
    "budget NaN": (BINARY, {"epsilon": [math.nan, 1]}, "epsilon[0]", "a number above 0, got nan"),
    "budgets infinite": (BINARY, {"epsilon": [math.inf] * 2}, "epsilon", "at most one infinite"),
    "binary of three": (BINARY, {"domain": {"size": 3}}, "domain", "2 values with binary, got 3"),
    "binary blocks": (BINARY, {"domain": {"size": 2, "blocks": 1}}, "domain.blocks", "no blocks"),
    "binary sensitive": (BINARY, {"sensitive": ["no"]}, "sensitive", "no such key with binary"),
    "hadamard sensitive": (BASE, {"sensitive": ["a"]}, "sensitive", "no such key"),
    "all alone": (
        BASE,
        {"domain": {"values": ["a", "b"], "blocks": 1}},
        "domain.blocks",
        "a block of two or more values",
    ),
    "high-low blocks": (HIGH_LOW, {"domain": {"size": 10, "blocks": 5}}, "domain.blocks", "no"),
    "groups share": (HIDDEN, {"share": 1.5}, "share", "the share of users with a sensitive value"),
    "groups blocks": (HIDDEN, {"domain": {"size": 10, "blocks": 5}}, "domain.blocks", "no blocks"),
    "share elsewhere": (HIGH_LOW, {"share": 0.2}, "share", "no such key with high-low"),
    "sensitive none": (HIGH_LOW, {"sensitive": []}, "sensitive", "at least one value to protect"),
    "sensitive text": (HIGH_LOW, {"sensitive": "0"}, "sensitive", "a list"),
    "sensitive twice": (HIGH_LOW, {"sensitive": [1, 2, 1]}, "sensitive", "each value once"),
    "sensitive outside": (
        HIGH_LOW,
        {"sensitive": [1, 10]},
        "sensitive[1]",
        "an integer in 0..9, got 10",
    ),
    "sensitive misspelt": (
        HIGH_LOW,
        {"sensitive": ["hivv"], "domain": {"values": ["none", "flu", "hiv"]}},
        "sensitive[0]",
        "one of the 3 labels of the domain, such as 'none', got 'hivv' (did you mean hiv?)",
    ),
    "interval huge": (
        BASE,
        {"domain": {"interval": [0, 10**400], "bins": 4}},
        "domain.interval",
        "double precision",
    ),
    "geometric of labels": (
        GEOMETRIC,
        {"domain": {"values": ["a", "b"]}},
        "domain",
        "an ordered domain with l1-geometric (size, sizes, grid or interval), got labels",
    ),
    "bits of labels": (
        BITS,
        {"domain": {"values": ["a", "b"]}},
        "domain",
        "an ordered domain with l1-bits (size, sizes, grid or interval), got labels",
    ),
    "bits blocks": (BITS, {"domain": {"size": 10, "blocks": 5}}, "domain.blocks", "no blocks"),
    "geometric blocks": (
        GEOMETRIC,
        {"domain": {"size": 10, "blocks": 5}},
        "domain.blocks",
        "no blocks with l1-geometric",
    ),
    "topic": (BASE, {"topic": "check ins"}, "topic", "a topic of at most"),
    "topic empty": (BASE, {"topic": ""}, "topic", "a topic"),
    "topic number": (BASE, {"topic": 3}, "topic", "a topic"),
    "precision 0": (BASE, {"precision": "0s"}, "precision", "a duration above 0"),
    "precision number": (BASE, {"precision": 1000}, "precision", "a duration"),
    "precision huge": (BASE, {"precision": "999999999999d"}, "precision", "at most 36500d"),
    "precision unit": (BASE, {"precision": "1 fortnight"}, "precision", "a duration"),
}


@pytest.mark.parametrize(
    ("mapping", "changes", "key", "expected"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys()
)
def test_an_impossible_key_is_named(
    tmp_path: Path, mapping: dict, changes: dict, key: str, expected: str
):
    with pytest.raises(SpecError) as caught:
        make(tmp_path, mapping, **changes)
    assert caught.value.path == f"{PATH}.{key}"
    assert expected in caught.value.expected
    assert str(caught.value) == f"{PATH}.{key}: expected {caught.value.expected}"


@pytest.mark.parametrize("key", ["mechanism", "epsilon", "domain"])
def test_a_missing_key_is_named(tmp_path: Path, key: str):
    mapping = {k: v for k, v in BASE.items() if k != key}
    with pytest.raises(SpecError) as caught:
        make(tmp_path, mapping)
    assert caught.value.path == f"{PATH}.{key}"


@pytest.mark.parametrize("name", ["", "two words", "a/b", "x" * 300])
def test_a_name_that_makes_no_topic_is_refused(tmp_path: Path, name: str):
    with pytest.raises(SpecError, match="a name of letters"):
        make(tmp_path, BASE, name=name)


@pytest.mark.parametrize(
    ("content", "path", "expected"),
    [
        (None, "file", "a readable file"),
        (b"[collection", "file", "TOML"),
        (b"\xff", "file", "TOML"),
        (b"", "collection.places", "this table"),
        (b"collection = 3", "collection.places", "this table"),
        (b"[collection.other]", "collection.places", "this table"),
        (b"[collection]\nplaces = 1", "collection.places", "this table"),
        (b"[collection.places]", "collection.places.domain", "a table with one of"),
    ],
)
def test_a_file_that_has_no_such_collection_is_refused(
    tmp_path: Path, content: bytes | None, path: str, expected: str
):
    file = tmp_path / "ldpstream.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SpecError, match=expected) as caught:
        load_spec(file, "places")
    assert caught.value.path == (str(file) if path == "file" else path)
