"""Messages of the product stand alone: an installed wheel has no folder `docs`."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from ldpstream.mechanisms.base.texts import count
from ldpstream.mechanisms.wire.spec import CollectionSpec

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    file for room in ("agents", "mechanisms", "estimators") for file in (ROOT / room).rglob("*.py")
)


def shown_texts(tree: ast.AST) -> Iterator[str]:
    """Yield all texts except docstrings; of commands these too, which are their help."""
    silent = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        # A docstring, or one below an attribute.
        for part in body if isinstance(body, list) else ():
            if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
                silent.add(part.value)
        decorators = getattr(node, "decorator_list", ())
        if any("click.command" in ast.unparse(one) for one in decorators):
            silent.discard(node.body[0].value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in silent:
            yield node.value


def test_texts_are_those_that_people_see():
    tree = ast.parse(
        '"""docs/a.md"""\n@click.command()\ndef f():\n    """docs/b.md"""\n    say(f"docs/c{1}")'
    )
    assert sorted(shown_texts(tree)) == ["docs/b.md", "docs/c"]


@pytest.mark.parametrize("room", ["agents", "mechanisms", "estimators"])
def test_no_message_cites_a_page_that_an_installation_lacks(room: str):
    cited = [
        f"{file.relative_to(ROOT)}: {text}"
        for file in FILES
        if file.relative_to(ROOT).parts[0] == room
        for text in shown_texts(ast.parse(file.read_text()))
        if "docs/" in text or "README" in text
    ]
    assert cited == []


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ([["a"], ["b", "c"]], "for 1 value alone in its block"),
        ([["a"], ["b"], ["c", "d"]], "for 2 values alone in their blocks"),
    ],
)
def test_one_thing_is_named_in_the_singular(blocks: list[list[str]], said: str):
    values = [value for block in blocks for value in block]
    table = {"mechanism": "block-hadamard", "epsilon": 1.0}
    spec = CollectionSpec.from_mapping(
        "modes", {**table, "domain": {"values": values, "blocks": blocks}}, base=Path()
    )
    assert any(said in one for one in spec.disclosed())
    assert count(1, "report") == "1 report"
    assert count(2_000, "report") == "2,000 reports"
