"""The answers of the API: each handler looks at the pipeline, and changes nothing.

What takes long (adding up panes, tens of thousands of estimates) is done in a thread, from a
snapshot taken on the event loop, so that ingest goes on; two at a time, the others wait.
"""

import asyncio
from typing import Final

from aiohttp import web
from pydantic import BaseModel

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.context import Context
from ldpstream.agents.document import EstimateOptions, compose
from ldpstream.agents.http import describe
from ldpstream.agents.http.answers import CollectionList, Health, WindowList
from ldpstream.agents.http.parameters import (
    AnswerError,
    read_estimate_options,
    read_last,
    read_time,
)
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.served import ServedCollection, ServedPipeline
from ldpstream.agents.view import Snapshot, WindowInfo, add_up, snapshot, windows
from ldpstream.agents.windows import WindowSpec
from ldpstream.mechanisms.times import format_time

PIPELINE: Final = web.AppKey("pipeline", ServedPipeline)
METRICS: Final = web.AppKey("metrics", Metrics)
COMPUTING: Final = web.AppKey("computing", asyncio.Semaphore)
COMPUTING_LIMIT: Final = 2


async def health(_: web.Request) -> web.Response:
    """Answer that the process serves."""
    return _json(Health(status="ok"))


async def readiness(request: web.Request) -> web.Response:
    """Answer whether every collection can be asked: 503 with reasons where not."""
    answer = describe.describe_readiness(request.app[PIPELINE])
    return _json(answer, status=200 if answer.ready else 503)


async def metrics(request: web.Request) -> web.Response:
    """Answer the metrics, in the format that the Accept header asks for."""
    accept = request.headers.get("Accept", "")
    body, content_type = request.app[METRICS].exposition(accept=accept)
    return web.Response(body=body, headers={"Content-Type": content_type})


async def collections(request: web.Request) -> web.Response:
    """Answer all collections."""
    served = request.app[PIPELINE].collections.values()
    return _json(CollectionList(collections=[describe.describe_collection(one) for one in served]))


async def collection(request: web.Request) -> web.Response:
    """Answer one collection."""
    return _json(describe.describe_collection(_served(request)))


async def status(request: web.Request) -> web.Response:
    """Answer how far a collection is."""
    return _json(describe.describe_status(_served(request)))


async def window_list(request: web.Request) -> web.Response:
    """Answer the windows with reports, oldest first: the newest of those asked for."""
    served = _readable(request)
    last = read_last(request.query)
    from_ms, to_ms = read_time(request.query, "from"), read_time(request.query, "to")
    chosen = [
        info
        for info in _windows(served)
        if (from_ms is None or info.start_ms >= from_ms) and (to_ms is None or info.end_ms <= to_ms)
    ]
    answer = WindowList(
        collection=served.config.name,
        windows=[describe.describe_window(info) for info in chosen[-last:]],
        more=len(chosen) > last,
    )
    return _json(answer)


async def estimate(request: web.Request) -> web.Response:
    """Answer the estimate document of a span of whole panes, by default the newest window."""
    served = _readable(request)
    config = served.config
    options = read_estimate_options(request.query, config.options, config.spec.domain.estimated)
    start_ms, end_ms = read_time(request.query, "start"), read_time(request.query, "end")
    known = _windows(served)
    if start_ms is None and end_ms is None:
        if not known:
            raise AnswerError(404, f"{config.name}: no window holds reports yet")
        start_ms, end_ms = known[-1].start_ms, known[-1].end_ms
    span = _check_span(served, start_ms, end_ms)
    final = _is_final(known, span)
    taken = snapshot(served.context, served.tails, *span)
    async with request.app[COMPUTING]:
        body = await asyncio.to_thread(_compose, config, served.context, taken, final, options)
    return web.Response(body=body, content_type="application/json")


def _compose(
    config: CollectionConfig,
    context: Context,
    taken: Snapshot,
    final: bool,
    options: EstimateOptions,
) -> bytes:
    span = taken.start_ms, taken.end_ms
    totals = add_up(context, taken)
    return compose(config, totals, window=span, final=final, options=options).to_json()


def _is_final(known: list[WindowInfo], span: tuple[int, int]) -> bool:
    return any(info.final and (info.start_ms, info.end_ms) == span for info in known)


def _served(request: web.Request) -> ServedCollection:
    """Return the collection that the path names."""
    known = request.app[PIPELINE].collections
    name = request.match_info["name"]
    if name not in known:
        raise AnswerError(404, f"no such collection; expected one of {', '.join(known)}")
    return known[name]


def _readable(request: web.Request) -> ServedCollection:
    """Return the collection that the path names, if its state is whole and read to the end."""
    served = _served(request)
    if any(tail.head is None for tail in served.tails) or not served.tails:
        raise AnswerError(
            503, f"{served.config.name}: its state has not been read to the end yet; see /readyz"
        )
    for tail in served.tails:
        if tail.broken is not None:
            raise AnswerError(503, f"{served.config.name}: its state cannot be used: {tail.broken}")
    return served


def _kept_ms(served: ServedCollection) -> int:
    """Return from when on panes have expired in no partition; epoch ms."""
    expired = max(tail.head.expired for tail in served.tails if tail.head is not None)
    return expired * served.context.window.pane_ms


def _windows(served: ServedCollection) -> list[WindowInfo]:
    """Return the windows with reports that are still whole, in order."""
    kept_ms = _kept_ms(served)
    return [info for info in windows(served.context, served.tails) if info.start_ms >= kept_ms]


def _check_span(
    served: ServedCollection, start_ms: int | None, end_ms: int | None
) -> tuple[int, int]:
    """Return the span if it is one of whole panes, none of which has expired."""
    if start_ms is None or end_ms is None:
        missing = "start" if start_ms is None else "end"
        raise AnswerError(400, f"{missing}: expected start and end, or neither")
    for name, time_ms in (("start", start_ms), ("end", end_ms)):
        _check_edge(served.context.window, name, time_ms)
    if start_ms >= end_ms:
        raise AnswerError(400, f"end: expected a time after start, got {format_time(end_ms)}")
    kept_ms = _kept_ms(served)
    if start_ms < kept_ms:
        raise AnswerError(
            400,
            f"start: expected {format_time(kept_ms)} or later, because what is older has expired, "
            f"got {format_time(start_ms)}",
        )
    return start_ms, end_ms


def _check_edge(window: WindowSpec, name: str, time_ms: int) -> None:
    if not window.earliest_ms <= time_ms <= window.latest_ms:
        raise AnswerError(400, f"{name}: expected a time well within the years 1 to 9999")
    if time_ms % window.pane_ms:
        below_ms = time_ms - time_ms % window.pane_ms
        raise AnswerError(
            400,
            f"{name}: expected the edge of a pane of {window.pane_ms} ms, such as "
            f"{format_time(below_ms)}, got {format_time(time_ms)}",
        )


def _json(answer: BaseModel, *, status: int = 200) -> web.Response:
    return web.Response(
        text=answer.model_dump_json(), status=status, content_type="application/json"
    )
