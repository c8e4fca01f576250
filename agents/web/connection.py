"""A connection and its peer, and how long each step of a request may take."""

import asyncio
import enum
from dataclasses import dataclass, field
from typing import Final

from ldpstream.agents.web.addresses import Network

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


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The most open connections."""

    connections: int
    per_peer: int
    """Of one address; behind trusted proxies, concurrent requests of one client."""
    trusted_proxies: tuple[Network, ...] = ()


class Phase(enum.Enum):
    """What a connection does: see `ldpstream.agents.web.connection_limits`."""

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
    unread: tuple[int, float] | None = None
    """Bytes of answers that the reader has not taken, and when they last became fewer."""


def end_transport(transport: asyncio.Transport, said: bytes = BUSY) -> None:
    """End a connection at once, and say why if its buffers allow it."""
    if said and not transport.get_write_buffer_size():
        transport.write(said)
    transport.abort()


def unread_bytes(connection: Connection) -> int:
    """Return how many bytes of answers the reader has not taken yet."""
    return 0 if connection.transport is None else connection.transport.get_write_buffer_size()


def loop_time() -> float:
    """Return the event loop's time in seconds."""
    return asyncio.get_running_loop().time()
