"""Requests to a worker: one method per path, answers as models, refusals as errors."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeAlias, TypeVar
from urllib.parse import quote

import aiohttp
from pydantic import BaseModel, ValidationError

from ldpstream.agents.config.hosts import is_url
from ldpstream.agents.config.query.options import EstimateRequest
from ldpstream.agents.document.answers import (
    Collection,
    CollectionList,
    CollectionStatus,
    Problem,
    Readiness,
    WindowList,
    WindowState,
)
from ldpstream.agents.document.client.errors import (
    NotAWorkerError,
    RefusedError,
    TokenRefusedError,
    UnavailableError,
    UnreachableError,
    no_address,
    nobody_answers,
)
from ldpstream.agents.document.model import ChangeDocument, EstimateDocument
from ldpstream.agents.document.series import Series
from ldpstream.mechanisms.base.times import parse_time

Parameters: TypeAlias = Sequence[tuple[str, str]]
Model = TypeVar("Model", bound=BaseModel)

PATIENCE_SECONDS: Final = 20.0
"""For everything but an estimate."""
_CONNECT_SECONDS: Final = 5.0
_LONG_URL: Final = 8000  # aiohttp reads lines of up to 8,190 bytes
_MOST_PROBLEM_BYTES: Final = 1 << 20
_TIMEOUT_SECONDS: Final = 60.0
"""For an estimate, which may take a worker long."""
PAGE: Final = 1_000
_Text: TypeAlias = str | float | bool | None
ParameterValue: TypeAlias = _Text | Sequence[_Text]
"""The value of a parameter, or those of one that may be repeated."""


class Client:
    """A worker's API. All methods raise the errors of `ldpstream.agents.client`."""

    def __init__(
        self, url: str, session: aiohttp.ClientSession, *, timeout_seconds: float = _TIMEOUT_SECONDS
    ) -> None:
        self.url = url.rstrip("/")
        self._session = session
        self._timeout_seconds = timeout_seconds

    async def collections(self) -> list[Collection]:
        """Return all collections, in the order of the configuration."""
        return (await self._model(CollectionList, "/api/collections")).collections

    async def collection(self, name: str) -> Collection:
        """Return one collection as configured."""
        return await self._model(Collection, _path(name))

    async def status(self, name: str, *, fingerprint: str | None = None) -> CollectionStatus:
        """Return a collection's progress, under its own spec or the one with this fingerprint."""
        parameters = _url_parameters(fingerprint=fingerprint)
        return await self._model(CollectionStatus, _path(name, "/status"), parameters)

    async def readiness(self) -> Readiness:
        """Return whether every collection is ready, and if not, why."""
        return parse(Readiness, await self._fetch("GET", "/readyz", fine=(200, 503)), self.url)

    async def windows(
        self,
        name: str,
        *,
        start: str | None = None,
        end: str | None = None,
        page: int = PAGE,
        fingerprint: str | None = None,
    ) -> AsyncIterator[WindowState]:
        """Yield the windows with reports that lie within a span, oldest first, page by page."""
        parameters = dict(_url_parameters(**{"from": start}, to=end, fingerprint=fingerprint))
        after: str | None = None
        while True:
            query = [*parameters.items(), ("limit", str(page))]
            if after is not None:
                query.append(("after", after))
            answer = await self._model(WindowList, _path(name, "/windows"), query)
            for window in answer.windows:
                yield window
            if not answer.more:
                return
            after = answer.windows[-1].window.start

    async def newest(
        self,
        name: str,
        number: int,
        *,
        start: str | None = None,
        end: str | None = None,
        page: int = PAGE,
        fingerprint: str | None = None,
    ) -> list[WindowState]:
        """Return the newest windows with reports within a span, at most this many, oldest first."""
        states: list[WindowState] = []
        parameters = dict(_url_parameters(**{"from": start}, to=end, fingerprint=fingerprint))
        while len(states) < number:
            query = [*parameters.items(), ("last", str(min(page, number - len(states))))]
            answer = await self._model(WindowList, _path(name, "/windows"), query)
            states = answer.windows + states
            if not answer.more:
                break
            # Windows have distinct ends, so this leaves exactly those before the first one.
            parameters["to"] = str(parse_time(answer.windows[0].window.end) - 1)
        return states

    async def estimate(
        self, name: str, request: EstimateRequest | None = None, *, fingerprint: str | None = None
    ) -> EstimateDocument:
        """Return the document of a span, by default the newest window as published."""
        spec = _url_parameters(fingerprint=fingerprint)
        body = (request or EstimateRequest()).model_dump_json(exclude_unset=True).encode()
        headers = {"Content-Type": "application/json"}
        path = _path(name, "/estimate")
        raw = await self._fetch("POST", path, spec, body=body, headers=headers)
        return parse(EstimateDocument, raw, self.url)

    async def change(self, name: str, **parameters: ParameterValue) -> ChangeDocument:
        """Return what changed from one span to another: parameters as of `GET .../change`.

        For example `start=..., end=..., top="all", range=["0..9"]`; by default the newest window
        and the one before.
        """
        return await self._model(
            ChangeDocument, _path(name, "/change"), _url_parameters(**parameters)
        )

    async def series(self, name: str, **parameters: ParameterValue) -> Series:
        """Return a few numbers over many windows: parameters as of `GET .../series`."""
        return await self._model(Series, _path(name, "/series"), _url_parameters(**parameters))

    async def get(self, path: str, parameters: Parameters = ()) -> bytes:
        """Return the raw JSON of a path."""
        return await self._fetch("GET", path, parameters)

    async def _model(self, model: type[Model], path: str, parameters: Parameters = ()) -> Model:
        return parse(model, await self.get(path, parameters), self.url)

    async def _fetch(
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
        seconds = self._timeout_seconds
        if not path.endswith("/estimate"):
            seconds = min(seconds, PATIENCE_SECONDS)
        try:
            async with self._session.request(
                method,
                self.url + path,
                params=list(parameters),
                data=body,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=_CONNECT_SECONDS),
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


@asynccontextmanager
async def connect(
    url: str, *, token: str | None = None, timeout_seconds: float = _TIMEOUT_SECONDS
) -> AsyncIterator[Client]:
    """Return a client of the worker at a URL, closed at the end of the block.

    `token` is the value of the worker's `[worker] token`, and is sent to that worker alone. An
    estimate may take `timeout_seconds`, everything else 20 s at most, and connecting 5 s.

    Raises:
        AddressError: where the URL is not one of HTTP.
    """
    if not is_url(url):
        raise no_address(url)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        yield Client(url, session, timeout_seconds=timeout_seconds)


def _path(name: str, rest: str = "") -> str:
    return f"/api/collections/{quote(name, safe='')}{rest}"


def _url_parameters(**parameters: ParameterValue) -> list[tuple[str, str]]:
    """Return parameters of a URL: flags as `true`, and each entry of a list by itself."""
    pairs = []
    for name, value in parameters.items():
        for entry in value if isinstance(value, list | tuple) else [value]:
            text = str(entry).lower() if isinstance(entry, bool) else str(entry)
            pairs += [(name, text)] if entry is not None else []
    return pairs


def _plain(url: str) -> str:
    return f"http://{url.partition('://')[2]}"


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
