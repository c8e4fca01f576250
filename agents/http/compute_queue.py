"""Turns to compute: one cheap answer at a time in a thread, one costly answer in a process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.http.apart import AnswerProcess, EndedError
from ldpstream.agents.http.job import Job
from ldpstream.agents.http.limits import CHEAP_BYTES, WAITING_LIMIT
from ldpstream.agents.http.parameters import AnswerError

_IDLE_SECONDS: Final = 60.0
"""After which the process for costly answers ends."""


class _Queue:
    """One turn at a time, first come, first served."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        if self._waiting >= WAITING_LIMIT:
            raise AnswerError(503, f"{WAITING_LIMIT} requests wait already: try again later")
        self._waiting += 1
        try:
            await self._lock.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._lock.release()


Compute: TypeAlias = Callable[[CollectionConfig, Job], Awaitable[bytes]]
"""What a turn allows, once. It raises AnswerError, 503, where the answer's process ended."""


class ComputeQueues:
    """Two bounded queues, so that whoever asks for much makes nobody else wait.

    Cheap is what costs at most `CHEAP_BYTES`, or no more than what the collection publishes.
    """

    def __init__(self) -> None:
        self._cheap, self._costly = _Queue(), _Queue()
        self._process = AnswerProcess()
        self._ending: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, cost_bytes: int, published_bytes: int) -> AsyncIterator[Compute]:
        """Wait for a turn, and hold it for the length of a block.

        Raises:
            AnswerError: 503, where too many wait already.
        """
        if cost_bytes <= max(CHEAP_BYTES, published_bytes):
            async with self._cheap.turn():
                yield _in_thread
            return
        async with self._costly.turn():
            if self._ending is not None:
                self._ending.cancel()
            try:
                yield self._in_process
            finally:
                loop = asyncio.get_running_loop()
                self._ending = loop.call_later(_IDLE_SECONDS, self._process.end)

    async def close(self) -> None:
        """End the process."""
        if self._ending is not None:
            self._ending.cancel()
        await asyncio.to_thread(self._process.end)

    async def _in_process(self, config: CollectionConfig, job: Job) -> bytes:
        try:
            return await asyncio.to_thread(self._process.body, config, job)
        except EndedError as error:
            raise AnswerError(503, "its computation was ended: ask for less") from error


async def _in_thread(config: CollectionConfig, job: Job) -> bytes:
    return await asyncio.to_thread(job.body, config)
