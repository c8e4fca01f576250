"""Computes what the home page shows when windows close, before anybody asks for it.

The first reader after a start would otherwise wait for the newest points of all collections.
Points of finals never change and are kept (`FinalAnswers`), so that a request finds them there and
computes those of open windows alone.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final
from urllib.parse import parse_qsl

from aiohttp import web
from multidict import MultiDict

from ldpstream.agents.engine.engine import Engine
from ldpstream.agents.state.records import RecordError
from ldpstream.agents.web.computation import QUEUES, ComputeQueues
from ldpstream.agents.web.requests import PIPELINE, AnswerError
from ldpstream.agents.web.series import compute_series

HOME_QUERY: Final = "last=24&published=true&headline=true&status=true"
"""What the home page asks `/api/series` for."""
_WAIT_SECONDS: Final = 5.0
_REST: Final = 10.0
"""It rests so many times as long as it computes: a worker spends at most a tenth of a core."""


async def run_home_points(app: web.Application) -> AsyncIterator[None]:
    """Compute them while the application runs."""
    task = asyncio.create_task(_keep_computed(app))
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _keep_computed(app: web.Application) -> None:
    computed: dict[str, int] = {}
    while True:
        await asyncio.sleep(_WAIT_SECONDS)
        for name, collection in app[PIPELINE].collections.items():
            final = _first_open(collection)
            if final is None or computed.get(name) == final:
                continue
            begun = time.monotonic()
            await compute_home_points(app[QUEUES], collection)
            computed[name] = final
            await asyncio.sleep(_REST * (time.monotonic() - begun))


async def compute_home_points(queues: ComputeQueues, collection: Engine) -> None:
    """Compute what the home page shows of a collection, and keep what never changes."""
    try:
        await compute_series(queues, MultiDict(parse_qsl(HOME_QUERY)), collection)
    except (AnswerError, RecordError):
        # Whoever asks is told what is wrong.
        return


def _first_open(collection: Engine) -> int | None:
    """Return the first window that is not final; None where the state cannot be read now."""
    replicas = collection.replicas
    if not replicas or any(one.head is None or one.broken is not None for one in replicas):
        return None
    head = replicas[0].head
    return None if head is None else head.final
