"""Accepts sockets, passes them to aiohttp, and tells the limiter what happens on them.

They are not accepted by asyncio's server, because that reports a connection only after its TLS
handshake: until then it could be neither counted nor ended.
"""

import asyncio
import errno
import socket
import ssl
import traceback
from functools import partial
from typing import Final

from aiohttp import web

from ldpstream.agents.web.connection import HEADER_SECONDS, Connection
from ldpstream.agents.web.connection_limits import ConnectionLimiter

END_SECONDS: Final = 2.0
"""For pending answers when the server ends, and for the rest of a refused body."""
_ACCEPTED_AT_ONCE: Final = 24
"""Per iteration of the loop. A connection is first read some four iterations later: those accepted
meanwhile must be far fewer than a peer may have, or they would take its place before then."""
_READ_BYTES: Final = 16 << 10
"""Per read of a connection: a probe waits while all ready connections are read once or twice."""
_NO_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE_SECONDS: Final = 0.1


class Entrance:
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
