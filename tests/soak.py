"""Tests that draw at random draw a few examples, and many in `make soak`.

Such a test is marked `soak`, which `make soak` chooses tests by, and takes its examples from here.
"""

import os
from typing import Final, TypeVar

SOAK: Final = os.environ.get("LDPSTREAM_SOAK") == "1"
T = TypeVar("T")


def seeds(few: int, *, soak: int, first: int = 0) -> range:
    """Return so many seeds, `soak` of them in `make soak`."""
    return range(first, first + (soak if SOAK else few))


def chosen(few: T, *, soak: T) -> T:
    """Return what a test takes, `soak` in `make soak`."""
    return soak if SOAK else few
