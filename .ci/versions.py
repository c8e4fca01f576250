"""Lead from a folder of sites to each of them: `python .ci/versions.py FOLDER`.

Each version of the documentation is a folder of its own; Material's selector reads which there are
from `versions.json`, and `index.html` leads to the newest.
"""

import json
import sys
from pathlib import Path


def order(version: str) -> tuple[list[int], bool, str]:
    """Sort versions by their numbers; a release comes after what was built on the way to it."""
    rest = version.lstrip("0123456789.")
    numbers = version.removesuffix(rest).split(".")
    return [int(part) for part in numbers if part], rest == "", rest


def main(folder: Path) -> None:
    """Write both files."""
    found = sorted((one.parent.name for one in folder.glob("[0-9]*/index.html")), key=order)[::-1]
    versions = [{"version": name, "title": name, "aliases": []} for name in found]
    (folder / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")
    newest = f"{found[0]}/index.html"
    (folder / "index.html").write_text(
        '<!doctype html><meta charset="utf-8"><title>ldpstream</title>\n'
        f'<meta http-equiv="refresh" content="0; url={newest}">\n<a href="{newest}">{newest}</a>\n'
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
