"""Partitions in every way to write them, and the first line of a domain's file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.mechanisms import Blocks, Domain, SpecError
from ldpstream.mechanisms.domains.blocks import (
    box_blocks,
    consecutive_blocks,
    listed_blocks,
    named_blocks,
)
from ldpstream.mechanisms.domains.parse import parse_domain


def parse(tmp_path: Path, **table: object) -> tuple[Domain, Blocks | None]:
    return parse_domain(table, path="domain", base=tmp_path)


def test_a_partition_knows_its_sizes_and_positions():
    blocks = Blocks(np.array([1, 0, 1, 2, 1]))
    assert blocks.sizes.tolist() == [1, 3, 1]
    assert (blocks.size, blocks.count) == (5, 3)
    assert blocks.position.tolist() == [0, 0, 1, 0, 2]
    assert blocks == Blocks([1, 0, 1, 2, 1])
    assert hash(blocks) == hash(Blocks([1, 0, 1, 2, 1]))
    assert blocks != Blocks([0, 1, 0, 2, 0])
    assert blocks != "blocks"
    with pytest.raises(ValueError, match="read-only"):
        blocks.of_value[0] = 0


@pytest.mark.parametrize("table", [[], [0, 2], [-1, 0], [[0]]])
def test_tables_that_are_not_partitions_are_refused(table: list):
    with pytest.raises(ValueError, match=r"expected a block|holds no value"):
        Blocks(np.array(table, dtype=np.int64))


def test_a_number_cuts_consecutive_values_into_blocks(tmp_path: Path):
    assert consecutive_blocks(7, 3, "b").of_value.tolist() == [0, 0, 0, 1, 1, 1, 2]
    _, blocks = parse(tmp_path, size=4, blocks=2)
    assert blocks == Blocks([0, 0, 1, 1])
    _, blocks = parse(tmp_path, values=["a", "b", "c"], blocks=3)
    assert blocks == Blocks.one(3)


def test_boxes_are_ragged_at_the_far_edges():
    assert box_blocks((3, 5), (2, 2), "b").of_value.reshape(3, 5).tolist() == [
        [0, 0, 1, 1, 2],
        [0, 0, 1, 1, 2],
        [3, 3, 4, 4, 5],
    ]
    gowalla = box_blocks((125, 350), (25, 35), "b")
    assert (gowalla.count, set(gowalla.sizes.tolist())) == (50, {875})
    cube = box_blocks((2, 2, 3), (1, 2, 2), "b")
    assert cube.of_value.tolist() == [0, 0, 1, 0, 0, 1, 2, 2, 3, 2, 2, 3]


def test_lists_keep_their_order(tmp_path: Path):
    assert listed_blocks(4, [[3], [0, 2, 1]], "b") == Blocks([1, 1, 1, 0])
    _, blocks = parse(tmp_path, values=["bus", "car", "bike"], blocks=[["bike"], ["car", "bus"]])
    assert blocks == Blocks([1, 1, 0])
    _, blocks = parse(tmp_path, grid=[1, 3], blocks=[[[0, 2]], [[0, 0], [0, 1]]])
    assert blocks == Blocks([1, 1, 0])
    _, blocks = parse(tmp_path, interval=[0, 3], bins=3, blocks=[[0.5], [1, 2.5]])
    assert blocks == Blocks([0, 1, 1])


def test_names_number_blocks_as_they_appear():
    assert named_blocks(["north", "south", "north"]) == Blocks([0, 1, 0])


def test_a_file_may_name_blocks(tmp_path: Path):
    (tmp_path / "places.csv").write_text(
        '\ufeffmill,east\n"dock, old",west\n\nquay,west\n', "utf-8"
    )
    # Its first line could be a header: its block is no other line's.
    domain, blocks = parse(tmp_path, file="places.csv", header=False)
    assert [domain.label(i) for i in range(3)] == ["mill", "dock, old", "quay"]
    assert blocks == Blocks([0, 1, 1])
    (tmp_path / "plain.csv").write_text("mill\r\ndock\r\n", "utf-8")
    domain, blocks = parse(tmp_path, file="plain.csv")
    assert domain.size == 2
    assert blocks is None
    _, blocks = parse(tmp_path, file="plain.csv", blocks=[["dock", "mill"]])
    assert blocks == Blocks.one(2)


FILES = {
    "empty": (b"", "file", "at least two labels"),
    "one label": (b"mill\n", "file", "at least two labels"),
    "blank": (b"\n\n", "file", "at least two labels"),
    "three columns": (b"mill,east,1\n", "file line 1", "a label, or a label and a block"),
    "empty label": (b"mill,east\n,west\n", "file line 2", "a label"),
    "empty block": (b"mill,east\ndock,\n", "file line 2", "a label"),
    "repeated": (b"mill\ndock\n\nmill\n", "file line 4", "each label once"),
    "some blocks": (b"mill,east\ndock\n", "file line 2", "on every line"),
    "late blocks": (b"mill\ndock,west\n", "file line 2", "on every line"),
    "latin-1": (b"caf\xe9\nbar\n", "file", "UTF-8"),
    "open quote": (b'mill\n"dock\n', "file", "CSV"),
}


@pytest.mark.parametrize(("content", "key", "expected"), FILES.values(), ids=FILES.keys())
def test_a_bad_line_of_a_domains_file_is_named(
    tmp_path: Path, content: bytes, key: str, expected: str
):
    (tmp_path / "places.csv").write_bytes(content)
    with pytest.raises(SpecError, match=expected) as caught:
        parse(tmp_path, file="places.csv")
    assert caught.value.path == f"domain.{key}"


IMPOSSIBLE = {
    "no table": (5, "domain"),
    "nothing": ({}, "domain"),
    "two kinds": ({"size": 3, "values": ["a", "b"]}, "domain"),
    "unknown key": ({"size": 3, "block": 1}, "domain.block"),
    "bins elsewhere": ({"size": 3, "bins": 1}, "domain.bins"),
    "no bins": ({"interval": [0, 1]}, "domain.bins"),
    "grid of three": ({"grid": [2, 2, 2]}, "domain.grid"),
    "interval of texts": ({"interval": ["a", "b"], "bins": 2}, "domain.interval"),
    "second interval": ({"interval": [[0, 1], [2]], "bins": 2}, "domain.interval[1]"),
    "no interval": ({"interval": [], "bins": 2}, "domain.bins"),
    "file no text": ({"file": 3}, "domain.file"),
    "file absent": ({"file": "absent.csv"}, "domain.file"),
    "file a folder": ({"file": "."}, "domain.file"),
    "blocks zero": ({"size": 3, "blocks": 0}, "domain.blocks"),
    "blocks beyond": ({"size": 3, "blocks": 4}, "domain.blocks"),
    "blocks text": ({"size": 3, "blocks": "all"}, "domain.blocks"),
    "blocks none": ({"size": 3, "blocks": []}, "domain.blocks"),
    "box on a line": ({"size": 3, "blocks": [1, 2]}, "domain.blocks"),
    "box too large": ({"grid": [3, 4], "blocks": [2, 5]}, "domain.blocks[1]"),
    "box of one": ({"grid": [3, 4], "blocks": [2]}, "domain.blocks"),
    "box of floats": ({"grid": [3, 4], "blocks": [2, 1.0]}, "domain.blocks[1]"),
    "mixed": ({"grid": [3, 4], "blocks": [2, [1]]}, "domain.blocks[1]"),
    "overlap": ({"size": 3, "blocks": [[0, 1], [1, 2]]}, "domain.blocks[1][0]"),
    "incomplete": ({"size": 3, "blocks": [[0], [2]]}, "domain.blocks"),
    "empty block": ({"size": 3, "blocks": [[0, 1, 2], []]}, "domain.blocks[1]"),
    "unknown value": ({"size": 3, "blocks": [[0, 1], [2, 3]]}, "domain.blocks[1][1]"),
}


@pytest.mark.parametrize(("table", "path"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_an_impossible_domain_or_partition_names_its_key(tmp_path: Path, table: object, path: str):
    with pytest.raises(SpecError) as caught:
        parse_domain(table, path="domain", base=tmp_path)
    assert caught.value.path == path
    assert caught.value.expected


def test_blocks_come_from_one_place(tmp_path: Path):
    (tmp_path / "places.csv").write_text("mill,east\ndock,west\n", "utf-8")
    with pytest.raises(SpecError, match="second column"):
        parse(tmp_path, file="places.csv", blocks=1)


SUSPICIOUS = {
    "numbers below": ("cell\n101\n102\n", "all other lines hold numbers in a column where"),
    "numbers beside": ("spot,zoning\na,1\nb,1\nc,2\nd,2\n", "all other lines hold numbers"),
    "a usual word": ("Label\nbus\ntrain\n", "it reads 'Label'"),
    "the file's name": ("mode\nbus\ntrain\n", "it reads 'mode'"),
    "a usual word for blocks": (
        "spot,District\na,x\nb,x\nc,y\nd,y\n",
        "it reads 'District' in its second column",
    ),
    "a block of its own": (
        "spot,quarter\na,x\nb,x\nc,y\nd,y\n",
        "its block is no other line's, while all others have several",
    ),
}
PLAIN = {
    "labels": "bus\ntrain\n",
    "numbers": "7\n8\n9\n",
    "a number among labels": "1st\n2\nthird\n",
    "blocks": "a,x\nb,x\nc,y\nd,y\n",
    "single lines in several blocks": "a,x\nb,y\nc,z\nd,z\n",
    "a usual word further down": "bus\nvalue\n",
}


def parsed(folder: Path, text: str, **keys: Any) -> int:
    (folder / "modes.csv").write_text(text)
    domain, _ = parse_domain({"file": "modes.csv", **keys}, path="c.domain", base=folder)
    return domain.size


@pytest.mark.parametrize("case", SUSPICIOUS)
def test_a_line_that_looks_like_a_header_needs_the_key(tmp_path: Path, case: str):
    text, why = SUSPICIOUS[case]
    with pytest.raises(SpecError) as caught:
        parsed(tmp_path, text)
    said = str(caught.value)
    assert said.startswith("c.domain.header: expected true or false, got none: the file's first")
    assert why in said
    lines = text.count("\n")
    assert parsed(tmp_path, text, header=True) == lines - 1
    assert parsed(tmp_path, text, header=False) == lines


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_other_first_lines_are_labels(tmp_path: Path, text: str):
    assert parsed(tmp_path, text) == parsed(tmp_path, text, header=False) == text.count("\n")


@pytest.mark.parametrize(
    ("domain", "said"),
    [
        ({"file": "modes.csv", "header": 1}, "c.domain.header: expected true or false, got 1"),
        ({"size": 3, "header": True}, "c.domain.header: expected header with file, and only"),
    ],
)
def test_the_key_is_true_or_false_and_for_files_alone(
    tmp_path: Path, domain: dict[str, Any], said: str
):
    (tmp_path / "modes.csv").write_text("a\nb\n")
    with pytest.raises(SpecError) as caught:
        parse_domain(domain, path="c.domain", base=tmp_path)
    assert str(caught.value).startswith(said)
