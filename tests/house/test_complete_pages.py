"""Pages that promise to have something of every mechanism have it."""

import re
from typing import Final

from ldpstream.mechanisms import MECHANISMS
from tests.pages import ROOT, blocks

EXAMPLES: Final = "docs/concepts/mechanisms.md"


def test_every_mechanism_has_a_worked_example():
    """A section of its name, with a session in which a report's bytes become numbers."""
    headings = re.findall("^## `(.+)`$", (ROOT / EXAMPLES).read_text("utf-8"), re.MULTILINE)
    assert sorted(headings) == sorted(MECHANISMS)
    sessions = {one.heading.strip("`"): one.code for one in blocks(EXAMPLES)}
    for name in MECHANISMS:
        code = sessions[name].replace("\n... ", " ")
        assert re.search(rf'example\(\s*"{name}"', code), name
        assert re.search(r'adds\(\w+, "[0-9a-f]+"\)\n\[', code), name


INDEX: Final = "docs/approve/proof-index.md"


def rows() -> list[list[str]]:
    """Return the cells of the index's tables with a status, without their heads."""
    text = (ROOT / INDEX).read_text("utf-8").partition("## The proofs")[0]
    lines = re.findall(r"^\| (.+) \|$", text, re.MULTILINE)
    return [line.split(" | ") for line in lines if "---" not in line and "status" not in line]


def test_every_mechanism_has_a_row_of_the_proof_index():
    named = [row[0].strip("`") for row in rows() if len(row) == 6]
    assert sorted(named) == sorted(MECHANISMS)


def test_what_the_proof_index_names_is_there():
    """Files of code and of tests, and each test that is named, in its file."""
    assert len(rows()) > 30
    for row in rows():
        code, test, status = row[-3:]
        assert re.match("proved|computed|measured|tested|argued", status), row
        files = re.findall("`([^`]+)`", f"{code} {test}")
        assert any(file.startswith("tests/") for file in files), row
        for file in files:
            path, _, name = file.partition("::")
            text = (ROOT / path).read_text("utf-8")
            assert not name or f"def {name}(" in text, file


def test_every_proof_that_the_index_names_is_on_its_page():
    text = (ROOT / INDEX).read_text("utf-8")
    proofs = {row[-4].partition("]")[0].strip("[") for row in rows() if row[-4].startswith("[")}
    there = set(re.findall(r"^### (\d+)\.", text, re.MULTILINE))
    assert there == {proof for proof in proofs if proof.isdigit()}


VERIFIED: Final = "docs/approve/verify-it-yourself.md"


def test_a_channel_is_recomputed_in_some_fifteen_lines_without_ldpstream():
    """Of structured mechanisms, and of a channel that a file lists."""
    programs = [one.code for one in blocks(VERIFIED) if one.language == "python"]
    assert len(programs) > 3
    for code in programs:
        lines = [line for line in code.splitlines() if line.strip()]
        own = [line for line in lines if not re.match("import|from", line)]
        assert len(own) <= 16
        assert "Q = " in code
        assert "ldpstream" not in code
        assert {line.split()[1] for line in lines if line not in own} <= {
            "hashlib", "json", "fractions", "itertools", "math",
        }  # fmt: skip
