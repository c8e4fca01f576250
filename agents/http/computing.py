"""Turns to compute: two at a time and within a budget of memory, and not too many waiting."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from ldpstream.agents.http.limits import ANSWERS_BYTES, WAITING_LIMIT
from ldpstream.agents.http.parameters import AnswerError

COMPUTING_LIMIT: Final = 2


class Computing:
    """Bounded queue for CPU-heavy requests: first come, first served.

    At most two compute at once, so that ingest goes on, and together they cost at most
    `ANSWERS_BYTES`; what costs more than that computes alone.
    """

    def __init__(self) -> None:
        self._gate = asyncio.Lock()
        self._freed = asyncio.Event()
        self._costs: list[int] = []
        self._waiting = 0

    @asynccontextmanager
    async def turn(self, cost_bytes: int) -> AsyncIterator[None]:
        """Wait for a turn, and hold it for the length of a block that takes so much memory.

        Raises:
            AnswerError: 503, where too many wait already.
        """
        if self._waiting >= WAITING_LIMIT:
            raise AnswerError(503, f"{WAITING_LIMIT} requests wait already: try again later")
        self._waiting += 1
        try:
            async with self._gate:
                while not self._room_for(cost_bytes):
                    self._freed.clear()
                    await self._freed.wait()
                self._costs.append(cost_bytes)
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._costs.remove(cost_bytes)
            self._freed.set()

    def _room_for(self, cost_bytes: int) -> bool:
        if not self._costs:
            return True
        full = len(self._costs) >= COMPUTING_LIMIT
        return not full and sum(self._costs) + cost_bytes <= ANSWERS_BYTES
