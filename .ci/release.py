"""Build a release into `dist`: `make release TAG=v0.1.0`.

    python .ci/release.py v0.1.0 [URL [EMAIL]]

With the URL of the repository, as forges have it, the packages name it, and the links of their
descriptions lead into it; elsewhere than in a repository they lead nowhere. EMAIL is where their
authors can be reached.

The tag has to be the package's version, and that of the newest heading of CHANGELOG.md, which then
has a date. The wheels and the source distribution are built twice, and have to be equal byte for
byte. Exits with 1 and a sentence where something is not so; nothing is uploaded.
"""

import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
_HEADING = re.compile(r"^## (\S+)(?: \((.+)\))?$", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_LINK = re.compile(r"(!?)(\[[^]]*\])\((?!https?:|#)([^)]+)\)")
_AUTHORS = 'authors = [{ name = "The ldpstream developers" }]'
_PROJECTS = (".", "clients/python")
"""The folders of the distributions."""


def problems(tag: str, *, source: str, changelog: str) -> list[str]:
    """Return what keeps a tag from being released, a sentence each.

    `source` is the text of the package's `__init__.py`, `changelog` that of CHANGELOG.md.
    """
    version, heading = _VERSION.search(source), _HEADING.search(changelog)
    if version is None or heading is None:
        return ["__init__.py has no __version__, or CHANGELOG.md no heading `## VERSION (DATE)`"]
    found = []
    if tag != f"v{version[1]}":
        found.append(f"the tag is {tag}, but __version__ is {version[1]}: tag v{version[1]}")
    if heading[1] != version[1]:
        found.append(
            f"the newest heading of CHANGELOG.md is {heading[1]}, but __version__ is {version[1]}"
        )
    if not _DATE.fullmatch(heading[2] or ""):
        found.append(f"CHANGELOG.md: write the day of the release, `## {heading[1]} (YYYY-MM-DD)`")
    return found


def absolute(text: str, *, place: str, url: str, tag: str) -> str:
    """Return a page of the folder `place` with links into the repository of a URL, at a tag."""

    def lead(found: re.Match[str]) -> str:
        image, shown, target = found.groups()
        path = posixpath.normpath(posixpath.join(place, target))
        return f"{image}{shown}({url}/{'raw' if image else 'blob'}/{tag}/{path})"

    return _LINK.sub(lead, text)


def copy_with_links(to: Path, *, url: str, tag: str, email: str = "") -> None:
    """Copy what git knows of the repository, with links and addresses that lead to a URL.

    With an `email` the packages name it as their authors' address.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607 (the git of whoever releases)
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in listed.rstrip("\0").split("\0"):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name, follow_symlinks=False)
    pages = f"{url}/blob/{tag}"
    urls = {
        "Homepage": url,
        "Documentation": f"{pages}/docs/README.md",
        "Changelog": f"{pages}/CHANGELOG.md",
        "Issues": f"{url}/issues",
    }
    table = "".join(f'{name} = "{where}"\n' for name, where in urls.items())
    for place in _PROJECTS:
        readme, project = to / place / "README.md", to / place / "pyproject.toml"
        readme.write_text(absolute(readme.read_text(), place=place, url=url, tag=tag))
        text = project.read_text()
        if email:
            text = text.replace(_AUTHORS, _AUTHORS.replace(" }", f', email = "{email}" }}'))
        project.write_text(f"{text}\n[project.urls]\n{table}")


def build(folder: Path, root: Path = ROOT) -> None:
    """Build the wheel and the source distribution, and the wheel of devices, into a folder."""
    for place, targets in zip(_PROJECTS, ([], ["-t", "wheel"]), strict=True):
        command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), *targets]
        subprocess.run(command, cwd=root / place, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 (our own)


def main(tag: str, url: str = "", email: str = "") -> int:
    """Check, build twice, compare, and leave one of the two in `dist`."""
    found = problems(
        tag,
        source=(ROOT / "src" / "ldpstream" / "__init__.py").read_text(),
        changelog=(ROOT / "CHANGELOG.md").read_text(),
    )
    if found:
        print("\n".join(found), file=sys.stderr)
        return 1
    with (
        tempfile.TemporaryDirectory() as one,
        tempfile.TemporaryDirectory() as two,
        tempfile.TemporaryDirectory() as copy,
    ):
        if url:
            copy_with_links(Path(copy), url=url.rstrip("/"), tag=tag, email=email)
        for folder in (one, two):
            build(Path(folder), Path(copy) if url else ROOT)
        built = sorted(Path(one).iterdir())
        unlike = [p.name for p in built if p.read_bytes() != (Path(two) / p.name).read_bytes()]
        if unlike:
            print(f"built twice, these differ: {', '.join(unlike)}", file=sys.stderr)
            return 1
        dist = ROOT / "dist"
        dist.mkdir(exist_ok=True)
        for path in built:
            shutil.copy(path, dist / path.name)
            print(f"dist/{path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or [""])))
