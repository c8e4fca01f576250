"""The page of the papers has all their numbered results, and commands that exist."""

import importlib.util
import re
import shlex
from typing import Final

import pytest

from ldpstream.agents.cli.main import find_command
from tests.pages import ROOT

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


def rows(paper: str) -> list[list[str]]:
    section = next(part for part in PAGE.split("\n## ") if part.startswith(paper))
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    table = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in table if len(row) == 3 and row[1] != "what it says"]


@pytest.mark.parametrize("paper", PARTS)
def test_every_numbered_result_has_a_row_with_a_command(paper: str):
    items = [(row[0], row[2]) for row in rows(paper)]
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
