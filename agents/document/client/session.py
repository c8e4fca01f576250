"""Requests to a worker: one method per path, answers as models, refusals as errors."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeAlias
from urllib.parse import quote

import aiohttp

from ldpstream.agents.config.hosts import is_url
from ldpstream.agents.config.query.options import EstimateRequest
from ldpstream.agents.document.answers import (
    Collection,
    CollectionList,
    CollectionStatus,
    Readiness,
    WindowList,
    WindowState,
)
from ldpstream.agents.document.client.errors import no_address
from ldpstream.agents.document.client.transport import (
    Model,
    Parameters,
    Transport,
    parse,
)
from ldpstream.agents.document.model import ChangeDocument, EstimateDocument
from ldpstream.agents.document.series import Series
from ldpstream.mechanisms.base.times import parse_time

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
        self._transport = Transport(url=self.url, session=session, estimate_seconds=timeout_seconds)

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
        return parse(
            Readiness, await self._transport.fetch("GET", "/readyz", fine=(200, 503)), self.url
        )

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
        raw = await self._transport.fetch("POST", path, spec, body=body, headers=headers)
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
        return await self._transport.fetch("GET", path, parameters)

    async def _model(self, model: type[Model], path: str, parameters: Parameters = ()) -> Model:
        return parse(model, await self.get(path, parameters), self.url)


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
