"""What a packer serves over HTTP: its metrics to readers, whether it packs to probes."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from ldpstream.agents.config import WorkerConfig
from ldpstream.agents.http import HttpUnavailableError
from ldpstream.agents.http.access import Access
from ldpstream.agents.http.parameters import AnswerError
from ldpstream.agents.http.quiet import server_log
from ldpstream.agents.http.serve import reading_access
from ldpstream.agents.metrics.packing import PackMetrics

PATIENCE_SECONDS: Final = 10.0
"""A broker that has not answered for so long is away: it is asked every two seconds."""


@dataclass
class Health:
    """What tells whether a packer packs."""

    assigned: asyncio.Event
    """Set once it has had its share of the partitions."""
    answered: float = 0.0
    """When the broker last said what topics there are, on the monotonic clock."""

    def reasons(self) -> list[str]:
        """Return why it does not pack, nothing if it does."""
        found = [] if self.assigned.is_set() else ["no partitions have been assigned yet"]
        if time.monotonic() - self.answered > PATIENCE_SECONDS:
            found.append("the broker does not answer")
        return found


def check_page(address: str, worker: WorkerConfig) -> Access:
    """Return who may read the metrics at an address: who may read a worker's.

    Raises:
        HttpUnavailableError: where others reach it and there is no token, or one that cannot be.
    """
    host = address.rpartition(":")[0]
    return reading_access(host, worker.token, open_to_everybody=worker.open_to_everybody)


@asynccontextmanager
async def serve_page(
    address: str, access: Access, *, metrics: PackMetrics, health: Health
) -> AsyncIterator[None]:
    """Serve /metrics, /healthz and /readyz for the length of an `async with` block.

    Raises:
        HttpUnavailableError: if the address cannot be listened on.
    """

    async def exposition(request: web.Request) -> web.Response:
        try:
            access.check_name(request)
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
    runner = web.AppRunner(app, access_log=None, logger=server_log(), handle_signals=False)
    await runner.setup()
    try:
        host, _, port = address.rpartition(":")
        try:
            await web.TCPSite(runner, host.strip("[]"), int(port)).start()
        except OSError as error:
            raise HttpUnavailableError(
                f"cannot serve HTTP on {address}: {error.strerror}; choose another --http"
            ) from error
        yield
    finally:
        await runner.cleanup()
