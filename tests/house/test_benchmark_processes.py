"""A part of a benchmark that runs in a process of its own ends nothing else.

The process imports this module, so it imports nothing that takes long.
"""

import os
import time

import pytest
from benchmarks.apart import PartFailedError, apart


def crash(how: str) -> str:
    """End as a part of a benchmark may end."""
    if how == "raise":
        raise ValueError(how)
    if how == "exit":
        os._exit(1)
    while how == "hang":
        time.sleep(0.01)
    return how


@pytest.mark.parametrize("how", ["raise", "exit", "hang"])
def test_a_part_that_fails_is_reported_and_ends_nothing_else(how: str) -> None:
    with pytest.raises(PartFailedError, match="crash"):
        apart(crash, how, seconds=1.0 if how == "hang" else 60.0)


def test_a_part_returns_what_it_found() -> None:
    assert apart(crash, "well", seconds=60.0) == "well"
