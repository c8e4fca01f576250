"""Asking a running worker over HTTP, with its refusals as messages."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import aiohttp

from ldpstream.agents.cli.errors import Failed, Refused

Parameters = Sequence[tuple[str, str]]

TIMEOUT_SECONDS: Final = 60.0


class WorkerClient:
    """A worker's API."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url.rstrip("/")
        self._session = session

    async def get(self, path: str, parameters: Parameters = ()) -> bytes:
        """Return the JSON that a path answers.

        Raises:
            Refused: where the worker refuses the request, with its own words.
            Failed: where it does not answer, or answers something else.
        """
        try:
            async with self._session.get(self._url + path, params=list(parameters)) as answer:
                if answer.status == 200 and answer.content_type == "application/json":
                    return await answer.read()
                error = await _error(answer)
        except aiohttp.InvalidURL as failure:
            raise Refused(f"{self._url}: expected a URL such as http://127.0.0.1:6066") from failure
        except (aiohttp.ClientError, TimeoutError) as failure:
            raise Failed(
                f"no worker answers at {self._url}: is it running, and is the URL the one that it "
                "printed?"
            ) from failure
        if error is None:
            raise Failed(f"{self._url}: expected a worker, got HTTP status {answer.status}")
        if answer.status >= 500:
            raise Failed(error)
        raise Refused(error)


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[WorkerClient]:
    """Return a client of the worker at a URL, closed at the end of the block.

    Raises:
        Refused: where the URL is none of HTTP.
    """
    if not url.startswith(("http://", "https://")):
        raise Refused(f"{url}: expected a URL such as http://127.0.0.1:6066")
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        yield WorkerClient(url, session)


async def _error(answer: aiohttp.ClientResponse) -> str | None:
    """Return the worker's own words about a request that it refuses, None where there are none."""
    if answer.content_type != "application/json":
        return None
    body = await answer.json()
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, str) else None
