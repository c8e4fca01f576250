"""HTTP requests to a worker: answers as bytes, refusals as errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

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

Parameters: TypeAlias = Sequence[tuple[str, str]]
Model = TypeVar("Model", bound=BaseModel)

PATIENCE_SECONDS: Final = 20.0
"""For everything but an estimate."""
_CONNECT_SECONDS: Final = 5.0
_LONG_URL: Final = 8000  # aiohttp reads lines of up to 8,190 bytes
_MOST_PROBLEM_BYTES: Final = 1 << 20


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
