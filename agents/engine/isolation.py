"""Contain errors within the collection that they concern, and end its tasks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Final

from ldpstream.agents.broker.identity import SourceChangedError
from ldpstream.agents.state.records import RecordError

_MOST_CHARACTERS: Final = 1_000
"""Limit on an error's text, which may quote all of its input."""

_CANCEL_SECONDS: Final = 1.0

log = logging.getLogger(__name__)


@contextmanager
def isolate_errors(failed: Callable[[str], None]) -> Iterator[None]:
    """Call `failed` with the error if the block raises one, and continue after it.

    An error that tells operators what has happened to a topic is passed on with its own text. Use
    this where code for several collections works on one of them, so that the others continue.
    """
    try:
        yield
    except (RecordError, SourceChangedError) as error:
        failed(str(error))
    except Exception as error:  # any bug in one collection must not stop the others; it is reported
        log.exception("an internal error")
        failed(f"internal error: {error!r}"[:_MOST_CHARACTERS])


async def run_isolated(run: Callable[[], Awaitable[None]], failed: Callable[[str], None]) -> None:
    """Await what `run` returns: nothing may silently depend on a task that has failed."""
    with isolate_errors(failed):
        await run()


async def end_tasks(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks until all have ended.

    Once is not enough: a library may lose a cancellation, as `asyncio.wait_for` did until Python
    3.12 when its result came at the same time.
    """
    pending = {*tasks}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=_CANCEL_SECONDS)
