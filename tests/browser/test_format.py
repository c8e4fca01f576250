"""The page's scripts and styles are formatted by the program that docs/page.md names."""

import re
from pathlib import Path

from tests.browser.npx import run_npx

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_formatted_and_a_crooked_file_is_not(tmp_path: Path) -> None:
    said = (ROOT / "docs" / "page.md").read_text()
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
