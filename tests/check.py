"""What `make check` runs: tests that need no other process, and of repetitive tests a sample.

Tests over mechanism instances run on one instance of each mechanism, mutants on one of each rule,
seeded tests on the first seed, and grids, whose cells differ in numbers alone, on every fifth cell.
"""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import pytest

from ldpstream.mechanisms import Mechanism

FOLDERS: Final = ("exact", "property", "conformance", "stream", "house/test_layering.py")
LONG: Final = ("broker", "crash", "slow")
"""Marks of tests that are left to `make test`."""
_EVERY: Final = 5
"""Of the cells of a test that is marked `grid`, one in this many."""
_RULES: Final = "tests/stream/simulations/test_mutants.py"


def chosen(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the tests that `make check` runs, in their order."""
    folders = tuple(f"tests/{folder}" for folder in FOLDERS)
    rules: set[str] = set()
    seeded: set[str] = set()
    cells: Counter[str] = Counter()
    for item in items:
        name = item.nodeid
        if not name.startswith(folders) or any(item.get_closest_marker(mark) for mark in LONG):
            continue
        parameters: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
        if any(map(_is_another, parameters.values())):
            continue
        if name.startswith(_RULES) and "name" in parameters:
            rule = parameters["name"].partition(" ")[0]
            if rule in rules:
                continue
            rules.add(rule)
        if parameters.keys() & {"seed", "first"} and item.get_closest_marker("soak"):
            test = name.partition("[")[0]
            if test in seeded:
                continue
            seeded.add(test)
        if item.get_closest_marker("grid"):
            test = name.partition("[")[0]
            cells[test] += 1
            if cells[test] % _EVERY != 1:
                continue
        yield item


@cache
def _others() -> dict[str, Mechanism]:
    """Return all instances but the first of each mechanism, by name."""
    # Imported here: building all instances takes time that most runs need not spend.
    from tests.conformance.instances import FIRST, INSTANCES

    return {name: one for name, one in INSTANCES.items() if name not in FIRST.values()}


def _is_another(value: object) -> bool:
    """Return whether a parameter is an instance that is not the first of its mechanism."""
    if isinstance(value, str):
        return value in _others()
    return isinstance(value, Mechanism) and any(value is one for one in _others().values())
