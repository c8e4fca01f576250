"""What `make check` runs: all that needs no process beyond its own, one of each kind.

Of tests that go over instances of mechanisms one instance of each mechanism is left, and of those
that take rules of the protocol away one of each rule.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import pytest

from ldpstream.mechanisms import MECHANISMS, Mechanism

FOLDERS: Final = ("exact", "property", "conformance", "stream", "house/test_layering.py")
LONG: Final = ("broker", "crash", "slow")
"""Marks of tests that are left to `make test`."""
_ONE_OF_EACH: Final = ("tests/conformance/", "tests/stream/test_fuzz.py")
_RULES: Final = "tests/stream/test_simulation.py"


def chosen(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield what is left of the tests, in their order."""
    folders = tuple(f"tests/{folder}" for folder in FOLDERS)
    rules: set[str] = set()
    for item in items:
        name = item.nodeid
        if not name.startswith(folders) or any(item.get_closest_marker(mark) for mark in LONG):
            continue
        parameters: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
        if name.startswith(_ONE_OF_EACH) and not all(map(_is_first, parameters.values())):
            continue
        if name.startswith(_RULES) and "name" in parameters:
            rule = parameters["name"].partition(" ")[0]
            if rule in rules:
                continue
            rules.add(rule)
        yield item


@cache
def _first() -> dict[str, Mechanism]:
    """Return the first instance of each mechanism, by its name."""
    # Here, for tests that need no instances should not build them all.
    from tests.conformance.instances import INSTANCES

    names = {name.partition(":")[0]: name for name in reversed(INSTANCES)}
    return {name: INSTANCES[name] for name in names.values()}


def _is_first(value: object) -> bool:
    """Return whether a parameter is the first instance of its mechanism, or no mechanism."""
    if isinstance(value, str):
        mechanism, colon, _ = value.partition(":")
        return not colon or mechanism not in MECHANISMS or value in _first()
    return not isinstance(value, Mechanism) or any(value is one for one in _first().values())
