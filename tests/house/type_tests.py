"""Tests of an object's type where a method or a table would do: of policies, mechanisms, domains.

`python -m tests.house.type_tests` prints each with its file and line, and how many there are.
What counts is every `isinstance`, `issubclass`, class pattern of a `match` and comparison of a
`type(...)` that names one of these classes.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tests.house.rooms import sources

ROOTS = ("Policy", "Mechanism", "Domain")


class TypeTest(NamedTuple):
    """A place in the package, and the classes that it names."""

    file: str
    line: int
    classes: tuple[str, ...]


def kinds(texts: Mapping[str, str]) -> set[str]:
    """Return the names of the classes that are policies, mechanisms or domains."""
    bases: dict[str, set[str]] = {}
    for text in texts.values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(*map(_names, node.bases))
    found = set(ROOTS)
    while more := {name for name, above in bases.items() if above & found} - found:
        found |= more
    return found


def type_tests(texts: Mapping[str, str]) -> Iterator[TypeTest]:
    """Yield the tests of these types in texts by file."""
    classes = kinds(texts)
    for file, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            if named := _tested(node) & classes:
                yield TypeTest(file, node.lineno, tuple(sorted(named)))


def _tested(node: ast.AST) -> set[str]:
    """Return the classes that a node compares a type with."""
    if isinstance(node, ast.MatchClass):
        return _names(node.cls)
    if isinstance(node, ast.Call) and _names(node.func) & {"isinstance", "issubclass"}:
        return _names(node.args[1])
    if isinstance(node, ast.Compare) and any(
        _is_type(side) for side in (node.left, *node.comparators)
    ):
        return set().union(*map(_names, node.comparators), _names(node.left))
    return set()


def _is_type(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _names(node.func) == {"type"}


def _names(node: ast.AST) -> set[str]:
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    }


def _show() -> None:
    found = sorted(type_tests(sources()))
    for file, line, classes in found:
        print(f"{file}:{line}: {', '.join(classes)}")
    print(f"{len(found)} type tests in {len({one.file for one in found})} files")


if __name__ == "__main__":
    _show()
