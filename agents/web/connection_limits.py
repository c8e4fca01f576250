"""Limits on open connections, in total and per peer; idle ones give way to new ones.

A connection waits for a request, receives its body, or is answered. Ending one that waits or
receives loses nothing that cannot be asked for again. So if there is no place for a new connection,
the peer with the most connections loses the one that has waited or received the longest: neither
silence nor slowness keeps anybody out. If all places are taken by requests that are being answered,
a new connection gets one of a few reserved places, on which only probes are answered.
"""

import asyncio
import enum
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from ldpstream.agents.web.addresses import Network, forwarded_for, is_trusted, peer_name

HEADER_SECONDS: Final = 10.0
"""From the connection, or a further request's first byte, to the end of the headers."""
BODY_SECONDS: Final = 30.0
"""From a request's headers to the end of its body."""
IDLE_SECONDS: Final = 15.0
"""From an answer to the next request."""
PROXY_IDLE_SECONDS: Final = 75.0
"""The same for a trusted proxy: longer than proxies keep idle connections."""
STUCK_SECONDS: Final = 10.0
"""How long a reader may stall in the middle of an answer."""
HEADER_BYTES: Final = 32 << 10
RESERVE: Final = 32
"""Connections beyond the bounds, on which only probes are answered."""

BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 0\r\n"
    b"Connection: close\r\n\r\n"
)
END_OF_HEADERS: Final = b"\r\n\r\n"
_UNREAD_BYTES: Final = 64 << 20
"""The most bytes of answers, over all connections, that readers have not taken yet."""
_PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})
_TICK_SECONDS: Final = 0.25
_EXCESS_SECONDS: Final = 1.0
_NEVER: Final = float("inf")
PEER: Final = ContextVar("peer", default="")
"""The name of the peer whose request is being answered."""
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
DirectHandler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse | None]]
"""Answers a request without the application; None where the application has to answer it."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The most open connections."""

    connections: int
    per_peer: int
    """Of one address; behind trusted proxies, concurrent requests of one client."""
    trusted_proxies: tuple[Network, ...] = ()


class Phase(enum.Enum):
    """What a connection does now."""

    WAITING = enum.auto()
    RECEIVING = enum.auto()
    ANSWERING = enum.auto()


@dataclass(eq=False)
class Peer:
    """An address, or a client behind a trusted proxy, and its connections."""

    name: str
    trusted: bool
    open: int = 0
    yielding: "dict[Connection, None]" = field(default_factory=dict)
    """Its waiting and receiving connections, the longest first."""


@dataclass(eq=False)
class Connection:
    """One connection; `opening` ends once it has a transport, with TLS after the handshake."""

    home: Peer
    peer: Peer
    """The peer of the current request; otherwise `home`."""
    reserve: bool
    deadline: float
    phase: Phase = Phase.WAITING
    transport: asyncio.Transport | None = None
    opening: "asyncio.Task[None] | None" = None
    inner: asyncio.Protocol | None = None
    heard: bool = True
    """Whether bytes of the next request may have arrived."""
    header_bytes: int = 0
    tail: bytes = b""
    requests: int = 0
    paused: bool = False
    """Whether its bytes are not read, since they came before the answer to the last request."""
    unread: tuple[int, float] | None = None
    """Bytes of answers that the reader has not taken, and when they last became fewer."""


def end_transport(transport: asyncio.Transport, message: bytes = BUSY) -> None:
    """End a connection at once, and say why if its buffers allow it."""
    if message and not transport.get_write_buffer_size():
        transport.write(message)
    transport.abort()


def unread_bytes(connection: Connection) -> int:
    """Return how many bytes of answers the reader has not taken yet."""
    return 0 if connection.transport is None else connection.transport.get_write_buffer_size()


class ConnectionLimiter:
    """Gives places to connections, and takes them back; nothing else ends connections."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._open: dict[Connection, None] = {}
        self._reserve: dict[Connection, None] = {}
        self._peers: dict[str, Peer] = {}
        self._of_protocol: dict[asyncio.BaseProtocol, Connection] = {}

    def count(self) -> int:
        """Return the number of open connections."""
        return len(self._open)

    def admit(self, host: str) -> Connection:
        """Give a new connection a place; if there is none, that of an idle one."""
        home = self._peer(host)
        full = not home.trusted and home.open >= self._bounds.per_peer
        if full:
            reserve = not self.make_place(home)
        elif len(self._open) - len(self._reserve) >= self._bounds.connections:
            reserve = not self.make_place()
        else:
            reserve = False
        if reserve and len(self._reserve) >= RESERVE:
            self.end(next(iter(self._reserve)))
        if not reserve:
            # `make_place` may have ended the peer's last connection, and forgotten the peer.
            home = self._peers.setdefault(home.name, home)
        connection = Connection(home, home, reserve, time.monotonic() + HEADER_SECONDS)
        self._open[connection] = None
        if reserve:
            self._reserve[connection] = None
        else:
            home.open += 1
            home.yielding[connection] = None
        return connection

    def make_place(self, peer: Peer | None = None) -> bool:
        """End a peer's longest idle connection, by default the largest's; False if it has none."""
        peer = peer or self._largest()
        if peer is None or not peer.yielding:
            return False
        oldest = next(iter(peer.yielding))
        begun = oldest.phase is Phase.RECEIVING or (oldest.heard and oldest.header_bytes != 0)
        self.end(oldest, BUSY if begun else b"")
        return True

    def end(self, connection: Connection, message: bytes = b"") -> None:
        """End a connection at once: a peer that does not read could delay an orderly end."""
        self.forget(connection)
        if connection.transport is not None:
            end_transport(connection.transport, message)
        elif connection.opening is not None:
            connection.opening.cancel()

    def forget(self, connection: Connection) -> None:
        """Release a connection's place, if it still has one."""
        if connection not in self._open:
            return
        del self._open[connection]
        self._reserve.pop(connection, None)
        if connection.inner is not None:
            self._of_protocol.pop(connection.inner, None)
        self._leave(connection)

    def connected(self, connection: Connection, transport: asyncio.Transport) -> None:
        """Store a connection's transport, and the protocol that its requests refer to."""
        connection.transport = transport
        if connection not in self._open:
            transport.abort()
        elif connection.inner is not None:
            self._of_protocol[connection.inner] = connection

    def received(self, connection: Connection, data: bytes) -> None:
        """Count bytes before they are parsed, to limit the time and size of headers.

        Stop to read where they came before the last answer: they could fill the memory.
        """
        if connection.phase is Phase.ANSWERING and connection.transport is not None:
            connection.transport.pause_reading()
            connection.paused = True
        if connection.phase is not Phase.WAITING or connection.header_bytes < 0:
            return
        if not connection.heard:
            connection.heard = True
            connection.deadline = time.monotonic() + HEADER_SECONDS
        arrived = connection.tail + data if connection.tail else data
        if END_OF_HEADERS in arrived:
            connection.header_bytes = -1
            if connection in connection.peer.yielding:
                # Now it waits for the server, so it moves to the end of the order.
                del connection.peer.yielding[connection]
                connection.peer.yielding[connection] = None
            return
        connection.tail = arrived[1 - len(END_OF_HEADERS) :]
        connection.header_bytes += len(data)
        if connection.header_bytes > HEADER_BYTES:
            # Not at once: these may be bytes of a body sent before the last answer.
            connection.deadline = min(connection.deadline, time.monotonic() + _EXCESS_SECONDS)

    def blocked(self, connection: Connection) -> None:
        """Start to time a connection's reader, which has stalled."""
        connection.unread = (unread_bytes(connection), time.monotonic())

    def unblocked(self, connection: Connection) -> None:
        """Stop to time a connection's reader, which takes data again."""
        connection.unread = None
        if connection.phase is Phase.WAITING:
            connection.deadline = time.monotonic() + self._idle_seconds(connection)

    def watching(self) -> Middleware:
        """Return the outermost middleware, which gives requests their places."""

        @web.middleware
        async def watch(request: web.Request, handler: _Handler) -> web.StreamResponse:
            connection = self._of_protocol.get(request.protocol)
            if connection is None or not self._begin(connection, request):
                response = web.Response(status=503, headers={"Retry-After": "2"})
                response.force_close()
                return response
            try:
                answer = await handler(request)
            finally:
                self._answered(connection)
            if connection.reserve and not answer.prepared:
                answer.force_close()
            return answer

        return watch

    async def watch_direct(
        self, request: web.BaseRequest, handler: DirectHandler
    ) -> web.StreamResponse | None:
        """Do the same for a handler without middlewares; None where it has to go through them."""
        connection = self._of_protocol.get(request.protocol)
        if connection is None or connection.reserve or not self._begin(connection, request):
            return None
        try:
            return await handler(request)
        finally:
            self._answered(connection)

    async def sweep(self) -> None:
        """End connections whose time is up, until cancelled."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            now = time.monotonic()
            for connection in [
                candidate for candidate in self._open if self._is_over(candidate, now)
            ]:
                cut_short = connection.phase is Phase.RECEIVING
                self.end(connection, BUSY if cut_short else b"")
            unread = {
                candidate: unread_bytes(candidate)
                for candidate in self._open
                if candidate.unread is not None
            }
            excess = sum(unread.values()) - _UNREAD_BYTES
            for connection, size in unread.items():
                if excess > 0:
                    excess -= size
                    self.end(connection)

    def _is_over(self, connection: Connection, now: float) -> bool:
        if connection.unread is None:
            return connection.deadline <= now
        size, since = connection.unread
        rest = unread_bytes(connection)
        if rest < size:
            connection.unread = (rest, now)
            return False
        return now - since > STUCK_SECONDS

    def _begin(self, connection: Connection, request: web.BaseRequest) -> bool:
        """Return whether to answer a request, and count it for its client."""
        peer = connection.home
        # Others are treated alike whatever their path is, which takes a while to decode.
        if (connection.reserve or peer.trusted) and request.path not in _PROBES:
            if connection.reserve:
                return False
            client = forwarded_for(request, self._bounds.trusted_proxies)
            if client is not None:
                peer = self._peer(client)
                if peer.open >= self._bounds.per_peer and not self.make_place(peer):
                    return False
        PEER.set(peer.name)
        connection.requests += 1
        self._move(connection, peer)
        if request.content.is_eof():
            connection.phase, connection.deadline = Phase.ANSWERING, _NEVER
            return True
        connection.phase, connection.deadline = Phase.RECEIVING, time.monotonic() + BODY_SECONDS
        if not connection.reserve:
            connection.peer.yielding[connection] = None
        number = connection.requests
        request.content.on_eof(lambda: self._has_body(connection, number))
        return True

    def _has_body(self, connection: Connection, number: int) -> None:
        if connection.phase is Phase.RECEIVING and connection.requests == number:
            connection.phase, connection.deadline = Phase.ANSWERING, _NEVER
            connection.peer.yielding.pop(connection, None)

    def _answered(self, connection: Connection) -> None:
        """Make a connection wait for its next request, or for its reader."""
        if connection not in self._open:
            return
        self._move(connection, connection.home)
        if not connection.reserve:
            connection.home = connection.peer
            connection.home.yielding[connection] = None
        connection.phase = Phase.WAITING
        connection.deadline = time.monotonic() + self._idle_seconds(connection)
        connection.heard, connection.header_bytes, connection.tail = False, 0, b""
        if connection.paused and connection.transport is not None:
            connection.paused = False
            connection.transport.resume_reading()

    def _move(self, connection: Connection, peer: Peer) -> None:
        """Count a connection for a peer; it no longer gives way to new ones."""
        if connection.peer is peer:
            peer.yielding.pop(connection, None)
        elif not connection.reserve:
            self._leave(connection)
            connection.peer = self._peers.setdefault(peer.name, peer)
            connection.peer.open += 1

    def _leave(self, connection: Connection) -> None:
        if connection.reserve:
            return
        peer = connection.peer
        peer.yielding.pop(connection, None)
        peer.open -= 1
        if not peer.open:
            self._peers.pop(peer.name, None)

    def _peer(self, host: str) -> Peer:
        trusted = is_trusted(host, self._bounds.trusted_proxies)
        name = peer_name(host)
        peer = self._peers.get(name)
        return Peer(name, trusted) if peer is None else peer

    def _largest(self) -> Peer | None:
        """Return the peer that gives way; trusted proxies act for many clients, and come last."""
        yielding = (peer for peer in self._peers.values() if peer.yielding)
        return max(yielding, key=lambda peer: (not peer.trusted, peer.open), default=None)

    def _idle_seconds(self, connection: Connection) -> float:
        return PROXY_IDLE_SECONDS if connection.home.trusted else IDLE_SECONDS
