"""Reading bodies: bounded together by what has arrived, and unfinished ones give way.

Whoever sends part of a body and no more could otherwise keep everybody else's out. So where there
is no room for what arrives, unfinished bodies end: the longest one of the peer that holds the most.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from ldpstream.agents.http.connection import end_transport
from ldpstream.agents.http.connections import PEER

_CHUNK_BYTES: Final = 64 << 10


class BodyRefusedError(Exception):
    """A body that is not read to its end: base class."""


class TooLargeError(BodyRefusedError):
    """It is larger than it may be."""


class NoRoomError(BodyRefusedError):
    """There is no room for it now, unfinished bodies apart."""


class BrokenOffError(BodyRefusedError):
    """Its connection ended first: nobody reads the answer."""


@dataclass(eq=False)
class _Arrival:
    peer: str
    request: web.Request
    size: int = 0
    gone: bool = False
    pieces: list[bytearray] = field(default_factory=list)
    """Of some length each: one that grew to any length would leave holes in memory that no other
    fills."""

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
        """Those of which something has arrived, in that order."""
        self._held_bytes: Counter[str] = Counter()
        self.arriving_bytes = 0

    async def read(self, request: web.Request, *, limit_bytes: int) -> bytes:
        """Return a request's body.

        Raises:
            TooLargeError: for more than `limit_bytes`, announced or sent.
            NoRoomError: where there is no room even without the unfinished bodies of others.
            BrokenOffError: where it was not sent to its end.
        """
        announced = request.content_length or 0
        if announced > limit_bytes:
            raise TooLargeError
        if announced > self._room_bytes():
            raise NoRoomError
        arrival = _Arrival(PEER.get(), request)
        try:
            while chunk := await request.content.read(_CHUNK_BYTES):
                if arrival.size + len(chunk) > limit_bytes:
                    raise TooLargeError
                self._hold(arrival, chunk)
            return b"".join(arrival.pieces)
        except (web.RequestPayloadError, ConnectionError) as error:
            # The reader keeps this very error: with its traceback they would keep each other, and
            # what has been buffered, until the next collection of cycles.
            error.__traceback__ = None
            raise BrokenOffError from None
        finally:
            self._let_go(arrival)

    def _hold(self, arrival: _Arrival, chunk: bytes) -> None:
        while self.arriving_bytes + len(chunk) > self._room_bytes():
            yielding = self._yielding(arrival)
            if yielding is None:
                raise NoRoomError
            self._let_go(yielding)
            if yielding.request.transport is not None:
                end_transport(yielding.request.transport)
        if arrival.gone:
            # Ended for another one while these bytes were on their way.
            raise BrokenOffError
        arrival.add(chunk)
        self._held_bytes[arrival.peer] += len(chunk)
        self._of_peer[arrival.peer].setdefault(arrival)
        self.arriving_bytes += len(chunk)

    def _yielding(self, but: _Arrival) -> _Arrival | None:
        """Return the longest arrival of the peer that holds the most."""
        for peer, _ in self._held_bytes.most_common():
            for one in self._of_peer[peer]:
                if one is not but:
                    return one
        return None

    def _let_go(self, arrival: _Arrival) -> None:
        if arrival.gone:
            return
        arrival.gone = True
        peer = arrival.peer
        self.arriving_bytes -= arrival.size
        self._held_bytes[peer] -= arrival.size
        self._of_peer[peer].pop(arrival, None)
        if not self._of_peer[peer]:
            del self._of_peer[peer], self._held_bytes[peer]
        # Its request lives on until its task has noticed.
        arrival.pieces.clear()
