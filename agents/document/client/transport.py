"""HTTP requests to a worker: answers as bytes and events, refusals as errors."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar

import aiohttp
from pydantic import BaseModel, ValidationError

from ldpstream.agents.document.answers import Problem
from ldpstream.agents.document.client.errors import (
    NotAWorkerError,
    RefusedError,
    TokenRefusedError,
    UnavailableError,
    UnreachableError,
    no_address,
    nobody_answers,
)
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.mechanisms.base.numbers import read_whole

Parameters: TypeAlias = Sequence[tuple[str, str]]
Model = TypeVar("Model", bound=BaseModel)

EVENT_BYTES: Final = 16 << 20
"""The longest event: a worker sends none that is longer."""
PATIENCE_SECONDS: Final = 20.0
"""For everything but an estimate."""
_CONNECT_SECONDS: Final = 5.0
_LONG_URL: Final = 8000  # aiohttp reads lines of up to 8,190 bytes
_MOST_PROBLEM_BYTES: Final = 1 << 20
_SILENCE_SECONDS: Final = 45.0  # three heartbeats of a stream of events


@dataclass(frozen=True)
class Event:
    """A change of a window; `id` is the start of a final's window in epoch ms, else None."""

    kind: Literal["final", "provisional"]
    id: int | None
    document: EstimateDocument


class EventReader:
    """Turns bytes, in pieces of any length, into events; a stream is resumed after `last_id`.

    The bytes are server-sent events, as in the HTML standard.
    """

    def __init__(self, last_id: int | None) -> None:
        self.last_id = last_id
        self._rest = b""

    def restart(self) -> None:
        """Discard an incomplete event."""
        self._rest = b""

    def feed(self, piece: bytes) -> Iterator[Event]:
        """Yield the events that this piece completes.

        Raises:
            ValueError: for anything but an event of a worker.
        """
        *blocks, self._rest = (self._rest + piece).split(b"\n\n")
        if len(self._rest) > EVENT_BYTES:
            raise ValueError(f"expected events of at most {EVENT_BYTES} bytes")
        for block in blocks:
            event = self._read(block)
            if event is not None:
                yield event

    def _read(self, block: bytes) -> Event | None:
        fields: dict[bytes, list[bytes]] = {}
        for line in block.split(b"\n"):
            name, _, value = line.partition(b":")
            fields.setdefault(name, []).append(value.removeprefix(b" "))
        kind = fields.get(b"event", [b""])[-1].decode("ascii", "replace")
        # A comment, or a kind of event that this version does not know.
        if kind not in ("final", "provisional"):
            return None
        last_id = read_whole(fields[b"id"][-1].decode("ascii")) if b"id" in fields else None
        if last_id is not None:
            self.last_id = last_id
        document = EstimateDocument.model_validate_json(b"\n".join(fields.get(b"data", [])))
        return Event("final" if kind == "final" else "provisional", last_id, document)


@dataclass(frozen=True, kw_only=True)
class Transport:
    """Sends requests to a worker. All methods raise the errors of `ldpstream.agents.client`."""

    url: str
    session: aiohttp.ClientSession
    estimate_seconds: float
    """How long to wait for an estimate."""

    async def fetch(
        self,
        method: str,
        path: str,
        parameters: Parameters = (),
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        fine: tuple[int, ...] = (200,),
    ) -> bytes:
        """Return the JSON of an answer whose status is among `fine`."""
        # Only an estimate may take long.
        seconds = self.estimate_seconds
        if not path.endswith("/estimate"):
            seconds = min(seconds, PATIENCE_SECONDS)
        try:
            async with self.session.request(
                method,
                self.url + path,
                params=list(parameters),
                data=body,
                headers=headers,
                timeout=_timeout(seconds),
                # A worker never redirects, and nobody else may get the token.
                allow_redirects=False,
            ) as answer:
                if answer.status in fine and answer.content_type == "application/json":
                    return await answer.read()
                await self._refuse(answer)
        except aiohttp.InvalidURL as failure:
            raise no_address(self.url) from failure
        except (aiohttp.ClientError, TimeoutError) as failure:
            raise self._unreachable(failure, seconds) from failure
        raise AssertionError("refusing always raises")

    async def events(
        self, path: str, parameters: Parameters, reader: EventReader
    ) -> AsyncIterator[Event]:
        """Yield the events of one connection, after the reader's last one."""
        reader.restart()
        headers = {} if reader.last_id is None else {"Last-Event-ID": str(reader.last_id)}
        timeout = _timeout(None, sock_read=_SILENCE_SECONDS)
        try:
            async with self.session.get(
                self.url + path,
                params=list(parameters),
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
            ) as answer:
                if answer.status != 200 or answer.content_type != "text/event-stream":
                    await self._refuse(answer)
                async for piece in answer.content.iter_any():
                    for event in reader.feed(piece):
                        yield event
        except (aiohttp.ClientError, TimeoutError) as failure:
            raise self._unreachable(failure, _SILENCE_SECONDS) from failure
        except (ValueError, ValidationError) as failure:
            raise NotAWorkerError(f"{self.url}: expected events of a worker") from failure

    async def _refuse(self, answer: aiohttp.ClientResponse) -> None:
        """Raise the error that an unsuccessful answer stands for."""
        error = await _error(answer)
        if error is None and answer.status == 400 and len(str(answer.url)) > _LONG_URL:
            raise RefusedError(
                "the address of this question is too long: ask for less, or in a request's body, "
                "as `ldpstream.query` in Python does",
                status=400,
            )
        if error is None:
            raise NotAWorkerError(f"{self.url}: expected a worker, got HTTP status {answer.status}")
        if answer.status == 401:
            raise TokenRefusedError(error, status=401)
        if answer.status >= 500:
            raise UnavailableError(error)
        raise RefusedError(error, status=answer.status)

    def _unreachable(self, failure: Exception, seconds: float) -> UnreachableError:
        connected = not isinstance(failure, aiohttp.ConnectionTimeoutError)
        if connected and isinstance(failure, TimeoutError):
            return UnreachableError(
                f"{self.url} accepts connections, but has not answered for {seconds:g} s: is it a "
                "worker, and is it busy?"
            )
        if isinstance(failure, aiohttp.ClientConnectorCertificateError):
            why = getattr(failure.certificate_error, "verify_message", failure.certificate_error)
            return UnreachableError(
                f"{self.url}: its certificate is not trusted: {why}; set SSL_CERT_FILE to the file "
                "of an authority to trust"
            )
        if isinstance(failure, aiohttp.ClientConnectorSSLError):
            return UnreachableError(
                f"{self.url}: expected HTTPS, got something else: is it {_plain(self.url)}?"
            )
        return nobody_answers(self.url)


def _plain(url: str) -> str:
    return f"http://{url.partition('://')[2]}"


def _timeout(total: float | None, *, sock_read: float | None = None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total, sock_connect=_CONNECT_SECONDS, sock_read=sock_read)


def parse(model: type[Model], raw: bytes, url: str) -> Model:
    """Return an answer as a model, or raise NotAWorkerError."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as failure:
        raise NotAWorkerError(
            f"{url}: expected the answer of a worker of this version ({model.__name__})"
        ) from failure


async def _error(answer: aiohttp.ClientResponse) -> str | None:
    """Return the worker's own words about a refused request; None where there are none."""
    if answer.content_type != "application/json":
        return None
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > _MOST_PROBLEM_BYTES:
            return None
    try:
        return Problem.model_validate_json(bytes(body)).error
    except ValidationError:
        return None
