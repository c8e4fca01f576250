"""The page's modules keep the types that their comments declare, where Node is at hand."""

import json
import re
from pathlib import Path

from tests.browser.npx import run_npx

HERE = Path(__file__).parent
SCRIPTS = HERE.parents[1] / "agents" / "page" / "js"


def test_the_modules_keep_their_types_and_a_wrong_one_does_not(tmp_path: Path) -> None:
    (tmp_path / "wrong.js").write_text("/** @type {number} */\nexport const one = 'one';\n")
    config = json.loads((HERE / "jsconfig.json").read_text())
    config["include"] = [str(SCRIPTS / "*.js"), str(tmp_path / "*.js")]
    file = tmp_path / "jsconfig.json"
    file.write_text(json.dumps(config))
    compile_all = ["tsc", "--pretty", "false", "-p", str(file)]
    said = run_npx("typescript@5.9.3", compile_all, found="error TS")
    found = re.findall(r"([\w-]+\.js)\(\d+,\d+\): error (TS\d+)", said)
    assert found == [("wrong.js", "TS2322")]
