"""Every example in a docstring or on a page of the documentation runs.

Modules are found by walking the installed package: collecting files would import each twice, once
by its place in a room and once by its name in the package.
"""

import doctest
import importlib
import pkgutil
import re
import tempfile
from pathlib import Path

import pytest

import ldpstream

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
