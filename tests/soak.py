"""Tests that draw at random draw a few examples: fewer in `make check`, and many in `make soak`.

Such a test is marked `soak`, which `make soak` chooses tests by, and takes its examples from here.
"""

import os
from typing import Final, TypeVar

SOAK: Final = os.environ.get("LDPSTREAM_SOAK") == "1"
CHECK: Final = os.environ.get("LDPSTREAM_CHECK") == "1"
T = TypeVar("T")


def seeds(few: int, *, soak: int, first: int = 0) -> range:
    """Return this many seeds: `soak` of them in `make soak`, a fifth in `make check`."""
    return range(first, first + chosen(few, soak=soak, check=max(1, few // 5)))


def chosen(few: T, *, soak: T, check: T | None = None) -> T:
    """Return what a test takes, `soak` in `make soak`, and `check`, if given, in `make check`."""
    if SOAK:
        return soak
    return few if check is None or not CHECK else check
