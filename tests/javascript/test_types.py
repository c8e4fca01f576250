"""The page's modules are formatted, and keep the types that their comments declare."""

import json
import re
from pathlib import Path

from tests.javascript.npx import run_npx

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
