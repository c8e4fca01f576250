"""The first line of a domain's file: a label, unless `header` is set or it looks like a header."""

from pathlib import Path
from typing import Any

import pytest

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.parse import parse_domain

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
