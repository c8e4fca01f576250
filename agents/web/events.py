"""Live updates as server-sent events: finals in order, and the newest documents of open windows.

`event: final` carries a window's stored final, as in the estimates topic; its id is the window's
start in epoch milliseconds, and a reader that sends it as `Last-Event-ID` gets all finals since.
`event: provisional` carries the newest document of an open window, and has no id.

There is no queue per reader. Each reads finals from the state, from its own position, and of an
open window only the newest document is kept, made once for all readers and at most every
`publish.every`. So a slow reader costs no memory: it skips outdated documents, but never a final.
"""

import asyncio
import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from ldpstream.agents.engine.engine import Engine
from ldpstream.agents.engine.publisher import changed_windows, write_provisional
from ldpstream.agents.state.cell_encoding import decode_final
from ldpstream.agents.state.listing import stored_finals
from ldpstream.agents.state.records import Head, Name, RecordError
from ldpstream.agents.state.replica import BehindError
from ldpstream.agents.state.windows import NEVER
from ldpstream.agents.web.computation import ComputeQueues
from ldpstream.agents.web.requests import METRICS, AnswerError, read_time, readable_collection
from ldpstream.mechanisms.base.numbers import read_whole
from ldpstream.mechanisms.base.times import EARLIEST_MS, LATEST_MS

READERS_LIMIT: Final = 64
"""The most readers of events, over all collections."""
_TICK_SECONDS: Final = 0.2
HEARTBEAT_SECONDS: Final = 15.0
SLOW_SECONDS: Final = 10.0
"""A reader that stalls for this long is dropped; it may reconnect with its last id."""
_RETRY_MS: Final = 2_000
_ID: Final = "Last-Event-ID"


class TooManyReadersError(RuntimeError):
    """The limit of readers of events is reached."""


@dataclass(frozen=True)
class Provisional:
    """The newest document of an open window; `turn` grows with every document made."""

    turn: int
    window: int
    document: bytes


class Feed:
    """The changes of one collection, watched only while somebody reads."""

    def __init__(self, collection: Engine, queues: ComputeQueues) -> None:
        self.collection = collection
        self.changed = asyncio.Event()
        self._queues = queues
        self._provisional: dict[int, Provisional] = {}
        self._told: dict[int, Hashable] = {}
        self._heads: list[Head | None] = []
        self._failed = False
        self._due: float = 0.0
        self._turn = 0

    @property
    def broken(self) -> bool:
        """Whether the state cannot be read (any longer), so that events would mislead."""
        replicas = self.collection.replicas
        return self._failed or any(t.head is None or t.broken is not None for t in replicas)

    @property
    def final(self) -> int:
        """The number of the first window that is not final."""
        head = self.collection.replicas[0].head
        return NEVER if head is None else head.final

    def finals(self, after: int) -> list[int]:
        """Return the windows above `after` that have a stored final, in order."""
        return stored_finals(self.collection.context, self.collection.replicas[0], after)

    def content(self, window: int) -> bytes | None:
        """Return a stored final; None once it has expired."""
        replica, name = self.collection.replicas[0], Name("final", window)
        return decode_final(replica.value(name)) if name in replica.cells else None

    def provisional(self, after: int) -> list[Provisional]:
        """Return the documents of open windows made after a turn, in order."""
        newer = (document for document in self._provisional.values() if document.turn > after)
        return sorted(
            (document for document in newer if document.window >= self.final),
            key=lambda document: document.turn,
        )

    def wake(self) -> None:
        """Wake all readers of the stream."""
        self.changed.set()
        self.changed = asyncio.Event()

    async def run(self) -> None:
        """Watch for changes until cancelled."""
        while True:
            try:
                await self._check()
            except (AnswerError, BehindError):
                # Too many requests are waiting, or the state is being read: try again next tick.
                self._heads = []
            except RecordError:
                # A reader that reconnects learns from the API what is wrong.
                self._failed = True
            if self.broken:
                self.wake()
            await asyncio.sleep(_TICK_SECONDS)

    async def _check(self) -> None:
        heads = [replica.head for replica in self.collection.replicas]
        if self.broken:
            return
        # Commit records are replaced, never changed: comparing identities shows whether any is new.
        if len(heads) == len(self._heads) and all(
            new is old for new, old in zip(heads, self._heads, strict=True)
        ):
            return
        if time.monotonic() >= self._due:
            made = self._turn
            await self._build()
            self._heads = heads
            if self._turn > made:
                self._due = time.monotonic() + self.collection.config.publish_every_seconds
        self.wake()

    async def _build(self) -> None:
        collection = self.collection
        if collection.config.publish_every_ms is None:
            return
        for window, snapshot in changed_windows(collection, self._told):
            cost_bytes = await self._queues.published_bytes(collection.config)
            async with self._queues.turn(cost_bytes, cost_bytes):
                document = await asyncio.to_thread(write_provisional, collection, window, snapshot)
            self._turn += 1
            self._provisional[window.number] = Provisional(self._turn, window.number, document)
        for gone in self._provisional.keys() - self._told.keys():
            del self._provisional[gone]


class Feeds:
    """The feeds of all collections, each running while it has readers."""

    def __init__(self, queues: ComputeQueues) -> None:
        self.closed = False
        self._queues = queues
        self._feeds: dict[str, Feed] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.readers: dict[str, int] = {}
        """The number of readers by fingerprint of the spec; missing where it is 0."""

    @contextmanager
    def reading(self, collection: Engine) -> Iterator[Feed]:
        """Return a collection's feed for the length of a block."""
        if self.closed or sum(self.readers.values()) >= READERS_LIMIT:
            raise TooManyReadersError(f"expected at most {READERS_LIMIT} readers of events")
        name = collection.config.spec.fingerprint.hex()
        if name not in self.readers:
            feed = Feed(collection, self._queues)
            self._feeds[name] = feed
            self._tasks[name] = asyncio.create_task(feed.run())
        self.readers[name] = self.readers.get(name, 0) + 1
        try:
            yield self._feeds[name]
        finally:
            self.readers[name] -= 1
            if not self.readers[name]:
                self._tasks.pop(name).cancel()
                del self.readers[name], self._feeds[name]

    def close(self) -> None:
        """End all reading: every reader sees `closed` and returns."""
        self.closed = True
        for feed in self._feeds.values():
            feed.wake()


FEEDS: Final = web.AppKey("feeds", Feeds)


async def events(request: web.Request) -> web.StreamResponse:
    """Answer the changes of a collection's windows, from now on or after a final."""
    collection = readable_collection(request)
    after_ms = _read_after(request)
    feeds = request.app[FEEDS]
    try:
        streaming = request.app[METRICS].http_streams.labels(collection.config.name)
        with feeds.reading(collection) as feed, streaming.track_inprogress():
            return await _stream(request, feeds, feed, after_ms)
    except TooManyReadersError as error:
        raise AnswerError(503, str(error)) from error


def _read_after(request: web.Request) -> int | None:
    """Return the start of the last window whose final the reader has, epoch ms; None if unknown."""
    event_id = request.headers.get(_ID)
    if not event_id:
        return read_time(request.query, "after")
    try:
        after_ms = read_whole(event_id)
    except ValueError:
        raise AnswerError(400, f"{_ID}: expected the id of an event, epoch milliseconds") from None
    if not EARLIEST_MS <= after_ms <= LATEST_MS:
        raise AnswerError(400, f"{_ID}: expected a time within the years 1 to 9999")
    return after_ms


async def _stream(
    request: web.Request, feeds: Feeds, feed: Feed, after_ms: int | None
) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
    )
    try:
        # `prepare` is inside, because the reader may disconnect before the headers are written.
        await response.prepare(request)
        await _follow(response, feeds, feed, after_ms)
    except TimeoutError:
        # The reader's buffers are full: an orderly close would wait for it.
        if request.transport is not None:
            request.transport.abort()
    except ConnectionResetError:
        pass
    return response


async def _follow(
    response: web.StreamResponse, feeds: Feeds, feed: Feed, after_ms: int | None
) -> None:
    """Write until the worker stops, the state breaks, or the reader leaves or is too slow."""
    spec = feed.collection.context.window
    last = feed.final - 1 if after_ms is None and feed.final != NEVER else NEVER
    if after_ms is not None:
        last = spec.pane(after_ms) // spec.hop_panes
    turn = 0
    await _write(response, f"retry: {_RETRY_MS}\n\n".encode())
    while not feeds.closed and not feed.broken:
        changed = feed.changed
        for window in feed.finals(last):
            content = feed.content(window)
            if content is not None:
                await _write(response, _event("final", content, spec.span(window)[0]))
            last = window
            if feeds.closed:
                return
        for document in feed.provisional(turn):
            if document.window >= feed.final:
                await _write(response, _event("provisional", document.document, None))
            turn = document.turn
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                await changed.wait()
        except TimeoutError:
            await _write(response, b": alive\n\n")


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(SLOW_SECONDS):
        await response.write(data)


def _event(kind: str, document: bytes, id_ms: int | None) -> bytes:
    lines = [b"event: " + kind.encode()]
    if id_ms is not None:
        lines.append(b"id: %d" % id_ms)
    lines += [b"data: " + line for line in document.splitlines()]
    return b"\n".join(lines) + b"\n\n"
