"""Listening on an address: sockets, the limit of open files, and aiohttp's server."""

import asyncio
import logging
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import ERROR

from ldpstream.agents.engine.process import HttpUnavailableError
from ldpstream.agents.web.acceptor import END_SECONDS, Entrance
from ldpstream.agents.web.connection import HEADER_SECONDS, PROXY_IDLE_SECONDS, RESERVE, Bounds
from ldpstream.agents.web.connection_limits import ConnectionLimiter

_BACKLOG: Final = 1024
_HELD_BYTES: Final = 64 << 10
"""aiohttp's read buffer: it holds at most twice as much of a body, and one read more."""
_OTHER_FILES: Final = 256
"""Files that the process itself needs: Kafka's connections, the store's files."""

log = logging.getLogger(__name__)


@asynccontextmanager
async def listen(
    app: web.Application,
    *,
    address: str,
    bounds: Bounds,
    tls: ssl.SSLContext | None,
    setting: str,
    auto_decompress: bool = True,
) -> AsyncIterator[tuple[str, ConnectionLimiter]]:
    """Serve an application during a block, which gets the URL and the limiter.

    `setting` says where the user sets the address.

    Raises:
        HttpUnavailableError: where the address cannot be listened on.
    """
    limiter = ConnectionLimiter(_within_files(bounds))
    app.middlewares.insert(0, limiter.watching())
    app.on_response_prepare.append(_say_no_server)
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=server_log(),
        handle_signals=False,
        shutdown_timeout=END_SECONDS,
        # The limiter ends idle connections earlier.
        keepalive_timeout=PROXY_IDLE_SECONDS + HEADER_SECONDS,
        lingering_time=END_SECONDS,
        read_bufsize=_HELD_BYTES,
        auto_decompress=auto_decompress,
    )
    await runner.setup()
    try:
        server = runner.server
        assert server is not None
        server.request_factory = partial(_make_request, server.request_factory)
        entrance = Entrance(server, limiter, tls)
        host, _, port = address.rpartition(":")
        try:
            sockets = await _bind(host.strip("[]"), int(port))
        except OSError as error:
            raise HttpUnavailableError(
                f"cannot serve HTTP on {address}: {error.strerror}; "
                f"choose another address with {setting}"
            ) from error
        sweeping = asyncio.create_task(limiter.sweep())
        try:
            for one in sockets:
                entrance.open(one)
            taken = sockets[0].getsockname()[1]
            yield f"{'http' if tls is None else 'https'}://{host}:{taken}", limiter
        finally:
            sweeping.cancel()
            for one in sockets:
                entrance.close(one)
    finally:
        await runner.cleanup()


async def _bind(host: str, port: int) -> list[socket.socket]:
    """Return listening sockets for every address of a host."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            one = socket.socket(family, socket.SOCK_STREAM)
            sockets.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(address)
            one.listen(_BACKLOG)
            one.setblocking(False)
    except OSError:
        for one in sockets:
            one.close()
        raise
    return sockets


def _within_files(bounds: Bounds) -> Bounds:
    """Raise the limit of open files to what the bounds need, or lower the bounds."""
    needed = bounds.connections + RESERVE + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return bounds
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most == needed:
        return bounds
    fewer = max(1, most - RESERVE - _OTHER_FILES)
    log.warning(
        "allowing %d connections instead of %d: the process may open %d files, expected %d "
        "(ulimit -n)", fewer, bounds.connections, most, needed,
    )  # fmt: skip
    return replace(bounds, connections=fewer)


class _Unreadable(web.BaseRequest):
    """aiohttp's answer to bytes that are not HTTP."""

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        await _say_no_server(self, response)


def _make_request(
    make: Callable[..., web.BaseRequest],
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: "asyncio.Task[None]",
) -> web.BaseRequest:
    if message is ERROR:
        loop = asyncio.get_running_loop()
        return _Unreadable(message, payload, protocol, writer, task, loop)
    return make(message, payload, protocol, writer, task)


async def _say_no_server(_: web.BaseRequest, response: web.StreamResponse) -> None:
    """Leave out aiohttp's and Python's versions."""
    response.headers.pop("Server", None)


_NAME: Final = "ldpstream.agents.web.server"


class _Quiet(logging.Filter):
    """Drops errors of clients, which they are told, and removes addresses from the rest."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            return False
        if record.args:
            record.msg, record.args = "a request failed", ()
        return True


def server_log() -> logging.Logger:
    """Return the server's log: its own failures, without anything about clients."""
    log = logging.getLogger(_NAME)
    if not any(isinstance(one, _Quiet) for one in log.filters):
        log.addFilter(_Quiet())
    return log
