"""Queues for computing: one cheap answer at a time in a thread, one costly answer in a process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.http.apart import AnswerProcess
from ldpstream.agents.http.job import Answer, MakeJob, Work, answer_bytes, answered
from ldpstream.agents.http.parameters import AnswerError
from ldpstream.agents.http.question import CHEAP_BYTES, WAITING_LIMIT

_IDLE_SECONDS: Final = 60.0
"""How long the process for costly answers stays without work."""


@dataclass
class _Queue:
    """One turn at a time, first come, first served."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0


Compute: TypeAlias = Callable[[CollectionConfig, MakeJob, frozenset[str]], Awaitable[Answer]]
"""What a turn allows once: make a job, and its answer unless the reader knows its tag.

It raises AbortedError if the process gives no answer.
"""


class ComputeQueues:
    """Two bounded queues, so that costly requests do not make others wait.

    A request is cheap if it costs at most `CHEAP_BYTES`, or no more than the published document.
    """

    def __init__(self) -> None:
        self._cheap, self._costly = _Queue(), _Queue()
        self._process = AnswerProcess()
        self._published: dict[tuple[str, bytes], int] = {}
        self._ending: asyncio.TimerHandle | None = None

    async def published_bytes(self, config: CollectionConfig) -> int:
        """Return the memory that a published document of the collection takes to compute.

        Computed once, in a thread: it needs the mechanism's decoder, which may take seconds to
        build.
        """
        key = config.name, config.spec.fingerprint
        if key not in self._published:
            self._published[key] = await asyncio.to_thread(
                answer_bytes, config.spec, config.options
            )
        return self._published[key]

    @asynccontextmanager
    async def turn(
        self, cost_bytes: int, published_bytes: int, *, limit_seconds: float | None = None
    ) -> AsyncIterator[Compute]:
        """Wait for a turn, and hold it during a block.

        A costly computation that takes longer than `limit_seconds` is aborted.

        Raises:
            AnswerError: 503, where too many are waiting already.
        """
        cheap = cost_bytes <= max(CHEAP_BYTES, published_bytes)
        queue = self._cheap if cheap else self._costly
        if queue.waiting >= WAITING_LIMIT:
            raise AnswerError(503, f"{WAITING_LIMIT} requests are waiting already: try again later")
        queue.waiting += 1
        try:
            await queue.lock.acquire()
        finally:
            queue.waiting -= 1
        if not cheap and self._ending is not None:
            self._ending.cancel()
        apart = partial(self._process.body, limit_seconds=limit_seconds)
        body = _here if cheap else apart
        loop = asyncio.get_running_loop()
        running: asyncio.Future[Answer] | None = None

        async def compute(config: CollectionConfig, make: MakeJob, known: frozenset[str]) -> Answer:
            nonlocal running
            running = loop.run_in_executor(None, answered, config, make, known, body)
            return await asyncio.shield(running)

        def release(done: "asyncio.Future[Answer] | None") -> None:
            if done is not None and not done.cancelled():
                # Once a request is cancelled nobody awaits its error, and asyncio would log it.
                done.exception()
            queue.lock.release()
            if not cheap:
                self._ending = loop.call_later(_IDLE_SECONDS, self._process.end)

        try:
            yield compute
        finally:
            # A cancelled request leaves its thread, which still uses the process.
            if running is None or running.done():
                release(running)
            else:
                running.add_done_callback(release)

    async def close(self) -> None:
        """End the process that computes costly answers."""
        if self._ending is not None:
            self._ending.cancel()
        await asyncio.to_thread(self._process.end)


def _here(work: Work, config: CollectionConfig) -> bytes:
    return work.body(config)
