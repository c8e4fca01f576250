"""Pages, figures and the glossary hold what they promise: every mechanism, result, term and use."""

import importlib.util
import re
import shlex
import sys
import xml.etree.ElementTree as ET
from importlib import import_module
from itertools import product
from typing import Final

import pytest

from ldpstream.agents.cli.main import find_command
from ldpstream.mechanisms import MECHANISMS
from tests.house.scripts import script
from tests.pages import ROOT, blocks, pages

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


PAGE: Final = (ROOT / "docs/reference/papers.md").read_text("utf-8")
PARTS: Final = {
    "[CA]": {
        "Definition": (1, 3, 4),
        "Proposition": (1, 2, 3),
        "Theorem": (1, 2, 3, 4),
        "Section": (5, 6),
        "Figure": (1, 2),
        "Table": (1,),
    },
    "[ML]": {
        "Section": ("I", "III", "IV", "V"),
        "Theorem": (1, 2, 3, 4),
        "Algorithm": (1, 2),
        "Figure": (1,),
    },
    "[LIP]": {
        "Definition": (3,),
        "Proposition": (1,),
        "Theorem": (1, 2),
        "Example": (1,),
        "Figure": (5, 6, 7, 8),
    },
}


def results(paper: str) -> list[list[str]]:
    section = next(part for part in PAGE.split("\n## ") if part.startswith(paper))
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    table = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in table if len(row) == 3 and row[1] != "what it says"]


@pytest.mark.parametrize("paper", PARTS)
def test_every_numbered_result_has_a_row_with_a_command(paper: str):
    items = [(row[0], row[2]) for row in results(paper)]
    for kind, numbers in PARTS[paper].items():
        for number in numbers:
            name = rf"\b{kind} {number}\b"
            commands = [shown for item, shown in items if re.search(name, item)]
            assert commands, f"{paper} {kind} {number}"
            assert all("`ldpstream " in shown or "`python -m " in shown for shown in commands)


def test_what_code_and_theory_cite_is_on_the_page():
    """Whoever cites a result adds its row."""
    cited = set()
    for folder in ("mechanisms", "estimators", "agents", "docs"):
        for file in (ROOT / folder).rglob("*.*"):
            if file.suffix in (".py", ".md"):
                text = file.read_text("utf-8")
                cited |= set(
                    re.findall(r"(\[(?:CA|ML|LIP)\]) (Theorem|Proposition|Algorithm) (\d)", text)
                )
    assert len(cited) > 8
    for paper, kind, number in cited:
        known = PARTS[paper].get(kind, ())
        assert int(number) in known, f"{paper} {kind} {number}"


def test_every_command_and_option_exists():
    for code in re.findall(r"`((?:ldpstream|python -m) [^`]*)`", PAGE):
        words = shlex.split(code)
        if words[0] == "python":
            module = importlib.util.find_spec(words[2])
            assert module is not None, code
            continue
        command = find_command(words[1])
        known = {option for one in command.params for option in one.opts}
        assert {word for word in words if word.startswith("--")} <= known, code


glossary = script("glossary")
TEXT = glossary.GLOSSARY.read_text("utf-8")
TERMS = glossary.entries(TEXT)


def test_terms_are_in_order_once_each():
    headings = re.findall("^## (.+)$", TEXT, re.MULTILINE)
    assert len(headings) > 60
    assert [*TERMS] == headings
    assert headings == sorted(set(headings), key=lambda one: one.strip("`").lower())


def test_a_meaning_is_a_sentence_or_two():
    sentences = {term: re.findall(r"[.](?= [A-Z`]|$)", text) for term, text in TERMS.items()}
    assert {term for term, ends in sentences.items() if not 1 <= len(ends) <= 3} == set()


def test_the_site_is_built_with_the_hook():
    assert '"glossary.py"' in (ROOT / ".ci" / "docs.py").read_text("utf-8")


def linked(html: str) -> str:
    terms = {"value": "What a device has.", "policy": "A rule.", "`hold`": "A key, `hold`."}
    found = glossary.link_terms(html, terms, "../glossary.html")
    return re.sub(
        r'<a class="term" href="../glossary.html#(\w+)" title="([^"]*)">', r"[\1|\2]", found
    )


def test_the_first_use_of_a_term_is_linked_and_no_other():
    assert (
        linked("<p>Values, a value</p>") == "<p>[value|What a device has.]Values</a>, a value</p>"
    )
    assert linked("<p>two policies</p>") == "<p>two [policy|A rule.]policies</a></p>"
    assert linked("<p>evaluate, hold</p>") == "<p>evaluate, hold</p>"


def test_keys_are_linked_where_they_are_code():
    shown = "[hold|A key, hold.]<code>hold = 91</code></a> <code>hold</code> <code>value</code>"
    assert linked("<code>hold = 91</code> <code>hold</code> <code>value</code>") == shown


def test_links_headings_and_blocks_of_code_stay():
    for html in (
        '<a href="x">a value <code>hold</code></a>',
        "<h2>Value<a>#</a></h2>",
        "<pre><span>value</span><code>hold</code></pre>",
        '<img alt="a value">',
    ):
        assert linked(html) == html
    assert linked("<h2>Value</h2>value").endswith("[value|What a device has.]value</a>")


FOLDER = ROOT / "docs" / "figures"
sys.path.insert(0, str(FOLDER))
draw, picture = import_module("draw"), import_module("picture")


@pytest.mark.parametrize("name", draw.PICTURES)
def test_a_figure_is_what_the_product_does_today(name: str):
    """`python docs/figures/draw.py` draws them again."""
    drawn = draw.PICTURES[name]().svg()
    assert (FOLDER / f"{name}.svg").read_text("utf-8") == drawn
    ET.fromstring(drawn)


def test_every_figure_is_on_a_page():
    text = "".join((ROOT / page).read_text("utf-8") for page in pages())
    assert set(re.findall(r"figures/([\w-]+)\.svg", text)) == draw.PICTURES.keys()
    assert {path.stem for path in FOLDER.glob("*.svg")} == draw.PICTURES.keys()


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("palette", picture.PALETTES.values())
def test_colours_can_be_told_from_their_ground(palette: dict[str, str]):
    for colour, ground in product(("text", "soft", "main", "warn", "edge"), ("ground", "box")):
        low, high = sorted(luminance(palette[one]) for one in (colour, ground))
        contrast = (high + 0.05) / (low + 0.05)
        assert contrast > (3 if colour == "edge" else 4.5), (colour, ground, contrast)
