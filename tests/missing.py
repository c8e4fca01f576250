"""Skip a test where this machine lacks a program that it needs, and say what to install.

With LDPSTREAM_REQUIRE_ALL=1, as in `.ci/run`, such a test fails instead.
"""

import os
import shutil
from typing import NoReturn

import pytest

_REQUIRE = "LDPSTREAM_REQUIRE_ALL"


def skip(reason: str) -> NoReturn:
    """Skip the calling test, saying what is missing; fail it where all programs are required."""
    if os.environ.get(_REQUIRE) == "1":
        pytest.fail(f"{_REQUIRE}=1, but {reason}")
    pytest.skip(reason)


def skip_without(program: str, *, package: str | None = None) -> None:
    """Skip the calling test without a program on the PATH; `package` is Debian's, if not alike."""
    if shutil.which(program) is None:
        skip(f"{program} is not on the PATH; on Debian: apt-get install {package or program}")
