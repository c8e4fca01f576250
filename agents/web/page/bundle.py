"""Joins the modules of the page into one script: a browser asks once, not once for each module.

Each module becomes a function that returns its exports, behind those of the modules it imports:

    const { element, say } = (() => { ... return { element, say }; })();

So the files stay plain modules, a browser gets the statements that are written in them, and nothing
has to be built. Their comments stay here.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Final

_IMPORT: Final = re.compile(r'^import \{(?:(?!\bas\b)[\w\s,])*\} from "(\.[^"]+)";\n', re.MULTILINE)
_EXPORT: Final = re.compile(
    r"^export (?=(?:async function|function|const|class) (\w+))", re.MULTILINE
)
_OTHER: Final = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_COMMENT: Final = re.compile(r"^ *(?:/\*\*(?:(?!\*/).)*\*/|//[^\n]*)\n", re.MULTILINE | re.DOTALL)


def bundle_modules(modules: Mapping[str, str], entry: str) -> str:
    """Return a script that does what the module `entry` does; `modules` are texts by their paths.

    Raises:
        ValueError: for a statement of another form, and for two exports of one name.
    """
    parts, exported = list[str](), set[str]()
    for name in _in_order(modules, entry, set()):
        text = _COMMENT.sub("", modules[name])
        exports = _EXPORT.findall(text)
        text = _EXPORT.sub("", _IMPORT.sub("", text))
        refused = _OTHER.findall(text) or sorted(exported.intersection(exports))
        if refused:
            raise ValueError(f"{name}: expected named imports and unique exports: {refused}")
        exported.update(exports)
        names = ", ".join(exports)
        parts.append(
            f"// {name}\nconst {{ {names} }} = (() => {{\n{text}return {{ {names} }};\n}})();\n"
        )
    return "".join(parts)


def _in_order(modules: Mapping[str, str], name: str, seen: set[str]) -> Iterator[str]:
    """Yield a module after those that it imports."""
    if name in seen:
        return
    seen.add(name)
    for path in _IMPORT.findall(modules[name]):
        yield from _in_order(modules, posixpath.normpath(f"{posixpath.dirname(name)}/{path}"), seen)
    yield name
