"""Reads bodies within a common limit; incomplete ones give way.

Otherwise, clients that send parts of bodies and stop would keep everybody else's out. So if there
is no room for more bytes, the peer that holds the most loses its oldest incomplete body.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from ldpstream.agents.web.connection_limits import PEER, end_transport

_CHUNK_BYTES: Final = 64 << 10


class BodyRefusedError(Exception):
    """Base class: a body is not read to its end."""


class TooLargeError(BodyRefusedError):
    """The body exceeds the limit."""


class NoRoomError(BodyRefusedError):
    """There is no room for the body, even without incomplete ones."""


class BrokenOffError(BodyRefusedError):
    """The connection ended first: nobody reads the answer."""


@dataclass(eq=False)
class _Arrival:
    peer: str
    request: web.BaseRequest
    size: int = 0
    gone: bool = False
    pieces: list[bytearray] = field(default_factory=list)
    """Pieces of similar size: one buffer growing to any length would fragment memory."""

    def add(self, chunk: bytes) -> None:
        if not self.pieces or len(self.pieces[-1]) + len(chunk) > _CHUNK_BYTES:
            self.pieces.append(bytearray())
        self.pieces[-1] += chunk
        self.size += len(chunk)


class Bodies:
    """The bodies that are arriving; `room_bytes` returns how much they may take together."""

    def __init__(self, room_bytes: Callable[[], int]) -> None:
        self._room_bytes = room_bytes
        self._of_peer: defaultdict[str, dict[_Arrival, None]] = defaultdict(dict)
        """Bodies of which some bytes have arrived, in that order."""
        self._peer_bytes: Counter[str] = Counter()
        self.arriving_bytes = 0

    async def read(self, request: web.BaseRequest, *, limit_bytes: int) -> bytes:
        """Return a request's body.

        Raises:
            TooLargeError: for more than `limit_bytes`, announced or sent.
            NoRoomError: where there is no room even without the incomplete bodies of others.
            BrokenOffError: where it was not sent to its end.
        """
        announced = request.content_length or 0
        if announced > limit_bytes:
            raise TooLargeError
        if announced > self._room_bytes():
            raise NoRoomError
        here = request.content.is_eof() and "Content-Encoding" not in request.headers
        if announced and here and self.arriving_bytes + announced <= self._room_bytes():
            # Most bodies arrive together with their headers: nothing of them has to be kept.
            return request.content.read_nowait()
        arrival = _Arrival(PEER.get(), request)
        try:
            while chunk := await request.content.read(_CHUNK_BYTES):
                if arrival.size + len(chunk) > limit_bytes:
                    raise TooLargeError
                self._keep(arrival, chunk)
            return b"".join(arrival.pieces)
        except (web.RequestPayloadError, ConnectionError) as error:
            # The reader keeps this exception: with its traceback they would form a cycle, which
            # would keep the buffered bytes until the next garbage collection.
            error.__traceback__ = None
            raise BrokenOffError from None
        finally:
            self._release(arrival)

    def _keep(self, arrival: _Arrival, chunk: bytes) -> None:
        while self.arriving_bytes + len(chunk) > self._room_bytes():
            yielding = self._yielding(arrival)
            if yielding is None:
                raise NoRoomError
            self._release(yielding)
            if yielding.request.transport is not None:
                end_transport(yielding.request.transport)
        if arrival.gone:
            # It gave way to another body while these bytes were arriving.
            raise BrokenOffError
        arrival.add(chunk)
        self._peer_bytes[arrival.peer] += len(chunk)
        self._of_peer[arrival.peer].setdefault(arrival)
        self.arriving_bytes += len(chunk)

    def _yielding(self, but: _Arrival) -> _Arrival | None:
        """Return the oldest incomplete body of the peer that holds the most."""
        for peer, _ in self._peer_bytes.most_common():
            for arrival in self._of_peer[peer]:
                if arrival is not but:
                    return arrival
        return None

    def _release(self, arrival: _Arrival) -> None:
        if arrival.gone:
            return
        arrival.gone = True
        peer = arrival.peer
        self.arriving_bytes -= arrival.size
        self._peer_bytes[peer] -= arrival.size
        self._of_peer[peer].pop(arrival, None)
        if not self._of_peer[peer]:
            del self._of_peer[peer], self._peer_bytes[peer]
        # Free the memory now: the request lives until its task notices.
        arrival.pieces.clear()


BODIES: Final = web.AppKey("bodies", Bodies)
