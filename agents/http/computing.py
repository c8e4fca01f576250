"""Turns to compute: two at a time, so that ingest goes on, and not too many waiting."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from ldpstream.agents.http.limits import WAITING_LIMIT
from ldpstream.agents.http.parameters import AnswerError

COMPUTING_LIMIT: Final = 2


class Computing:
    """Who computes, and who waits for it."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(COMPUTING_LIMIT)
        self._waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and hold it for the length of a block.

        Raises:
            AnswerError: 503, where too many wait already.
        """
        if self._waiting >= WAITING_LIMIT:
            raise AnswerError(503, f"{WAITING_LIMIT} requests wait already: try again later")
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._turns.release()
