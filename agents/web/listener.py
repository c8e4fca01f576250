"""Serve an application on an address: listening sockets, their limits, and aiohttp's server.

Connections are not accepted by asyncio's server, because that reports one only after its TLS
handshake: until then it could be neither counted nor ended. `Acceptor` accepts sockets, passes them
to aiohttp, and tells the limiter what happens on them.
"""

import asyncio
import errno
import logging
import resource
import socket
import ssl
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
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
from ldpstream.agents.web.connection_limits import (
    HEADER_SECONDS,
    PROXY_IDLE_SECONDS,
    RESERVE,
    Bounds,
    Connection,
    ConnectionLimiter,
    DirectHandler,
)

END_SECONDS: Final = 2.0
"""For pending answers when the server ends, and for the rest of a refused body."""
_ACCEPTED_AT_ONCE: Final = 24
"""Per iteration of the loop. A connection is first read some four iterations later: those accepted
meanwhile must be far fewer than a peer may have, or they would take its place before then."""
_READ_BYTES: Final = 16 << 10
"""Per read of a connection: a probe waits while all ready connections are read once or twice."""
_NO_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE_SECONDS: Final = 0.1
_BACKLOG: Final = 1024
_READ_BUFFER_BYTES: Final = 64 << 10
"""aiohttp's read buffer: it holds at most twice as much of a body, and one read more."""
_OTHER_FILES: Final = 256
"""Files that the process itself needs: Kafka's connections, the store's files."""
_NAME: Final = "ldpstream.agents.web.server"

log = logging.getLogger(__name__)


class Acceptor:
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
        """Start to accept connections of a listener."""
        self._resuming.pop(listener, None)
        self._loop.add_reader(listener, self._accept, listener)

    def close(self, listener: socket.socket) -> None:
        """Accept no more connections, and end those that are still being set up."""
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
                # Pause: waiting connections stay in the kernel, and keep the socket ready.
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
        """Give a socket a transport; with TLS, after the handshake."""
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
        except OSError as error:
            # It disconnected, or did not speak TLS: not worth logging.
            self._limiter.forget(connection)
            # The exception and its frames form a cycle, which would keep TLS's buffer of a quarter
            # of a megabyte until the next garbage collection.
            traceback.clear_frames(error.__traceback__)

    def _opened(
        self, accepted: socket.socket, connection: Connection, task: "asyncio.Task[None]"
    ) -> None:
        self._opening.discard(task)
        connection.opening = None
        if task.cancelled():
            self._limiter.forget(connection)
            if connection.inner is None:
                # There is no transport that would close it.
                accepted.close()


class _Guard(asyncio.BufferedProtocol):
    """Sits between a transport and aiohttp's protocol, and tells the limiter what happens.

    All connections share one read `buffer`, which is emptied before the next read: otherwise each
    read would allocate a quarter of a megabyte.
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


@asynccontextmanager
async def listen(
    app: web.Application,
    *,
    address: str,
    bounds: Bounds,
    tls: ssl.SSLContext | None,
    setting: str,
    auto_decompress: bool = True,
    direct: Mapping[str, DirectHandler] | None = None,
) -> AsyncIterator[tuple[str, ConnectionLimiter]]:
    """Serve an application during a block, which gets the URL and the limiter.

    `setting` says where the user sets the address. `direct` are handlers of POST by the path as it
    is sent, which are tried before the application, its router and its middlewares.
    """
    limiter = ConnectionLimiter(_within_files(bounds))
    app.middlewares.insert(0, limiter.watching())
    app.on_response_prepare.append(_remove_server_header)
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=server_log(),
        handle_signals=False,
        shutdown_timeout=END_SECONDS,
        # The limiter ends idle connections earlier.
        keepalive_timeout=PROXY_IDLE_SECONDS + HEADER_SECONDS,
        lingering_time=END_SECONDS,
        read_bufsize=_READ_BUFFER_BYTES,
        auto_decompress=auto_decompress,
    )
    await runner.setup()
    try:
        server = runner.server
        assert server is not None
        server.request_factory = partial(_make_request, server.request_factory)
        if direct:
            server.request_handler = _direct_first(direct, limiter, server.request_handler)
        acceptor = Acceptor(server, limiter, tls)
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
            for listener in sockets:
                acceptor.open(listener)
            bound_port = sockets[0].getsockname()[1]
            yield f"{'http' if tls is None else 'https'}://{host}:{bound_port}", limiter
        finally:
            sweeping.cancel()
            for listener in sockets:
                acceptor.close(listener)
    finally:
        await runner.cleanup()


async def _bind(host: str, port: int) -> list[socket.socket]:
    """Return listening sockets for every address of a host."""
    addresses = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(addresses):
            listener = socket.socket(family, socket.SOCK_STREAM)
            sockets.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
            listener.setblocking(False)
    except OSError:
        for listener in sockets:
            listener.close()
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


def _direct_first(
    direct: Mapping[str, DirectHandler],
    limiter: ConnectionLimiter,
    application: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        handler = direct.get(request.raw_path) if request.method == "POST" else None
        if handler is not None:
            response = await limiter.watch_direct(request, handler)
            if response is not None:
                return response
        return await application(request)

    return answer


class SentResponse(web.StreamResponse):
    """A response made beforehand, as the bytes of its headers and its body.

    Where many requests get the same small answer, making it takes longer than all else.
    """

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self._content = content

    @property
    def keep_alive(self) -> bool:
        """Say that the connection stays open."""
        return True

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send it; a client that has gone does not get it."""
        if request.transport is not None:
            request.transport.write(self._content)
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: it is sent."""


class _Unreadable(web.BaseRequest):
    """aiohttp's answer to bytes that are not HTTP."""

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        await _remove_server_header(self, response)


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


async def _remove_server_header(_: web.BaseRequest, response: web.StreamResponse) -> None:
    """Leave out aiohttp's and Python's versions."""
    response.headers.pop("Server", None)


class _Quiet(logging.Filter):
    """Drops errors that clients have been told of, and removes addresses from the rest."""

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
    if not any(isinstance(known_filter, _Quiet) for known_filter in log.filters):
        log.addFilter(_Quiet())
    return log
