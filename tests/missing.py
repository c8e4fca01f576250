"""What a test needs and a machine may lack: the test is skipped there, or fails where required."""

import os
from typing import NoReturn

import pytest


def skip(reason: str, *, unless: str) -> NoReturn:
    """Skip the calling test, saying what to install; fail it where the variable `unless` is 1."""
    if os.environ.get(unless) == "1":
        pytest.fail(f"{unless}=1, but {reason}")
    pytest.skip(reason)
