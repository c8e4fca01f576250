"""What each room may import: lower rooms and the packages it is allowed, Faust in agents alone."""

import ast
import itertools
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.rooms import ROOMS, circles, names_of, room_of, sources, upward

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = {
    "mechanisms": {"numpy", "ldpstream.mechanisms"},
    "estimators": {"numpy", "scipy", "ldpstream.mechanisms", "ldpstream.estimators"},
}
IMPURE = {
    "faust",
    "mode",
    "aiokafka",
    "aiohttp",
    "asyncio",
    "time",
    "socket",
    "threading",
    "random",
    "secrets",
}


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return sources()


def test_every_import_points_to_the_same_room_or_a_lower_one(texts: dict[str, str]):
    assert upward(texts, names_of(texts)) == []


@pytest.mark.parametrize(("room", "higher"), [*itertools.pairwise(ROOMS)])
def test_an_upward_import_is_found(texts: dict[str, str], room: str, higher: str):
    file = next(f for f in texts if room_of(f) == room)
    other = next(f for f in texts if room_of(f) == higher)
    names = names_of(texts)
    name = next(name for name in names if names[name] == other)
    package, _, module = name.rpartition(".")
    for planted in (
        f"from {package} import {module}",
        f"from {name} import thing",
        f"def f():\n    import {name}",
    ):
        assert upward({file: f"{texts[file]}\n{planted}\n"}, names) == [(file, other)]


def test_no_imports_go_round_in_circles(texts: dict[str, str]):
    assert circles(texts) == set()
    first, second = "mechanisms/base/errors.py", "mechanisms/base/canonical.py"
    pair = {
        first: "from ldpstream.mechanisms.base import canonical",
        second: "from ldpstream.mechanisms.base.errors import SpecError",
    }
    assert circles(pair) == {first, second}


FOLDERS = ("agents", "benchmarks", "docs", "estimators", "mechanisms", "tests")


def test_a_folder_has_at_most_thirty_files():
    paths = itertools.chain.from_iterable((ROOT / room).rglob("*.*") for room in FOLDERS)
    folders = Counter(path.parent for path in paths if path.suffix != ".pyc" and path.is_file())
    assert {f: n for f, n in folders.items() if n > 30} == {}


def modules(room: str) -> list[Path]:
    found = sorted((ROOT / room).rglob("*.py"))
    assert found, f"no module in {room}"
    return found


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield node.module or ""


def allowed(name: str, room: str) -> bool:
    if name.split(".")[0] in sys.stdlib_module_names:
        return True
    return any(name == prefix or name.startswith(prefix + ".") for prefix in ALLOWED[room])


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_a_room_imports_only_what_it_may(room: str):
    wrong = [
        (str(p), name) for p in modules(room) for name in imports(p) if not allowed(name, room)
    ]
    assert wrong == []


def reachable(names: tuple[str, ...]) -> dict[str, Path]:
    """Return the modules of agents that these import, directly or through one another."""
    found: dict[str, Path] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        path = ROOT / "agents" / Path(*name.split(".")[2:])
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name not in found and file.exists():
            found[name] = file
            waiting += [n for n in imports(file) if n.startswith("ldpstream.agents.")]
    return found


def test_the_state_machine_is_pure():
    state = {
        f"ldpstream.agents.state.{path.stem}"
        for path in modules("agents/state")
        if path.stem != "__init__"
    }
    found = reachable(tuple(state))
    assert state <= set(found)
    wrong = [
        (m, n) for m, file in found.items() for n in imports(file) if n.split(".")[0] in IMPURE
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("module", "expected"),
    [("ldpstream.mechanisms", []), ("ldpstream.agents.device", ["aiokafka", "pydantic"])],
)
def test_a_device_does_not_load_the_packages_of_servers(module: str, expected: list[str]):
    """Faust alone takes longer to import than all that a device uses."""
    code = (
        f"import sys, {module}; "
        "print(sorted({m.split('.')[0] for m in sys.modules} & "
        "{'faust', 'mode', 'aiokafka', 'aiohttp', 'pydantic', 'scipy', 'click', 'rich'}))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == str(expected)


@pytest.mark.parametrize("module", ["ldpstream.mechanisms", "ldpstream.mechanisms.ledger.ledger"])
def test_a_device_that_privatizes_imports_numpy_alone(module: str):
    code = (
        "import sys; before = set(sys.modules); "
        f"import {module}; from ldpstream.mechanisms import CollectionSpec; "
        "from pathlib import Path; "
        "table = {'mechanism': 'l1-bits', 'epsilon': 1.0, 'domain': {'size': 9}}; "
        "spec = CollectionSpec.from_mapping('x', table, base=Path()); spec.frame([3]); "
        "loaded = {m.split('.')[0] for m in set(sys.modules) - before}; "
        "print(sorted(loaded - sys.stdlib_module_names), 'sqlite3' in loaded)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # Python can be built without SQLite: only the ledger needs it.
    ledger = module.endswith("ledger")
    assert out.stdout.strip() == f"['ldpstream', 'numpy'] {ledger}"
