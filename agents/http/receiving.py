"""Reading bodies: bounded together by what has arrived, and unfinished ones give way.

Whoever sends part of a body and no more could otherwise keep everybody else's out. So where there
is no room for what arrives, unfinished bodies end: the longest one of the peer that holds the most.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from ldpstream.agents.http.connections import PEER, end_transport

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
    body: bytearray = field(default_factory=bytearray)


class Bodies:
    """The bodies that are arriving; `room_bytes` returns how much they may take together."""

    def __init__(self, room_bytes: Callable[[], int]) -> None:
        self._room_bytes = room_bytes
        self._arriving: dict[_Arrival, None] = {}
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
        self._arriving[arrival] = None
        try:
            while chunk := await request.content.read(_CHUNK_BYTES):
                if len(arrival.body) + len(chunk) > limit_bytes:
                    raise TooLargeError
                self._hold(arrival, chunk)
            return bytes(arrival.body)
        except (web.RequestPayloadError, ConnectionError) as error:
            raise BrokenOffError from error
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
        if arrival not in self._arriving:
            # Ended for another one while these bytes were on their way.
            raise BrokenOffError
        arrival.body += chunk
        self.arriving_bytes += len(chunk)

    def _yielding(self, but: _Arrival) -> _Arrival | None:
        held: Counter[str] = Counter()
        for one in self._arriving:
            held[one.peer] += len(one.body)
        others = [one for one in self._arriving if one is not but and one.body]
        return max(others, key=lambda one: held[one.peer], default=None)

    def _let_go(self, arrival: _Arrival) -> None:
        self.arriving_bytes -= len(arrival.body)
        # Its request may live on for a while, in a traceback.
        arrival.body.clear()
        self._arriving.pop(arrival, None)
