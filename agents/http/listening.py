"""Listening on an address: sockets, TLS, and the way from an accepted socket to aiohttp.

Sockets are accepted here and not by asyncio's server, which tells nobody of a connection before
its TLS handshake is over: until then it could be neither counted nor ended.
"""

import asyncio
import errno
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
from aiohttp.web_protocol import ERROR

from ldpstream.agents.http.connections import (
    HEADER_SECONDS,
    PROXY_IDLE_SECONDS,
    RESERVE,
    Bounds,
    Connection,
    ConnectionLimiter,
)
from ldpstream.agents.http.quiet import server_log

END_SECONDS: Final = 2.0
"""For answers under way when the server ends, and for what is left of a body that was refused."""
_BACKLOG: Final = 1024
_ACCEPTED_AT_ONCE: Final = 24
"""In one turn of the loop. A connection is read some four turns later: those accepted meanwhile
must be far fewer than one peer may have, or they would take its place before it was heard."""
_READ_BYTES: Final = 16 << 10
"""Of one connection at a time: a probe waits while all that are ready are read once or twice."""
_HELD_BYTES: Final = 64 << 10
"""Of a body, before its handler takes it: at most twice as much, and one read more."""
_OTHER_FILES: Final = 256
"""What the process itself needs: Kafka's connections, the store's files."""
_NO_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE_SECONDS: Final = 0.1

log = logging.getLogger(__name__)


class HttpUnavailableError(RuntimeError):
    """The address cannot be listened on; the message says which and why."""


@asynccontextmanager
async def listening(
    app: web.Application,
    *,
    address: str,
    bounds: Bounds,
    tls: ssl.SSLContext | None,
    setting: str,
    auto_decompress: bool = True,
) -> AsyncIterator[tuple[str, ConnectionLimiter]]:
    """Serve an application for the length of a block, which gets the URL and what counts.

    `setting` is where the user chose the address.

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
        # The limiter ends idle connections, and earlier.
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
        entrance = _Entrance(server, limiter, tls)
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
    """Raise the limit of open files to what the bounds need, or else lower the bounds."""
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
        "%d connections at once instead of %d: the process may open %d files, expected %d "
        "(ulimit -n)", fewer, bounds.connections, most, needed,
    )  # fmt: skip
    return replace(bounds, connections=fewer)


class _Entrance:
    """Accepts connections and hands them to aiohttp's server."""

    def __init__(
        self, server: web.Server, limiter: ConnectionLimiter, tls: ssl.SSLContext | None
    ) -> None:
        self._server = server
        self._limiter = limiter
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray(_READ_BYTES)
        self._opening: set[asyncio.Task[None]] = set()
        self._resuming: dict[socket.socket, asyncio.TimerHandle] = {}

    def open(self, listener: socket.socket) -> None:
        """Accept what comes."""
        self._resuming.pop(listener, None)
        self._loop.add_reader(listener, self._accept, listener)

    def close(self, listener: socket.socket) -> None:
        """Accept no more, and end what has not said anything yet."""
        waiting = self._resuming.pop(listener, None)
        if waiting is not None:
            waiting.cancel()
        self._loop.remove_reader(listener)
        listener.close()
        for task in self._opening:
            task.cancel()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_FILES:
                    raise
                # Those that wait in the kernel stay there: the socket would be ready at once.
                self._limiter.make_place()
                self._loop.remove_reader(listener)
                again = self._loop.call_later(_PAUSE_SECONDS, self.open, listener)
                self._resuming[listener] = again
                return
            accepted.setblocking(False)
            connection = self._limiter.admit(str(address[0]))
            task = self._loop.create_task(self._connect(accepted, connection))
            connection.opening = task
            self._opening.add(task)
            task.add_done_callback(partial(self._opened, accepted, connection))

    async def _connect(self, accepted: socket.socket, connection: Connection) -> None:
        """Give a socket a transport; over TLS, once both sides have greeted each other."""
        times: dict[str, float] = {}
        if self._tls is not None:
            times = {"ssl_handshake_timeout": HEADER_SECONDS, "ssl_shutdown_timeout": END_SECONDS}
        try:
            await self._loop.connect_accepted_socket(
                lambda: _Guard(self._server(), connection, self._limiter, self._buffer),
                accepted,
                ssl=self._tls,
                **times,
            )
        except OSError:
            # It went, or spoke no TLS: nobody's to know.
            self._limiter.forget(connection)

    def _opened(
        self, accepted: socket.socket, connection: Connection, task: "asyncio.Task[None]"
    ) -> None:
        self._opening.discard(task)
        if task.cancelled():
            self._limiter.forget(connection)
            if connection.inner is None:
                # No transport has been made that would close it.
                accepted.close()


class _Guard(asyncio.BufferedProtocol):
    """Stands between a transport and aiohttp's protocol, and tells the limiter what happens.

    All connections are read into one `buffer`, which is emptied before the next one is read:
    otherwise each read would allocate a quarter of a megabyte.
    """

    def __init__(
        self,
        inner: asyncio.Protocol,
        connection: Connection,
        limiter: ConnectionLimiter,
        buffer: bytearray,
    ) -> None:
        self._inner = connection.inner = inner
        self._connection = connection
        self._limiter = limiter
        self._buffer = buffer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._inner.connection_made(transport)
        self._limiter.connected(self._connection, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._limiter.forget(self._connection)
        self._inner.connection_lost(exc)

    def get_buffer(self, _sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(memoryview(self._buffer)[:nbytes])
        self._limiter.received(self._connection, data)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._limiter.blocked(self._connection)
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._limiter.unblocked(self._connection)
        self._inner.resume_writing()


class _Unreadable(web.BaseRequest):
    """What aiohttp answers to bytes that are no HTTP."""

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
