"""Which connections stay open: bounded together and per peer, and idle ones give way to new ones.

A connection waits for a request, receives its body, or is answered. One that waits or receives
holds nothing that cannot be asked for again: where there is no place for a new connection, the
longest of these ends, of the peer that has the most. So neither silence nor slowness keeps anybody
out. Where all places are taken by requests that are being answered, a new connection gets one of a
few more on which only probes are answered.
"""

import asyncio
import enum
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from ldpstream.agents.http.peers import Network, forwarded_for, is_trusted, peer_name

HEADER_SECONDS: Final = 10.0
"""From the connection, or the first byte of a further request, to the end of the headers."""
BODY_SECONDS: Final = 30.0
"""From a request's headers to the end of its body."""
IDLE_SECONDS: Final = 15.0
"""From an answer to the next request."""
PROXY_IDLE_SECONDS: Final = 75.0
"""The same of a trusted proxy: longer than proxies keep a connection that they do not use."""
STUCK_SECONDS: Final = 10.0
"""For how long a reader may take nothing of an answer."""
UNREAD_BYTES: Final = 64 << 20
"""What has been answered and not been taken yet, of all connections together."""
HEADER_BYTES: Final = 32 << 10
RESERVE: Final = 32
"""Connections beyond the bounds, on which probes are answered."""
PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})

_TICK_SECONDS: Final = 0.25
_EXCESS_SECONDS: Final = 1.0
_NEVER: Final = float("inf")
_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 0\r\n"
    b"Connection: close\r\n\r\n"
)
_END: Final = b"\r\n\r\n"

PEER: Final = ContextVar("peer", default="")
"""The name of the peer whose request is being answered."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How many connections are open at once."""

    connections: int
    per_peer: int
    """Of one address, and requests under way of one client behind trusted proxies."""
    trusted_proxies: tuple[Network, ...] = ()


class _Phase(enum.Enum):
    WAITING = enum.auto()
    RECEIVING = enum.auto()
    ANSWERING = enum.auto()


@dataclass(eq=False)
class _Peer:
    name: str
    trusted: bool
    open: int = 0
    yielding: "dict[Connection, None]" = field(default_factory=dict)
    """Those that wait or receive, the longest first."""


@dataclass(eq=False)
class Connection:
    """One connection; `opening` ends once it has a transport, over TLS after the handshake."""

    home: _Peer
    peer: _Peer
    """Whose request is under way; `home` otherwise."""
    reserve: bool
    deadline: float
    phase: _Phase = _Phase.WAITING
    transport: asyncio.Transport | None = None
    opening: "asyncio.Task[None] | None" = None
    inner: asyncio.Protocol | None = None
    heard: bool = True
    """Whether anything of the request that it waits for may have come."""
    header_bytes: int = 0
    tail: bytes = b""
    requests: int = 0
    unread: tuple[int, float] | None = None
    """Bytes of answers that it does not take, and when they became fewer for the last time."""


class ConnectionLimiter:
    """Gives places to connections, and takes them back; a connection is ended by nobody else."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._open: dict[Connection, None] = {}
        self._reserve: dict[Connection, None] = {}
        self._peers: dict[str, _Peer] = {}
        self._of_protocol: dict[asyncio.BaseProtocol, Connection] = {}

    def count(self) -> int:
        """Return the number of open connections."""
        return len(self._open)

    def admit(self, host: str) -> Connection:
        """Give a new connection a place; where there is none, an idle one's."""
        home = self._peer(host)
        full = not home.trusted and home.open >= self._bounds.per_peer
        if full:
            reserve = not self._make_place(home)
        elif len(self._open) - len(self._reserve) >= self._bounds.connections:
            reserve = not self._make_place(self._largest())
        else:
            reserve = False
        if reserve and len(self._reserve) >= RESERVE:
            self.end(next(iter(self._reserve)))
        if not reserve:
            # Ending a peer's last connection forgets the peer.
            home = self._peers.setdefault(home.name, home)
        connection = Connection(home, home, reserve, _now() + HEADER_SECONDS)
        self._open[connection] = None
        if reserve:
            self._reserve[connection] = None
        else:
            home.open += 1
            home.yielding[connection] = None
        return connection

    def make_place(self) -> None:
        """End the longest idle connection of the largest peer, if there is any."""
        self._make_place(self._largest())

    def end(self, connection: Connection, said: bytes = b"") -> None:
        """End a connection at once: a peer that does not listen could delay an orderly end."""
        self.forget(connection)
        if connection.transport is not None:
            end_transport(connection.transport, said)
        elif connection.opening is not None:
            connection.opening.cancel()

    def forget(self, connection: Connection) -> None:
        """Give a connection's place back, if it has not been yet."""
        if connection not in self._open:
            return
        del self._open[connection]
        self._reserve.pop(connection, None)
        if connection.inner is not None:
            self._of_protocol.pop(connection.inner, None)
        self._leave(connection)

    def connected(self, connection: Connection, transport: asyncio.Transport) -> None:
        """Take note of a connection's transport, and of the protocol that requests name."""
        connection.transport = transport
        if connection not in self._open:
            transport.abort()
        elif connection.inner is not None:
            self._of_protocol[connection.inner] = connection

    def received(self, connection: Connection, data: bytes) -> None:
        """Take note of bytes before they are parsed: headers have to end, in time and in size."""
        if connection.phase is not _Phase.WAITING or connection.header_bytes < 0:
            return
        if not connection.heard:
            connection.heard = True
            connection.deadline = _now() + HEADER_SECONDS
        seen = connection.tail + data
        if _END in seen:
            connection.header_bytes = -1
            if connection in connection.peer.yielding:
                # From here on it waits for us.
                del connection.peer.yielding[connection]
                connection.peer.yielding[connection] = None
            return
        connection.tail = seen[1 - len(_END) :]
        connection.header_bytes += len(data)
        if connection.header_bytes > HEADER_BYTES:
            # Not at once: it may be the body of a request that was sent before the last answer.
            connection.deadline = min(connection.deadline, _now() + _EXCESS_SECONDS)

    def blocked(self, connection: Connection) -> None:
        """Take note that a connection does not take what it is answered."""
        connection.unread = (_unread(connection), _now())

    def unblocked(self, connection: Connection) -> None:
        """Take note that it does again."""
        connection.unread = None
        if connection.phase is _Phase.WAITING:
            connection.deadline = _now() + self._idle_seconds(connection)

    def watching(self) -> Middleware:
        """Return what gives requests their places: the outermost middleware."""

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

    async def sweep(self) -> None:
        """End connections whose time is over, until cancelled."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            now = _now()
            for connection in [one for one in self._open if self._is_over(one, now)]:
                receiving = connection.phase is _Phase.RECEIVING
                self.end(connection, _BUSY if receiving else b"")
            unread = {one: _unread(one) for one in self._open if one.unread is not None}
            excess = sum(unread.values()) - UNREAD_BYTES
            for connection, size in unread.items():
                if excess > 0:
                    excess -= size
                    self.end(connection)

    def _is_over(self, connection: Connection, now: float) -> bool:
        if connection.unread is None:
            return connection.deadline <= now
        size, since = connection.unread
        left = _unread(connection)
        if left < size:
            connection.unread = (left, now)
            return False
        return now - since > STUCK_SECONDS

    def _begin(self, connection: Connection, request: web.Request) -> bool:
        """Return whether a request is answered, and count it as its client's."""
        probe = request.path in PROBES
        if connection.reserve and not probe:
            return False
        peer = connection.home
        if peer.trusted and not probe:
            client = forwarded_for(request, self._bounds.trusted_proxies)
            if client is not None:
                peer = self._peer(client)
                if peer.open >= self._bounds.per_peer and not self._make_place(peer):
                    return False
        PEER.set(peer.name)
        connection.requests += 1
        self._leave(connection)
        self._join(connection, peer)
        if request.content.is_eof():
            connection.phase, connection.deadline = _Phase.ANSWERING, _NEVER
            return True
        connection.phase, connection.deadline = _Phase.RECEIVING, _now() + BODY_SECONDS
        if not connection.reserve:
            connection.peer.yielding[connection] = None
        number = connection.requests
        request.content.on_eof(lambda: self._has_body(connection, number))
        return True

    def _has_body(self, connection: Connection, number: int) -> None:
        if connection.phase is _Phase.RECEIVING and connection.requests == number:
            connection.phase, connection.deadline = _Phase.ANSWERING, _NEVER
            connection.peer.yielding.pop(connection, None)

    def _answered(self, connection: Connection) -> None:
        """Let a connection wait for its next request, or for its reader to take the answer."""
        if connection not in self._open:
            return
        self._leave(connection)
        self._join(connection, connection.home)
        if not connection.reserve:
            connection.home = connection.peer
            connection.home.yielding[connection] = None
        connection.phase = _Phase.WAITING
        connection.deadline = _now() + self._idle_seconds(connection)
        connection.heard, connection.header_bytes, connection.tail = False, 0, b""

    def _join(self, connection: Connection, peer: _Peer) -> None:
        if not connection.reserve:
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

    def _peer(self, host: str) -> _Peer:
        trusted = is_trusted(host, self._bounds.trusted_proxies)
        name = peer_name(host)
        known = self._peers.get(name)
        return _Peer(name, trusted) if known is None else known

    def _largest(self) -> _Peer | None:
        """Return the peer that gives way; trusted proxies stand for many, and come last."""
        yielding = (peer for peer in self._peers.values() if peer.yielding)
        return max(yielding, key=lambda peer: (not peer.trusted, peer.open), default=None)

    def _make_place(self, peer: _Peer | None) -> bool:
        if peer is None or not peer.yielding:
            return False
        oldest = next(iter(peer.yielding))
        begun = oldest.phase is _Phase.RECEIVING or (oldest.heard and oldest.header_bytes != 0)
        self.end(oldest, _BUSY if begun else b"")
        return True

    def _idle_seconds(self, connection: Connection) -> float:
        return PROXY_IDLE_SECONDS if connection.home.trusted else IDLE_SECONDS


def end_transport(transport: asyncio.Transport, said: bytes = _BUSY) -> None:
    """End a connection at once, and say why as far as its buffers take it."""
    if said and not transport.get_write_buffer_size():
        transport.write(said)
    transport.abort()


def _unread(connection: Connection) -> int:
    return 0 if connection.transport is None else connection.transport.get_write_buffer_size()


def _now() -> float:
    return asyncio.get_running_loop().time()
