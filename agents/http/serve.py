"""Running the HTTP application on an address of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from ldpstream.agents.http.app import build_http
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.served import ServedPipeline

_SHUTDOWN_SECONDS = 1.0


class HttpUnavailableError(RuntimeError):
    """The address cannot be listened on; the message says which and why."""


@asynccontextmanager
async def serve(
    pipeline: ServedPipeline,
    *,
    host: str = "127.0.0.1",
    port: int = 6066,
    metrics: Metrics | None = None,
) -> AsyncIterator[str]:
    """Serve a pipeline for the length of an `async with` block, which gets the URL.

    Port 0 is any free one. There is no authentication: by default only this machine is served.

    Raises:
        HttpUnavailableError: where the address is taken, not ours, or not allowed.
    """
    runner = web.AppRunner(
        build_http(pipeline, metrics=metrics),
        access_log=None,
        handle_signals=False,
        shutdown_timeout=_SHUTDOWN_SECONDS,
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host.strip("[]"), port).start()
        except OSError as error:
            raise HttpUnavailableError(
                f"cannot serve HTTP on {host}:{port}: {error.strerror}; "
                f"choose another address with `http` in [worker]"
            ) from error
        taken = runner.addresses[0][1]
        yield f"http://{host}:{taken}"
    finally:
        await runner.cleanup()
