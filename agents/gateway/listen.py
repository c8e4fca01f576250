"""Listening with bounds: connections that are open, and how long one may say nothing."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from ldpstream.agents.gateway.app import SERVED, Handler
from ldpstream.agents.http.quiet import server_log
from ldpstream.agents.http.serve import HttpUnavailableError

FIRST_REQUEST_SECONDS: Final = 15.0
"""From the connection to the end of its first request's headers; also that of TLS's greeting."""
_IDLE_SECONDS: Final = 60.0
"""From an answer to the end of the next request's headers."""
_END_SECONDS: Final = 2.0
"""For what is left of a body that was refused, so that its sender reads the answer."""
_BACKLOG: Final = 512
_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 0\r\n"
    b"Connection: close\r\n\r\n"
)


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
    door = _Door(runner, connections)
    app.middlewares.insert(0, _watching(door))
    app[SERVED].connections = door.count
    await runner.setup()
    try:
        host, _, port = address.rpartition(":")
        try:
            server = await asyncio.get_running_loop().create_server(
                door.open,
                host.strip("[]"),
                int(port),
                ssl=tls,
                backlog=_BACKLOG,
                ssl_handshake_timeout=None if tls is None else FIRST_REQUEST_SECONDS,
            )
        except OSError as error:
            raise HttpUnavailableError(
                f"cannot serve HTTP on {address}: {error.strerror}; "
                "choose another address with `http` in [gateway]"
            ) from error
        try:
            taken = server.sockets[0].getsockname()[1]
            yield f"{'http' if tls is None else 'https'}://{host}:{taken}"
        finally:
            server.close()
    finally:
        await runner.cleanup()


class _Door:
    """Lets connections in while there is room, and closes those that do not ask for anything."""

    def __init__(self, runner: web.AppRunner, most: int) -> None:
        self._runner = runner
        self._most = most
        self._silent: set[asyncio.BaseProtocol] = set()

    def count(self) -> int:
        """Return the number of open connections."""
        server = self._runner.server
        return 0 if server is None else len(server.connections)

    def open(self) -> asyncio.BaseProtocol:
        """Return the protocol of a new connection."""
        server = self._runner.server
        assert server is not None
        if self.count() >= self._most:
            return _Busy()
        protocol = server()
        self._silent.add(protocol)
        asyncio.get_running_loop().call_later(FIRST_REQUEST_SECONDS, self._check, protocol)
        return protocol

    def _check(self, protocol: asyncio.BaseProtocol) -> None:
        if protocol in self._silent:
            self._silent.discard(protocol)
            transport = getattr(protocol, "transport", None)
            if transport is not None:
                transport.abort()

    def heard(self, request: web.Request) -> None:
        """Take note that a connection has asked for something."""
        self._silent.discard(request.protocol)


def _watching(door: _Door) -> Middleware:
    @web.middleware
    async def watch(request: web.Request, handler: Handler) -> web.StreamResponse:
        door.heard(request)
        return await handler(request)

    return watch


class _Busy(asyncio.Protocol):
    """Says that there is no room."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(_BUSY)
        transport.close()
