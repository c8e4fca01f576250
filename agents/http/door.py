"""Listening with bounds: connections that are open, and how long one may say nothing."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware

FIRST_REQUEST_SECONDS: Final = 15.0
"""From the connection to the end of its first request's headers; also that of TLS's greeting."""
_BACKLOG: Final = 512
_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 0\r\n"
    b"Connection: close\r\n\r\n"
)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HttpUnavailableError(RuntimeError):
    """The address cannot be listened on; the message says which and why."""


class Door:
    """Lets at most so many connections in, and closes those that do not ask for anything."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._server: web.Server | None = None
        self._silent: set[asyncio.BaseProtocol] = set()

    def count(self) -> int:
        """Return the number of open connections."""
        return 0 if self._server is None else len(self._server.connections)

    def watching(self) -> Middleware:
        """Return what takes note that a connection has asked for something."""

        @web.middleware
        async def watch(request: web.Request, handler: _Handler) -> web.StreamResponse:
            self._silent.discard(request.protocol)
            return await handler(request)

        return watch

    @asynccontextmanager
    async def opened(
        self, runner: web.AppRunner, *, address: str, tls: ssl.SSLContext | None, table: str
    ) -> AsyncIterator[str]:
        """Serve for the length of a block, which gets the URL; `address` is of `http` in a table.

        Raises:
            HttpUnavailableError: where the address cannot be listened on.
        """
        await runner.setup()
        self._server = runner.server
        try:
            host, _, port = address.rpartition(":")
            try:
                server = await asyncio.get_running_loop().create_server(
                    self._open,
                    host.strip("[]"),
                    int(port),
                    ssl=tls,
                    backlog=_BACKLOG,
                    ssl_handshake_timeout=None if tls is None else FIRST_REQUEST_SECONDS,
                )
            except OSError as error:
                raise HttpUnavailableError(
                    f"cannot serve HTTP on {address}: {error.strerror}; "
                    f"choose another address with `http` in [{table}]"
                ) from error
            try:
                taken = server.sockets[0].getsockname()[1]
                yield f"{'http' if tls is None else 'https'}://{host}:{taken}"
            finally:
                server.close()
        finally:
            await runner.cleanup()

    def _open(self) -> asyncio.BaseProtocol:
        """Return the protocol of a new connection."""
        server = self._server
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


class _Busy(asyncio.Protocol):
    """Says that there is no room."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(_BUSY)
        transport.close()
