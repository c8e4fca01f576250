"""Modules and public definitions have plain names, and no two classes share one.

A module is named by what it holds, a class by a noun and a function by a verb and its object. The
words below are participles, pronouns and figures of speech, which say nothing to a reader who meets
the name in another file.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

from tests.house.rooms import sources

WORDS = {
    *("apart", "appeal", "asked", "asking", "bend", "bury", "checked", "contained", "declared"),
    *("finish", "gathered", "held", "hold", "kick", "knock", "leak", "listening", "look", "lost"),
    *("note", "offered", "once", "order", "others", "pays", "receiving", "remembered", "rivals"),
    *("say", "served", "shuffled", "siblings", "tilt", "took", "wanted", "won"),
}
LOCAL_WORDS = WORDS | {
    *("found", "given", "kept", "left", "one", "own", "part", "parts", "said", "seen", "taken"),
    "told",
}
"""The same for variables, parameters and attributes, where a noun says what they stand for."""
MOST_LOCAL = {"agents": 0.01, "mechanisms": 0.01, "estimators": 0.01}
"""The share of a folder's names that may be such a word: keys and fields of documents are."""
NAMES = {
    "agents/config/privacy/statement.py:hold_sentence": "`hold` is a key of a collection",
    "agents/document/model.py:LostMessages": "a model of documents; data loss, as Kafka has it",
    "agents/edge/sender.py:send_once": "public: at most one report of a ledger's window",
    "agents/web/listener.py:connection_lost": "a callback of asyncio's protocols",
    "mechanisms/exact/walsh.py:sign_order": "the order of Walsh functions by sign changes",
    "mechanisms/families/tree/hierarchy.py:order": "the order of a design: its number of reports",
    "mechanisms/wire/hold.py": "`hold` is a key of a collection",
    "mechanisms/wire/hold.py:Hold": "`hold` is a key of a collection",
    "mechanisms/wire/hold.py:read_hold": "`hold` is a key of a collection",
}
"""Names that have one of the words, and why."""


class Definition(NamedTuple):
    """A module, whose name is its file's, or a class or function in it."""

    file: str
    name: str
    is_module: bool
    is_class: bool

    def __str__(self) -> str:
        return self.file if self.is_module else f"{self.file}:{self.name}"


def definitions(texts: Mapping[str, str]) -> Iterator[Definition]:
    """Yield every module, and every class and function, however deep inside others."""
    for file, text in texts.items():
        yield Definition(file, file.rpartition("/")[2].removesuffix(".py"), True, False)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield Definition(file, node.name, False, isinstance(node, ast.ClassDef))


def words_of(name: str) -> set[str]:
    """Return the words of a name in either case."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def unplain(texts: Mapping[str, str]) -> set[str]:
    """Return the public names that have one of the words, with their files."""
    return {
        str(one)
        for one in definitions(texts)
        if not one.name.startswith("_") and words_of(one.name) & WORDS
    }


def bound_names(text: str) -> Iterator[str]:
    """Yield the name of every definition, parameter, variable and attribute that is set."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name
            case ast.arg():
                yield node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr


def share_of_words(texts: Mapping[str, str]) -> float:
    """Return the share of the names bound in texts that are one of the local words."""
    names = [name.strip("_") for text in texts.values() for name in bound_names(text)]
    return sum(name in LOCAL_WORDS for name in names) / len(names)


def repeated(texts: Mapping[str, str]) -> set[str]:
    """Return the names of more than one public class."""
    found = Counter(one.name for one in definitions(texts) if one.is_class)
    return {name for name, times in found.items() if times > 1 and not name.startswith("_")}


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return sources()


def test_no_public_name_has_one_of_the_words(texts: dict[str, str]):
    # An exception that no longer occurs is removed from the list.
    assert unplain(texts) == NAMES.keys()


def test_no_two_classes_share_a_name(texts: dict[str, str]):
    assert repeated(texts) == set()


@pytest.mark.parametrize(("folder", "most"), MOST_LOCAL.items())
def test_few_variables_have_one_of_the_words(texts: dict[str, str], folder: str, most: float):
    inside = {file: text for file, text in texts.items() if file.startswith(f"{folder}/")}
    assert share_of_words(inside) <= most


def test_planted_variables_are_found():
    text = "def count(held, n):\n    for one in n:\n        n.found = [m for m in one]"
    assert share_of_words({"room/file.py": text}) == 3 / 6


def test_planted_names_are_found():
    texts = {
        "room/held.py": "class Once:\n    def took_part(self): ...\n    def _won(self): ...",
        "room/plain.py": "async def run_apart():\n    class Once: ...\nclass _Two: ...",
        "room/more.py": "class _Two: ...\ndef holdings(): ...\ndef reorder(): ...",
    }
    assert unplain(texts) == {
        "room/held.py",
        "room/held.py:Once",
        "room/held.py:took_part",
        "room/plain.py:run_apart",
        "room/plain.py:Once",
    }
    assert repeated(texts) == {"Once"}
