"""Synchronous queries to a running worker, for programs and notebooks."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ldpstream.agents.cli.python.query_options import build_request
from ldpstream.agents.client import Client, EstimateRequest, connect
from ldpstream.agents.document.client.session import ParameterValue
from ldpstream.agents.document.model import ChangeDocument, EstimateDocument

Answer = TypeVar("Answer")


def query(
    url: str,
    name: str,
    request: EstimateRequest | None = None,
    *,
    token: str | None = None,
    **options: Any,
) -> EstimateDocument:
    """Return the estimates of a collection's newest window, from the worker at a URL.

    Give a request, or its fields as keywords: `start` and `end` for another span of whole panes,
    `top=5`, `ranges=["3..9"]`, `quantiles=[0.5]`, `confidence=0.9`. Asynchronous programs use
    `ldpstream.agents.client`, which covers the whole API.

    Raises:
        ValueError: for a keyword that is impossible.
        ApiError: where the worker refuses, does not answer, or is none.
    """
    chosen = build_request(request, options)
    return _ask(url, token, lambda worker: worker.estimate(name, chosen))


def windows(
    url: str,
    name: str,
    request: EstimateRequest | None = None,
    *,
    last: int = 24,
    token: str | None = None,
    **options: Any,
) -> list[EstimateDocument]:
    """Return the estimates of a collection's newest windows with reports, oldest first.

    Raises:
        ValueError: for a keyword that is impossible.
        ApiError: where the worker refuses, does not answer, or is none.
    """
    chosen = build_request(request, options)

    async def ask(worker: Client) -> list[EstimateDocument]:
        listed = await worker.newest(name, last)
        spans = [{"start": state.window.start, "end": state.window.end} for state in listed]
        return [await worker.estimate(name, chosen.model_copy(update=span)) for span in spans]

    return _ask(url, token, ask)


def change(
    url: str, name: str, *, token: str | None = None, **parameters: ParameterValue
) -> ChangeDocument:
    """Return what changed in a collection's population from one span to another.

    By default from the window before the newest to the newest. `start` and `end`, `before_start`
    and `before_end` name other spans; `top=5`, `range=["3..9"]`, `quantile=[0.5]`, `blocks=True`
    and `devices="different"` are as in `GET .../change`.

    Raises:
        ApiError: where the worker refuses, does not answer, or is none.
    """
    return _ask(url, token, lambda worker: worker.change(name, **parameters))


def _ask(
    url: str, token: str | None, ask: Callable[[Client], Coroutine[Any, Any, Answer]]
) -> Answer:
    async def connected() -> Answer:
        async with connect(url, token=token) as worker:
            return await ask(worker)

    # In another thread: in a notebook this one already runs an event loop.
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, connected()).result()
