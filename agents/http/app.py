"""The aiohttp application: routes, headers, and errors as JSON."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from ldpstream.agents.http.answers import Problem
from ldpstream.agents.http.api import COMPUTING, COMPUTING_LIMIT, METRICS, PIPELINE
from ldpstream.agents.http.openapi import describe_api
from ldpstream.agents.http.operations import OPERATIONS, Handler
from ldpstream.agents.http.parameters import AnswerError, Parameter, check_names
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.page import CONTENT_SECURITY_POLICY, Asset, load_assets
from ldpstream.agents.records import RecordError
from ldpstream.agents.served import ServedPipeline

_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def build_http(pipeline: ServedPipeline, *, metrics: Metrics | None = None) -> web.Application:
    """Build the application that shows a pipeline: page, API, metrics; all of it read-only.

    It may be served as it is or mounted under a prefix of another application (`add_subapp`): all
    links are relative. Without `metrics` it makes its own, whose counters stay at zero.
    """
    if metrics is None:
        metrics = Metrics()
        metrics.track(pipeline)
    app = web.Application(middlewares=[_with_headers, _errors_as_json])
    app[PIPELINE] = pipeline
    app[METRICS] = metrics
    app[COMPUTING] = asyncio.Semaphore(COMPUTING_LIMIT)
    for operation in OPERATIONS:
        app.router.add_get(operation.path, _checked(operation.handler, operation.parameters))
    app.router.add_get("/openapi.json", _checked(_description(), ()))
    assets = load_assets()
    app.router.add_get("/", _static(assets.pop("index.html")))
    for name, asset in assets.items():
        app.router.add_get(f"/page/{name}", _static(asset))
    return app


def _checked(handler: Handler, parameters: tuple[Parameter, ...]) -> Handler:
    async def checked(request: web.Request) -> web.Response:
        check_names(request.query, parameters)
        return await handler(request)

    return checked


def _description() -> Handler:
    text = json.dumps(describe_api())

    async def openapi(_: web.Request) -> web.Response:
        return web.Response(text=text, content_type="application/json")

    return openapi


def _static(asset: Asset) -> Handler:
    async def static(_: web.Request) -> web.Response:
        return web.Response(body=asset.body, content_type=asset.content_type, charset="utf-8")

    return static


@web.middleware
async def _with_headers(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    response = await handler(request)
    response.headers.update(_HEADERS)
    return response


@web.middleware
async def _errors_as_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except AnswerError as error:
        return _problem(error.status, error.text)
    except RecordError as error:
        return _problem(503, f"the state cannot be read: {error}")
    except web.HTTPException as error:
        allowed = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
        return _problem(error.status, error.reason, headers=allowed)


def _problem(status: int, text: str, *, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        text=Problem(error=text).model_dump_json(),
        status=status,
        headers=headers,
        content_type="application/json",
    )
