"""The handlers of the API, except those of estimates and events."""

import asyncio
from collections.abc import Mapping
from typing import Final

from aiohttp import web
from multidict import MultiMapping
from pydantic import BaseModel
from pydantic_core import to_json

from ldpstream.agents.broker.shards import Elsewhere
from ldpstream.agents.document.answers import (
    Collection,
    CollectionList,
    Health,
    WindowList,
)
from ldpstream.agents.engine.engine import Engine
from ldpstream.agents.state.listing import WindowInfo
from ldpstream.agents.web import description as describe
from ldpstream.agents.web.certificates import CERTIFICATES
from ldpstream.agents.web.declaration import WINDOWS_DEFAULT, WINDOWS_LIMIT
from ldpstream.agents.web.estimates import compressed, kept_windows
from ldpstream.agents.web.requests import (
    ACCESS,
    METRICS,
    PIPELINE,
    SHARDS,
    AnswerError,
    answer_metrics,
    named_collection,
    read_flag,
    read_number,
    read_time,
    readable_collection,
)

DESCRIBING: Final = web.AppKey("describing", asyncio.Lock)
"""Held while what a policy means is worked out."""


async def health(request: web.Request) -> web.Response:
    """Answer that the process serves: 503 where only a restart helps."""
    failed = request.app[PIPELINE].failed
    return _json(Health(status="failed" if failed else "ok"), status=503 if failed else 200)


async def readiness(request: web.Request) -> web.Response:
    """Answer whether every collection of this worker can be queried: if not, 503 with reasons."""
    answer = describe.describe_readiness(request.app[PIPELINE], _others(request))
    if not request.app[ACCESS].allows(request):
        # Probes only need the status; the reasons name collections.
        answer = answer.model_copy(update={"reasons": [], "waits": []})
    return _json(answer, status=200 if answer.ready else 503)


async def metrics(request: web.Request) -> web.Response:
    """Answer the metrics, in the format that the Accept header asks for."""
    return answer_metrics(request, request.app[METRICS])


async def collections(request: web.Request) -> web.Response:
    """Answer all collections, in the order of the configuration."""
    described: dict[str, Engine | Elsewhere] = {
        **request.app[PIPELINE].collections,
        **_others(request),
    }
    names = request.app[SHARDS].collections if SHARDS in request.app else described
    listed = [await _described(request, described[name]) for name in names]
    return compressed(request, to_json(CollectionList(collections=listed)))


async def collection(request: web.Request) -> web.Response:
    """Answer one collection."""
    return _json(await _described(request, named_collection(request)))


async def certificate(request: web.Request) -> web.Response:
    """Answer what is proved of a collection's policy."""
    config = named_collection(request).config
    body = await request.app[CERTIFICATES].certificate(config)
    return web.Response(body=body, content_type="application/json")


async def device_spec(request: web.Request) -> web.Response:
    """Answer what devices need, without the tables that the mechanism does not have."""
    spec = named_collection(request).config.spec
    body = to_json(spec.device_document(), exclude_none=True)
    return web.Response(body=body, content_type="application/json", charset="utf-8")


async def geojson(request: web.Request) -> web.Response:
    """Answer the shapes of a collection's blocks."""
    config = named_collection(request).config
    if config.names.geojson is None:
        raise AnswerError(404, f"{config.name}: no geojson is configured")
    return web.Response(body=config.names.geojson, content_type="application/json")


async def status(request: web.Request) -> web.Response:
    """Answer a collection's progress."""
    return _json(describe.describe_status(named_collection(request)))


async def window_list(request: web.Request) -> web.Response:
    """Answer the windows with reports, oldest first, and whether there are more.

    Pages go forward from the oldest window, or backward from the newest.
    """
    target = readable_collection(request)
    number, forward = _read_page(request.query)
    after_ms = read_time(request.query, "after")
    from_ms, to_ms = read_time(request.query, "from"), read_time(request.query, "to")
    chosen = [
        info
        for info in kept_windows(target)
        if _within(info, from_ms, to_ms) and (after_ms is None or info.start_ms > after_ms)
    ]
    shown = chosen[:number] if forward else chosen[-number:]
    answer = WindowList(
        collection=target.config.name,
        size=target.config.window.identity.label,
        windows=[describe.describe_window(target.context.window, info) for info in shown],
        more=len(chosen) > len(shown),
    )
    return _json(answer)


def _read_page(query: MultiMapping[str]) -> tuple[int, bool]:
    """Return how many windows a request wants, and whether the oldest ones, not the newest."""
    names = [name for name in ("last", "all", "limit", "after") if name in query]
    forward = "limit" in query or "after" in query
    if forward and ("last" in query or "all" in query):
        raise AnswerError(400, f"{names[0]}: expected last or all, or limit and after, not both")
    if forward:
        return read_number(query, "limit", WINDOWS_DEFAULT, WINDOWS_LIMIT), True
    if read_flag(query, "all"):
        if "last" in query:
            raise AnswerError(400, "last: expected last or all=true, got both")
        return WINDOWS_LIMIT, False
    return read_number(query, "last", WINDOWS_DEFAULT, WINDOWS_LIMIT), False


def _within(info: WindowInfo, from_ms: int | None, to_ms: int | None) -> bool:
    return (from_ms is None or info.start_ms >= from_ms) and (to_ms is None or info.end_ms <= to_ms)


async def _described(request: web.Request, target: Engine | Elsewhere) -> Collection:
    """Return a collection; what its policy means takes seconds the first time if it is large."""
    if "privacy" not in vars(target.config):
        async with request.app[DESCRIBING]:
            await asyncio.to_thread(getattr, target.config, "privacy")
    return describe.describe_collection(target)


def _others(request: web.Request) -> Mapping[str, Elsewhere]:
    """Return the collections of other shards, as configured: all workers share a configuration."""
    return request.app[SHARDS].remote_collections() if SHARDS in request.app else {}


def _json(answer: BaseModel, *, status: int = 200) -> web.Response:
    return web.Response(
        text=answer.model_dump_json(), status=status, content_type="application/json"
    )
