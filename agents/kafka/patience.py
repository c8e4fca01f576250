"""Tell the user when connecting takes long: a broker that drops packets costs most of a minute."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

QUIET_SECONDS: Final = 5.0


@asynccontextmanager
async def telling_of_waits(bootstrap: str, say: Callable[[str], None]) -> AsyncIterator[None]:
    """Call `say` with one line if the block, which connects to `bootstrap`, takes long."""
    line = f"waiting for the broker at {bootstrap} to answer"
    timer = asyncio.get_running_loop().call_later(QUIET_SECONDS, say, line)
    try:
        yield
    finally:
        timer.cancel()
