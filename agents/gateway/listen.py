"""Listening for uploads, with bounded connections."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from ldpstream.agents.gateway.app import SERVED
from ldpstream.agents.http.door import Door
from ldpstream.agents.http.quiet import server_log

_IDLE_SECONDS: Final = 60.0
"""From an answer to the end of the next request's headers."""
_END_SECONDS: Final = 2.0
"""For what is left of a body that was refused, so that its sender reads the answer."""


@asynccontextmanager
async def listening(
    app: web.Application,
    *,
    address: str,
    connections: int,
    tls: ssl.SSLContext | None,
) -> AsyncIterator[str]:
    """Serve an application of `build_gateway` for the length of a block, which gets the URL.

    Raises:
        HttpUnavailableError: where the address cannot be listened on.
    """
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=server_log(),
        handle_signals=False,
        shutdown_timeout=_END_SECONDS,
        keepalive_timeout=_IDLE_SECONDS,
        lingering_time=_END_SECONDS,
        auto_decompress=False,
    )
    entrance = Door(connections)
    app.middlewares.insert(0, entrance.watching())
    app[SERVED].connections = entrance.count
    async with entrance.opened(runner, address=address, tls=tls, table="gateway") as url:
        yield url
