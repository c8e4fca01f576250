"""Live updates as server-sent events: finals in order, and the newest documents of open windows.

`event: final` carries a window's stored final, as in the estimates topic; its id is the window's
start in epoch milliseconds, and a reader that sends it as `Last-Event-ID` gets all finals since.
`event: provisional` carries the newest document of an open window, and has no id.
"""

import asyncio
from typing import Final

from aiohttp import web

from ldpstream.agents.state.windows import NEVER
from ldpstream.agents.web.feed import FEEDS, Feed, Feeds, TooManyReadersError
from ldpstream.agents.web.requests import METRICS, AnswerError, read_time, readable_collection
from ldpstream.mechanisms.base.numbers import read_whole
from ldpstream.mechanisms.base.times import EARLIEST_MS, LATEST_MS

HEARTBEAT_SECONDS: Final = 15.0
SLOW_SECONDS: Final = 10.0
"""A reader that stalls for this long is dropped; it may reconnect with its last id."""
_RETRY_MS: Final = 2_000
_ID: Final = "Last-Event-ID"


async def events(request: web.Request) -> web.StreamResponse:
    """Answer the changes of a collection's windows, from now on or after a final."""
    served = readable_collection(request)
    after_ms = _read_after(request)
    feeds = request.app[FEEDS]
    try:
        streaming = request.app[METRICS].http_streams.labels(served.config.name)
        with feeds.reading(served) as feed, streaming.track_inprogress():
            return await _stream(request, feeds, feed, after_ms)
    except TooManyReadersError as error:
        raise AnswerError(503, str(error)) from error


def _read_after(request: web.Request) -> int | None:
    """Return the start of the last window whose final the reader has, epoch ms; None if unknown."""
    given = request.headers.get(_ID)
    if not given:
        return read_time(request.query, "after")
    try:
        after_ms = read_whole(given)
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
    spec = feed.served.context.window
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
        for one in feed.provisional(turn):
            if one.window >= feed.final:
                await _write(response, _event("provisional", one.document, None))
            turn = one.turn
        try:
            await asyncio.wait_for(changed.wait(), HEARTBEAT_SECONDS)
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
