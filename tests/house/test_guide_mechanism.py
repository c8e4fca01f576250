"""docs/how-to/write-a-mechanism.md, step by step in a copy of the rooms that it changes."""

import re
import shutil
from pathlib import Path

import pytest

from tests.pages import ROOT, Block, Place, agrees, blocks

PAGE = "docs/how-to/write-a-mechanism.md"
INSTANCES = 3


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    for room in ("mechanisms", "tests/conformance", "tests/vectors/channels"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    for room in ("exact", "house"):
        (tmp_path / "tests" / room).mkdir()
    for file in (
        *("pyproject.toml", "tests/__init__.py", "tests/ratios.py", "tests/seeded.py"),
        *("tests/exact/__init__.py", "tests/exact/dense.py", "tests/exact/enumeration.py"),
        "tests/house/plain_response.py",
    ):
        shutil.copy(ROOT / file, tmp_path / file)
    package = tmp_path / "src" / "ldpstream"
    package.mkdir(parents=True)
    for name in ("__init__.py", "agents", "estimators"):
        (package / name).symlink_to(ROOT / "src" / "ldpstream" / name)
    (package / "mechanisms").symlink_to(tmp_path / "mechanisms")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "src"))
    return Place.made(tmp_path, {}, own_code=True)


def test_a_mechanism_written_by_the_guide_passes_and_a_wrong_one_does_not(place: Place) -> None:
    listed = blocks(PAGE)
    taken = [block.language for block in listed]
    assert taken == ["sh", "diff", "diff", "sh", "diff", "diff", "diff", "sh"]
    for block in listed:
        said = take(block, place)
    passed = re.search(r"^(\d+) passed", said, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) >= 20 * INSTANCES
    # As the page says: a wrong formula that keeps the guarantee fails all the same.
    file = place.folder / "mechanisms" / "families" / "plain_response.py"
    right, wrong = "1, self.values - 1)", "1, self.values)"
    assert right in file.read_text()
    file.write_text(file.read_text().replace(right, wrong))
    some = listed[-1].code.replace("plain-response", "'plain-response and (pair or tight)'")
    with pytest.raises(AssertionError, match="test_the_certificate_passes_and_is_tight"):
        place.shell(some)


def take(block: Block, place: Place) -> str:
    """Do what a block says: change a file, or run commands."""
    first, _, rest = block.code.partition("\n")
    file = place.folder / first.removeprefix("# ")
    if block.language == "diff":
        lines = rest.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] != "+")
        after = "".join(line[1:] for line in lines if line[0] != "-")
        text = file.read_text()
        assert text.count(before) == 1, first
        file.write_text(text.replace(before, after))
    else:
        said = place.shell(block.code)
        assert not block.output or agrees(said, block), said
        return said
    return ""
