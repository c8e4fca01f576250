"""Every example in a docstring runs.

Modules are found by walking the installed package: collecting files would import each twice, once
by its place in a room and once by its name in the package.
"""

import doctest
import importlib
import pkgutil

import pytest

import ldpstream

NAMES = sorted(m.name for m in pkgutil.walk_packages(ldpstream.__path__, "ldpstream."))


def test_the_walk_finds_the_rooms():
    assert {"ldpstream.agents", "ldpstream.estimators", "ldpstream.mechanisms"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name: str):
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.failed == 0
