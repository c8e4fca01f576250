"""The page's modules are formatted, and keep the types that their comments declare."""

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests import missing


def run_npx(package: str, command: Sequence[str], *, found: str) -> str:
    """Return what a program says on standard output and standard error, without colours.

    Skips where there is no npx (fails where it is required) or the registry does not answer: a
    program that ends otherwise than with 0 has run only if it says `found`.
    """
    missing.skip_without("npx", package="npm")
    try:
        ran = subprocess.run(
            ["npx", "--yes", "--package", package, *command],
            capture_output=True,
            text=True,
            timeout=120,
            env=without_colours(os.environ),
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{package} cannot be fetched: the npm registry does not answer")
    said = ran.stdout + ran.stderr
    if ran.returncode == 0 or found in said:
        return said
    # Not what a machine lacks, but what it cannot reach at this moment.
    pytest.skip(f"{package} cannot be fetched from the npm registry: {said[-200:]}")


def without_colours(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which programs print plain text.

    Many of npm's programs colour what they print into a pipe where CI or FORCE_COLOR is set.
    """
    plain = {
        name: value for name, value in environment.items() if name not in ("CI", "FORCE_COLOR")
    }
    return {**plain, "NO_COLOR": "1"}


HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SCRIPTS = ROOT / "agents" / "web" / "page" / "js"


def test_the_modules_keep_their_types_and_a_wrong_one_does_not(tmp_path: Path) -> None:
    (tmp_path / "wrong.js").write_text("/** @type {number} */\nexport const one = 'one';\n")
    config = json.loads((HERE / "jsconfig.json").read_text())
    shared = SCRIPTS.parent / "types.d.ts"
    config["include"] = [str(shared), str(SCRIPTS / "**" / "*.js"), str(tmp_path / "*.js")]
    file = tmp_path / "jsconfig.json"
    file.write_text(json.dumps(config))
    compile_all = ["tsc", "--pretty", "false", "-p", str(file)]
    said = run_npx("typescript@5.9.3", compile_all, found="error TS")
    found = re.findall(r"([\w-]+\.js)\(\d+,\d+\): error (TS\d+)", said)
    assert found == [("wrong.js", "TS2322")]


def test_the_page_is_formatted_and_a_crooked_file_is_not(tmp_path: Path) -> None:
    said = (ROOT / "docs" / "reference" / "page.md").read_text()
    command = re.search(r"`npx (prettier@[\d.]+) --write ([\w./ ]+)`", said)
    assert command is not None
    crooked = tmp_path / "crooked.js"
    crooked.write_text("export  const one = 1\n")
    files = [str(ROOT / name) for name in command[2].split()]
    check = ["prettier", "--config", str(ROOT / ".prettierrc.json"), "--check", *files]
    said = run_npx(command[1], [*check, str(crooked)], found="Code style issues")
    assert [
        Path(name).name for name in re.findall(r"^\[warn\] (\S+\.\w+)$", said, re.MULTILINE)
    ] == ["crooked.js"]
