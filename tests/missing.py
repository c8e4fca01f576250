"""Skip a test where this machine lacks what it needs, or fail it where that is required."""

import os
from typing import NoReturn

import pytest


def skip(reason: str, *, unless: str) -> NoReturn:
    """Skip the calling test, saying what to install; fail it where the variable `unless` is 1."""
    if os.environ.get(unless) == "1":
        pytest.fail(f"{unless}=1, but {reason}")
    pytest.skip(reason)
