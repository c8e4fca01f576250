"""Waiting for what other processes do."""

import asyncio
import time
from collections.abc import Callable

_STEP_SECONDS = 0.05


async def holds(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Return True as soon as a condition holds, False if it does not within so long."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(_STEP_SECONDS)
    return True
