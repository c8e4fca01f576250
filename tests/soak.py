"""How many examples random tests draw: a few, fewer in `make check`, many in `make soak`.

Such a test is marked `soak`, so that `make soak` selects it, and takes its examples from here.
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
    """Return `soak` in `make soak`, `check` in `make check` if given, and `few` otherwise."""
    if SOAK:
        return soak
    return few if check is None or not CHECK else check
