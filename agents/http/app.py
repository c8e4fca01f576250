"""The aiohttp application: routes, headers, and errors as JSON."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from ldpstream.agents.document.answers import Problem
from ldpstream.agents.http.access import Access
from ldpstream.agents.http.certificates import Certificates
from ldpstream.agents.http.compute_queue import ComputeQueues
from ldpstream.agents.http.feed import Feeds
from ldpstream.agents.http.forwarding import FORWARDING, add_forwarding
from ldpstream.agents.http.lookup import (
    ACCESS,
    BODIES,
    CERTIFICATES,
    DESCRIBING,
    FEEDS,
    METRICS,
    PIPELINE,
    QUEUES,
    SHARDS,
)
from ldpstream.agents.http.openapi import describe_api
from ldpstream.agents.http.operations import OPERATIONS, Handler, Operation
from ldpstream.agents.http.parameters import AnswerError, check_names
from ldpstream.agents.http.question import BODY_BYTES
from ldpstream.agents.http.receiving import Bodies, BodyRefusedError, NoRoomError, TooLargeError
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.page import CONTENT_SECURITY_POLICY, Asset, load_assets
from ldpstream.agents.served.served import ServedPipeline
from ldpstream.agents.served.shards import Shards
from ldpstream.agents.state.cell_store import StoreError
from ldpstream.agents.state.records import RecordError

CHECKED: Final = web.AppKey("checked", dict[Handler, Operation])
"""The operations by their handlers, for the checks before each."""
ARRIVING_BYTES: Final = 4 * BODY_BYTES
"""The most bytes of all incomplete bodies."""
_REFUSED: Final = (
    *(AnswerError, TooLargeError, NoRoomError, BodyRefusedError),
    *(RecordError, StoreError, web.HTTPException),
)
_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


def build_http(
    pipeline: ServedPipeline,
    *,
    metrics: Metrics | None = None,
    access: Access | None = None,
    shards: Shards | None = None,
) -> web.Application:
    """Build the application that shows a pipeline: page, API and metrics, all read-only.

    Serve it by itself, or mount it under a prefix of another application (`add_subapp`): all links
    are relative. Without `metrics` it makes its own, whose counters stay at zero. Without `access`
    everybody may read it. Requests about collections of other `shards` are forwarded.
    """
    if metrics is None:
        metrics = Metrics()
        metrics.track(pipeline)
    app = web.Application(middlewares=[_answer], client_max_size=BODY_BYTES)
    app.on_response_prepare.append(_add_headers)
    app.on_shutdown.append(_end_events)
    app.on_cleanup.append(_end_computing)
    app[PIPELINE] = pipeline
    app[METRICS] = metrics
    app[QUEUES] = ComputeQueues()
    app[DESCRIBING] = asyncio.Lock()
    app[CERTIFICATES] = Certificates(app[QUEUES])
    app[ACCESS] = access or Access()
    app[BODIES] = Bodies(lambda: ARRIVING_BYTES)
    app[FEEDS] = Feeds(app[QUEUES])
    if shards is not None:
        add_forwarding(app, shards)
    described = Operation(path="/openapi.json", summary="This", handler=_description(), answer=None)
    operations = (*OPERATIONS, described)
    app[CHECKED] = {operation.handler: operation for operation in operations}
    for operation in operations:
        if operation.body is not None:
            app.router.add_post(operation.path, operation.handler)
        else:
            app.router.add_get(operation.path, operation.handler, allow_head=not operation.endless)
    assets = load_assets()
    app.router.add_get("/", _static(assets.pop("index.html")))
    for name, asset in assets.items():
        app.router.add_get(f"/page/{name}", _static(asset))
    return app


def _description() -> Handler:
    text = json.dumps(describe_api())

    async def openapi(_: web.Request) -> web.Response:
        return web.Response(text=text, content_type="application/json")

    return openapi


def _static(asset: Asset) -> Handler:
    async def static(_: web.Request) -> web.Response:
        return web.Response(body=asset.body, content_type=asset.content_type, charset="utf-8")

    return static


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)


async def _end_events(app: web.Application) -> None:
    """End streams of events, before the server waits for their connections."""
    app[FEEDS].close()


async def _end_computing(app: web.Application) -> None:
    await app[QUEUES].close()


@web.middleware
async def _answer(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer a request, errors as JSON, and record how long an operation takes."""
    begun = time.monotonic()
    # The page's files and unknown paths are not operations.
    operation = request.app[CHECKED].get(request.match_info.handler)
    answer: web.StreamResponse
    try:
        # 1. Refuse what may not be asked.
        access = request.app[ACCESS]
        if operation is None or operation.public:
            access.check_name(request)
        else:
            access.check(request)
        if operation is not None:
            check_names(request.query, operation.parameters)
        # 2. Answer here, or forward to a worker that has the collection.
        name = request.match_info.get("name", "")
        if operation and SHARDS in request.app and request.app[SHARDS].elsewhere(name):
            answer = await request.app[FORWARDING].answer(request, name)
        else:
            answer = await handler(request)
    except _REFUSED as error:
        answer = _refusal(error)
    # 3. Record the time, except of streams of events, which last as long as their reader.
    if operation is not None and not operation.endless:
        seconds = time.monotonic() - begun
        request.app[METRICS].answered(operation.handler.__name__, answer.status, seconds=seconds)
    return answer


def _refusal(error: Exception) -> web.Response:
    if isinstance(error, AnswerError):
        headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else None
        return _problem(error.status, error.text, headers=headers)
    if isinstance(error, TooLargeError):
        return _problem(413, f"expected a body of at most {BODY_BYTES} bytes")
    if isinstance(error, NoRoomError):
        return _problem(503, "too many bodies are arriving: try again later")
    if isinstance(error, BodyRefusedError):
        return _problem(400, "expected the whole body")
    if isinstance(error, web.HTTPNotFound):
        # An unknown path; an unknown collection or window is an AnswerError.
        return _problem(error.status, "unknown path: /openapi.json describes all paths")
    if isinstance(error, web.HTTPException):
        allowed = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
        return _problem(error.status, error.reason, headers=allowed)
    return _problem(503, f"the state cannot be read: {error}")


def _problem(status: int, text: str, *, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        text=Problem(error=text).model_dump_json(),
        status=status,
        headers=headers,
        content_type="application/json",
    )
