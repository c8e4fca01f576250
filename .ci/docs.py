"""Build the documentation as a site: `python .ci/docs.py TOOLS SITE`.

TOOLS is the folder of MkDocs' programs. Below SITE each version has a folder of its own; Material's
selector reads which there are from `versions.json`, and `index.html` leads to the newest. A link
that leads nowhere stops the build.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import reference

from ldpstream import __version__

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "*.md",
    "docs/**/*",
    "clients/*/README.md",
    "clients/javascript/example/**/*",
    "agents/web/page/vendor/README.md",
)
HOOKS = ("formulas.py", "redirects.py", "glossary.py")
_NUMBERS = re.compile(r"^( *```text) numbers$", re.MULTILINE)
"""Tells a test that numbers may differ; Markdown would take it for no fence at all."""


def order(version: str) -> tuple[list[int], bool, str]:
    """Sort versions by their numbers; a release comes after what was built on the way to it."""
    rest = version.lstrip("0123456789.")
    numbers = version.removesuffix(rest).split(".")
    return [int(part) for part in numbers if part], rest == "", rest


def gather(folder: Path) -> None:
    """Copy the pages, which stand in the site as they stand here, and write its own."""
    for pattern in PAGES:
        for file in filter(Path.is_file, ROOT.glob(pattern)):
            to = folder / file.relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            if file.suffix == ".md":
                to.write_text(_NUMBERS.sub(r"\1", file.read_text("utf-8")), "utf-8")
            else:
                shutil.copy(file, to)
    (folder / "assets").mkdir()
    for name in ("iframe-worker.js", "figures.css"):
        shutil.copy(ROOT / ".ci" / name, folder / "assets")
    reference.main(folder)


def list_versions(site: Path) -> None:
    """Write what leads from the folder of sites to each of them."""
    found = sorted((one.parent.name for one in site.glob("[0-9]*/index.html")), key=order)[::-1]
    versions = [{"version": name, "title": name, "aliases": []} for name in found]
    (site / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")
    newest = f"{found[0]}/index.html"
    (site / "index.html").write_text(
        '<!doctype html><meta charset="utf-8"><title>ldpstream</title>\n'
        f'<meta http-equiv="refresh" content="0; url={newest}">\n<a href="{newest}">{newest}</a>\n'
    )


def main(tools: Path, site: Path, build: Path = ROOT / "build") -> None:
    """Build the site of this version into a folder of SITE."""
    shutil.rmtree(build / "pages", ignore_errors=True)
    gather(build / "pages")
    settings = {
        "INHERIT": str(ROOT / "mkdocs.yml"),
        "site_name": f"ldpstream {__version__}",
        "docs_dir": str(build / "pages"),
        "site_dir": str(site.resolve() / __version__),
        "hooks": [str(ROOT / ".ci" / name) for name in HOOKS],
    }
    # JSON is YAML. Without --quiet, which hides warnings from --strict as well.
    (build / "mkdocs.yml").write_text(json.dumps(settings))
    command = [tools / "python", "-m", "mkdocs", "build", "--strict", "-f", build / "mkdocs.yml"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (our own)
    if built.returncode:
        sys.exit(built.stderr)
    list_versions(site)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
