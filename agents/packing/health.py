"""Serve a packer's metrics and health over HTTP."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from ldpstream.agents.config import WorkerConfig
from ldpstream.agents.http.connection import Bounds
from ldpstream.agents.http.listening import listening
from ldpstream.agents.http.parameters import AnswerError
from ldpstream.agents.http.serve import reading_access
from ldpstream.agents.metrics.packing import PackMetrics

PATIENCE_SECONDS: Final = 10.0
"""A broker that has not answered for this long is away; it is asked every two seconds."""


@dataclass
class PackerHealth:
    """Whether a packer works."""

    assigned: bool = False
    """Whether partitions have been assigned."""
    answered: float = field(default_factory=time.monotonic)
    """When the broker last listed its topics, on the monotonic clock; at first, now."""

    def reasons(self) -> list[str]:
        """Return why it does not pack; empty if it does."""
        found = [] if self.assigned else ["no partitions have been assigned yet"]
        if time.monotonic() - self.answered > PATIENCE_SECONDS:
            found.append("the broker does not answer")
        return found


@asynccontextmanager
async def serving_health(
    address: str, worker: WorkerConfig, *, metrics: PackMetrics, health: PackerHealth
) -> AsyncIterator[None]:
    """Serve /metrics, /healthz and /readyz for the duration of an `async with` block.

    The metrics are for the same readers as a worker's.

    Raises:
        HttpUnavailableError: if the address cannot be listened on, or others can reach it and there
            is no valid token.
    """
    access = reading_access(
        address.rpartition(":")[0],
        worker.token,
        open_to_everybody=worker.open_to_everybody,
        trusted_proxies=worker.trusted_proxies,
    )

    async def exposition(request: web.Request) -> web.Response:
        try:
            access.check(request)
        except AnswerError as error:
            return web.json_response({"error": error.text}, status=error.status)
        body, content_type = metrics.exposition(accept=request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def healthy(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readiness(_: web.Request) -> web.Response:
        reasons = health.reasons()
        answer = {"ready": not reasons, "reasons": reasons}
        return web.json_response(answer, status=503 if reasons else 200)

    app = web.Application()
    app.router.add_get("/metrics", exposition)
    app.router.add_get("/healthz", healthy)
    app.router.add_get("/readyz", readiness)
    bounds = Bounds(connections=100, per_peer=50, trusted_proxies=access.trusted_proxies)
    async with listening(app, address=address, bounds=bounds, tls=None, setting="--http"):
        yield
