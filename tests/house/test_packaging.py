"""The wheel holds the rooms and nothing else, and an installed wheel works."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import ldpstream

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("agents", "mechanisms", "estimators")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    (built,) = out.glob("*.whl")
    return built


def expected() -> set[str]:
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *ROOMS],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    rooms = {f"ldpstream/{name}" for name in files if (ROOT / name).exists()}
    return rooms | {"ldpstream/__init__.py", "ldpstream/py.typed"}


def test_the_wheel_holds_exactly_the_rooms(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == expected()


def test_the_wheel_is_importable_without_the_repository(wheel: Path, tmp_path: Path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = (
        "import ldpstream, ldpstream.mechanisms, ldpstream.estimators, ldpstream.agents.cli.main; "
        "print(ldpstream.__version__, ldpstream.mechanisms.__file__)"
    )
    env = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", code]
    out = subprocess.run(
        command, cwd=tmp_path, env=env, check=True, capture_output=True, text=True
    ).stdout.split()
    assert out[0] == ldpstream.__version__
    assert out[1].startswith(str(tmp_path))


def test_the_working_copy_is_what_the_tests_import():
    assert Path(ldpstream.__file__).resolve() == ROOT / "src" / "ldpstream" / "__init__.py"


def test_the_links_are_relative():
    for room in ROOMS:
        link = ROOT / "src" / "ldpstream" / room
        assert link.is_symlink()
        assert not link.readlink().is_absolute()
        assert link.resolve() == ROOT / room
