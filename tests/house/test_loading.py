"""Commands and packages load what is heavy only once they need it."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from ldpstream.agents.cli.main import COMMANDS

ROOT: Final = Path(__file__).resolve().parents[2]
HEAVY: Final = {"aiohttp", "aiokafka", "faust", "matplotlib", "mode", "pandas", "rich", "scipy"}
"""Each takes as long to load as Python and everything that refuses a wrong option."""


def loaded(code: str, *arguments: str) -> set[str]:
    """Return the modules that a program has loaded at its end."""
    ending = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
    out = subprocess.run(
        [sys.executable, "-c", ending + code, *arguments], capture_output=True, text=True
    )
    return set(out.stderr.rpartition("\n")[0].split())


def by_command(*arguments: str) -> set[str]:
    return loaded("from ldpstream.agents.cli.main import main; main()", *arguments)


NOBODY: Final = "http://127.0.0.1:1"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_loads_its_declaration_alone(command: str):
    found = by_command(command, "--help")
    assert "click" in found
    assert not found & (HEAVY | {"numpy", "pydantic", "typing_extensions", "asyncio"})


@pytest.mark.parametrize(
    ("arguments", "besides"),
    [
        (["--help"], ["numpy", "pydantic", "asyncio"]),
        (["nonsense"], ["numpy", "pydantic", "asyncio"]),
        (["status", NOBODY], ["numpy", "pydantic", "asyncio"]),
        (["query", NOBODY, "checkins"], ["numpy", "pydantic", "asyncio"]),
        (["query", NOBODY, "checkins", "--tops", "3"], ["numpy", "pydantic", "asyncio"]),
        (["query", "ftp://127.0.0.1", "checkins"], ["numpy", "pydantic", "asyncio"]),
        (["estimate", "-c", "/none.toml", "checkins"], []),
        (["certify", "-c", "/none.toml"], []),
        (["privatize", "-c", "/none.toml", "checkins"], []),
        (["plan", "-c", "/none.toml", "checkins", "--respondents", "9"], []),
        (["check", "-c", "/none.toml"], []),
    ],
    ids=" ".join,
)
def test_a_refused_command_loads_nothing_that_it_would_have_needed(
    arguments: list[str], besides: list[str]
):
    found = by_command(*arguments)
    assert "click" in found
    assert not found & (HEAVY | {*besides})


def test_a_worker_is_ready_before_it_loads_what_only_bounds_need():
    found = loaded("import ldpstream.agents.worker, ldpstream.agents.web.server")
    assert "ldpstream.agents.document.build" in found
    # SciPy's own names load its subpackages when they are first used.
    assert not found & {f"scipy.{name}" for name in ("fft", "linalg", "optimize", "special")}


LAZY: Final = sorted(
    path.relative_to(ROOT).as_posix()
    for room in ("mechanisms", "agents", "estimators")
    for path in (ROOT / room).rglob("__init__.py")
    if "handed_on(" in path.read_text("utf-8")
)


def test_there_are_packages_that_hand_on_names():
    assert {"mechanisms/__init__.py", "agents/config/__init__.py"} <= set(LAZY)


@pytest.mark.parametrize("file", LAZY)
def test_names_are_handed_on_from_where_type_checkers_see_them(file: str):
    """The imports for type checkers, the table at run time and `__all__` say the same."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    (choice,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        (alias.name, node.module)
        for node in choice.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    (table,) = (node for node in ast.walk(choice) if isinstance(node, ast.Dict))
    given = {
        (name, module)
        for module, names in ast.literal_eval(table).items()
        for name in names.split()
    }
    (public,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    assert given == seen
    assert {name for name, _ in given} == set(public)
    folder = (ROOT / file).parent
    modules = {path.stem for path in folder.glob("*.py")} | {
        path.name for path in folder.iterdir() if path.is_dir()
    }
    assert not modules & set(public), "once imported, the module would hide the name"


def test_every_name_that_is_handed_on_exists_and_no_other_does():
    """In a process of its own, where nothing has been imported yet."""
    packages = [f"ldpstream.{file.removesuffix('/__init__.py').replace('/', '.')}" for file in LAZY]
    code = (
        "import importlib\n"
        f"for package in map(importlib.import_module, {packages}):\n"
        "    for name in package.__all__: getattr(package, name)\n"
        "    try: package.nonsense\n"
        "    except AttributeError as error: print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines() == [
        f"module '{package}' has no attribute 'nonsense'" for package in packages
    ]
