"""A release: its tag, version and changelog agree, and its wheels are reproducible."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import ldpstream
from tests import missing
from tests.house.rooms import ROOT
from tests.house.scripts import script

CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
SOURCE = (ROOT / "src" / "ldpstream" / "__init__.py").read_text()


@pytest.fixture(scope="module")
def release() -> ModuleType:
    return script("release")


def dated(day: str) -> str:
    return f"# Changelog\n\n## {ldpstream.__version__} ({day})\n\n## 0.0.1 (2020-01-01)\n"


def test_the_newest_heading_is_the_version(release: ModuleType):
    found = release.problems(f"v{ldpstream.__version__}", source=SOURCE, changelog=CHANGELOG)
    # Before a release, only its day may be missing.
    assert [problem for problem in found if "YYYY-MM-DD" not in problem] == []


@pytest.mark.parametrize(
    ("tag", "changelog", "said"),
    [
        ("v9.9.9", dated("2026-12-01"), "the tag is v9.9.9"),
        ("", dated("2026-12-01"), "the tag is "),
        (f"v{ldpstream.__version__}", "## 9.9.9 (2026-12-01)", "newest heading"),
        (f"v{ldpstream.__version__}", dated("not released"), "write the day"),
        (f"v{ldpstream.__version__}", "", "no heading"),
    ],
)
def test_no_release_where_tag_version_and_changelog_differ(
    release: ModuleType, tag: str, changelog: str, said: str
):
    (problem,) = release.problems(tag, source=SOURCE, changelog=changelog)
    assert said in problem


def test_a_release_where_they_agree(release: ModuleType):
    tag = f"v{ldpstream.__version__}"
    assert release.problems(tag, source=SOURCE, changelog=dated("2026-12-01")) == []


def test_a_wrong_tag_ends_with_a_message():
    command = [sys.executable, str(ROOT / ".ci" / "release.py"), "v9.9.9"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "tag v" in run.stderr


def test_wheels_are_the_same_whenever_they_are_built(release: ModuleType, tmp_path: Path):
    for name in ("one", "two"):
        release.build(tmp_path / name)
    built = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert [name.partition("-")[0] for name in built] == [
        "ldpstream",
        "ldpstream",
        "ldpstream_device",
    ]
    for name in built:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_package_of_a_forge_links_to_its_repository(release: ModuleType, tmp_path: Path):
    missing.skip_without("git")
    url, copy, out = "https://forge.example/own/ldpstream", tmp_path / "copy", tmp_path / "out"
    release.copy_with_links(copy, url=url, tag="v1.2.3", email="we@forge.example")
    release.build(out, copy)
    built = sorted(out.glob("*.whl"))
    assert [path.name.partition("-")[0] for path in built] == ["ldpstream", "ldpstream_device"]
    for path in built:
        with zipfile.ZipFile(path) as archive:
            (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
            said = archive.read(metadata).decode()
        assert f"Project-URL: Homepage, {url}\n" in said
        assert "Author-email: The ldpstream developers <we@forge.example>\n" in said
        links = set(re.findall(r"\]\(([^)]+)\)", said))
        assert f"{url}/blob/v1.2.3/docs/how-to/gateway.md" in links
        assert all(link.startswith(("https://", "#")) for link in links)
        paths = [link for link in links if link.startswith(url)]
        assert all((ROOT / re.split("/v1.2.3/|#", link)[1]).exists() for link in paths)


def test_the_forges_workflows_call_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    commands = [
        step["run"]
        for file in (ROOT / ".github" / "workflows").iterdir()
        for job in yaml.safe_load(file.read_text())["jobs"].values()
        for step in job["steps"]
        if "run" in step
    ]
    targets = [command.split()[1] for command in commands if command.startswith("make ")]
    assert targets
    assert all(f"\n{target}:" in makefile for target in targets)
    assert any(".ci/run" in command for command in commands)
