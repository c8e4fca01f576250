"""The aiohttp application: its routes, and the objects that handlers use."""

import asyncio
import json
from collections.abc import Sequence
from typing import Final

from aiohttp import web

from ldpstream.agents.broker.shards import Shards
from ldpstream.agents.engine.pipeline import Pipeline
from ldpstream.agents.web.api import DESCRIBING
from ldpstream.agents.web.certificates import CERTIFICATES, Certificates
from ldpstream.agents.web.computation import QUEUES, ComputeQueues
from ldpstream.agents.web.declaration import Handler, Operation
from ldpstream.agents.web.estimates import known_tags
from ldpstream.agents.web.events import FEEDS, Feeds
from ldpstream.agents.web.forwarder import add_forwarding
from ldpstream.agents.web.operations import OPERATIONS, describe_api
from ldpstream.agents.web.page import CONTENT_SECURITY_POLICY, Asset, load_assets
from ldpstream.agents.web.request_bodies import BODIES, Bodies
from ldpstream.agents.web.requests import (
    ACCESS,
    BODY_BYTES,
    CHECKED,
    METRICS,
    PIPELINE,
    Access,
    accepts_gzip,
    add_headers,
    answer_request,
)

ARRIVING_BYTES: Final = 4 * BODY_BYTES
"""The most bytes of all incomplete bodies."""


def build_http(
    pipeline: Pipeline,
    *,
    access: Access | None = None,
    shards: Shards | None = None,
    frame_ancestors: Sequence[str] = (),
) -> web.Application:
    """Build the application that shows a pipeline: page, API and metrics, all read-only.

    Serve it by itself, or mount it under a prefix of another application (`add_subapp`): all links
    are relative. Without `access` everybody can read it. Pages of `frame_ancestors` can show
    `/?embed=1` in a frame. Requests about collections of other `shards` are forwarded.
    """
    app = web.Application(middlewares=[answer_request], client_max_size=BODY_BYTES)
    app.on_response_prepare.append(add_headers)
    app.on_shutdown.append(_end_events)
    app.on_cleanup.append(_end_computing)
    app[PIPELINE] = pipeline
    app[METRICS] = pipeline.metrics
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
    page = _static(assets.pop("index.html"), caching="no-cache")
    app.router.add_get("/", _embeddable(page, frame_ancestors))
    for asset in assets.values():
        app.router.add_get(f"/page/{asset.name}", _static(asset))
    return app


def _description() -> Handler:
    text = json.dumps(describe_api())

    async def openapi(_: web.Request) -> web.Response:
        return web.Response(text=text, content_type="application/json")

    return openapi


def _static(asset: Asset, *, caching: str = "public, max-age=31536000, immutable") -> Handler:
    """Return what answers a file, compressed where the reader takes it."""
    headers = {"Cache-Control": caching, "Vary": "Accept-Encoding", "ETag": f'"{asset.digest}"'}

    async def static(request: web.Request) -> web.Response:
        if known_tags(request) & {asset.digest, "*"}:
            return web.Response(status=304, headers=headers)
        packed = accepts_gzip(request)
        return web.Response(
            body=asset.gzip_body if packed else asset.body,
            headers={**headers, "Content-Encoding": "gzip"} if packed else headers,
            content_type=asset.content_type,
            charset="utf-8",
        )

    return static


def _embeddable(page: Handler, frame_ancestors: Sequence[str]) -> Handler:
    """Return what answers the page, to frames of these origins only if it is asked for as such."""
    nobody = "frame-ancestors 'none'"
    somebody = f"frame-ancestors {' '.join(frame_ancestors)}" if frame_ancestors else nobody
    policy = CONTENT_SECURITY_POLICY.replace(nobody, somebody)

    async def embeddable(request: web.Request) -> web.StreamResponse:
        answer = await page(request)
        if request.query.get("embed") == "1":
            # Browsers that know `frame-ancestors` do not look at X-Frame-Options.
            answer.headers["Content-Security-Policy"] = policy
        return answer

    return embeddable


async def _end_events(app: web.Application) -> None:
    """End streams of events, before the server waits for their connections."""
    app[FEEDS].close()


async def _end_computing(app: web.Application) -> None:
    await app[QUEUES].close()
