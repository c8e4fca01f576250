"""The rooms import only what they may: mechanisms < estimators < agents, Faust in agents alone."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = {
    "mechanisms": {"numpy", "ldpstream.mechanisms"},
    "estimators": {"numpy", "scipy", "ldpstream.mechanisms", "ldpstream.estimators"},
}
PURE = {"faust", "mode", "aiokafka", "aiohttp", "asyncio", "time", "socket", "threading"}
STATE_MACHINE = ("windows", "records", "tail", "ingest", "partition", "view")


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


def test_the_state_machine_is_pure():
    paths = [ROOT / "agents" / f"{name}.py" for name in STATE_MACHINE]
    present = [path for path in paths if path.exists()]
    assert ROOT / "agents" / "partition.py" in present
    wrong = [(p.name, n) for p in present for n in imports(p) if n.split(".")[0] in PURE]
    assert wrong == []


def test_faust_stays_in_agents_and_out_of_the_device():
    code = (
        "import sys, ldpstream.mechanisms; "
        "print(sorted({m.split('.')[0] for m in sys.modules} & "
        "{'faust', 'aiokafka', 'aiohttp', 'pydantic', 'scipy', 'click', 'rich'}))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
