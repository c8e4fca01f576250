"""Every public method says what it does, and every example in a docstring or on a page runs."""

import doctest
import importlib
import inspect
import pkgutil
import re
import tempfile
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path

import pytest

import ldpstream


def code(member: object) -> bool:
    """Return whether a class's member is a method or a property."""
    kinds = (property, classmethod, staticmethod, cached_property)
    return isinstance(member, kinds) or inspect.isfunction(member)


def silent(kind: type) -> Iterator[str]:
    """Yield the public methods and properties of a class that nothing documents."""
    for name, member in vars(kind).items():
        inner = getattr(member, "__func__", getattr(member, "func", member))
        # A function of another name is a field's default.
        own = isinstance(inner, property) or (inspect.isfunction(inner) and inner.__name__ == name)
        same = (vars(base).get(name) for base in kind.__mro__)
        if own and name[0] != "_" and not any(inspect.getdoc(one) for one in same if code(one)):
            yield f"{kind.__module__}.{kind.__qualname__}.{name}"


def test_every_public_method_is_documented_here_or_in_a_base():
    found = []
    for one in pkgutil.walk_packages(ldpstream.__path__, "ldpstream."):
        if one.name.endswith("__main__"):
            continue
        module = import_module(one.name)
        for kind in vars(module).values():
            if inspect.isclass(kind) and kind.__module__ == one.name and kind.__name__[0] != "_":
                found += silent(kind)
    assert found == []


def test_a_method_that_nothing_documents_is_found():
    class Base:
        def said(self) -> None:
            """Do something."""

    class Derived(Base):
        def said(self) -> None:
            pass

        def silent(self) -> None:
            pass

        @property
        def shape(self) -> int:
            return 1

    assert [name.rpartition(".")[2] for name in silent(Derived)] == ["silent", "shape"]


ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
NAMES = sorted(m.name for m in pkgutil.walk_packages(ldpstream.__path__, "ldpstream."))


def test_the_walk_finds_the_rooms():
    assert {"ldpstream.agents", "ldpstream.estimators", "ldpstream.mechanisms"} <= set(NAMES)


def test_every_module_can_be_imported():
    for name in NAMES:
        importlib.import_module(name)


def shows_examples(name: str) -> bool:
    """Whether a module's text has examples; asking doctest for those of every module takes long."""
    path = ROOT.joinpath(*name.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ">>> " in file.read_text("utf-8")


@pytest.mark.parametrize("name", [*filter(shows_examples, NAMES)])
def test_examples_run(name: str):
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.attempted > 0
    assert results.failed == 0


def test_there_are_pages_with_examples():
    assert any(examples(page) for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_a_page_run_one_after_the_other(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # They keep files in a temporary directory, which a reader would look at afterwards.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    test = doctest.DocTestParser().get_doctest(examples(page), {}, page.name, str(page), 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def examples(page: Path) -> str:
    """Return the sessions with the interpreter on a page."""
    text = page.read_text("utf-8")
    return "\n".join(re.findall(r"^```pycon\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
