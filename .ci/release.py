"""Build a release into `dist`: `python .ci/release.py v0.1.0`, or `make release TAG=v0.1.0`.

The tag has to be the package's version, and that of the newest heading of CHANGELOG.md, which then
has a date. The wheels and the source distribution are built twice, and have to be equal byte for
byte. Exits with 1 and a sentence where something is not so; nothing is uploaded.
"""

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


def build(folder: Path) -> None:
    """Build the wheel and the source distribution, and the wheel of devices, into a folder."""
    for root, targets in ((ROOT, []), (ROOT / "clients" / "python", ["-t", "wheel"])):
        command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), *targets]
        subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 (our own)


def main(tag: str) -> int:
    """Check, build twice, compare, and leave one of the two in `dist`."""
    found = problems(
        tag,
        source=(ROOT / "src" / "ldpstream" / "__init__.py").read_text(),
        changelog=(ROOT / "CHANGELOG.md").read_text(),
    )
    if found:
        print("\n".join(found), file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        build(Path(one))
        build(Path(two))
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
    sys.exit(main(sys.argv[1] if len(sys.argv) == 2 else ""))
