"""The order of the rooms, and what each imports.

`python -m tests.house.rooms` prints every room with the rooms that it imports, the lowest first.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
ROOMS: Final = (
    "mechanisms/exact",
    "mechanisms/base",
    "mechanisms/domains",
    "mechanisms/policies",
    "mechanisms/channels",
    "mechanisms/interface",
    "mechanisms/families",
    "mechanisms/families/block",
    "mechanisms/families/design",
    "mechanisms/families/tree",
    "mechanisms/families/subset",
    "mechanisms/families/groups",
    "mechanisms/families/lip",
    "mechanisms/families/matrix",
    "mechanisms/families/weights",
    "mechanisms/families/l1",
    "mechanisms/families/sampled",
    "mechanisms/registry",
    "mechanisms/wire",
    "mechanisms/ledger",
    "mechanisms",
    "estimators/bounds",
    "estimators",
    "estimators/areas",
    "estimators/quantiles",
    "estimators/comparison",
    "estimators/design",
    "estimators/lip",
    "estimators/planning",
    "agents/state",
    "agents/config",
    "agents/document",
    "agents/broker",
    "agents/engine",
    "agents/web",
    "agents/edge",
    "agents",
    "agents/cli",
)
"""The folders that hold modules, the lowest first: a module imports its own room and lower ones.

A folder that is not listed belongs to the room around it.
"""


def room_of(file: str) -> str:
    """Return the room of a file, whose path is relative to the repository.

    Raises:
        KeyError: for a file outside all rooms.
    """
    folder = file.rpartition("/")[0]
    while folder and folder not in ROOMS:
        folder = folder.rpartition("/")[0]
    if not folder:
        raise KeyError(file)
    return folder


def sources() -> dict[str, str]:
    """Return the text of every module, by its path relative to the repository."""
    tops = dict.fromkeys(room.partition("/")[0] for room in ROOMS)
    files = sorted(file for top in tops for file in (ROOT / top).rglob("*.py"))
    return {file.relative_to(ROOT).as_posix(): file.read_text("utf-8") for file in files}


def names_of(files: Iterable[str]) -> dict[str, str]:
    """Return the files by the names that they are imported by."""
    names = {f"ldpstream.{f.removesuffix('.py').replace('/', '.')}": f for f in files}
    return {name.removesuffix(".__init__"): file for name, file in names.items()}


def imported(text: str, files: Mapping[str, str]) -> Iterator[str]:
    """Yield those of the files, by name, that a module of this text imports."""
    for module, name in _imports(text):
        # `from package import module` names a file of the package, not the package's own.
        found = f"{module}.{name}" if f"{module}.{name}" in files else module
        if found in files:
            yield files[found]


@lru_cache(maxsize=1_000)
def _imports(text: str) -> tuple[tuple[str, str], ...]:
    """Return the modules that a text imports, each with what it takes from it."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.module or "", alias.name) for alias in node.names]
    return tuple(found)


def upward(texts: Mapping[str, str], files: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the imports that point to a higher room, as `(importing file, imported file)`.

    `files` are all files by name.
    """
    floors = {room: floor for floor, room in enumerate(ROOMS)}
    return [
        (file, other)
        for file, text in texts.items()
        for other in imported(text, files)
        if floors[room_of(other)] > floors[room_of(file)]
    ]


def circles(texts: Mapping[str, str]) -> set[str]:
    """Return the files of circles of imports, and what lies between two circles."""
    names = names_of(texts)
    left = {file: set(imported(text, names)) for file, text in texts.items()}
    # Drop the files that import none of those left, and those that none of them imports.
    while free := {f for f in left if not left[f]} | (left.keys() - set().union(*left.values())):
        left = {file: others - free for file, others in left.items() if file not in free}
    return set(left)


def _show() -> None:
    texts = sources()
    names = names_of(texts)
    for room in ROOMS:
        own = {file: text for file, text in texts.items() if room_of(file) == room}
        below = {room_of(other) for text in own.values() for other in imported(text, names)}
        print(f"{room} ({len(own)} files): {', '.join(r for r in ROOMS if r in below - {room})}")


if __name__ == "__main__":
    _show()
