"""Run a command until a signal ends it; if it fails, print one line on standard error."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from aiokafka.errors import KafkaError

from ldpstream.agents.config import KafkaConfig
from ldpstream.agents.http.listening import HttpUnavailableError
from ldpstream.agents.kafka.clients import ClientOptionError
from ldpstream.agents.kafka.refusals import BrokerUnavailableError, explain

_CANCEL_SECONDS: Final = 6.0

Result = TypeVar("Result")


class StoppedError(Exception):
    """A signal came before the awaited result."""


async def unless_stopped(running: Coroutine[Any, Any, Result], stop: asyncio.Event) -> Result:
    """Return what `running` returns; cancel it if `stop` is set first.

    For waits that depend on others: a broker that does not answer, a group's first assignment.

    Raises:
        StoppedError: if `stop` was set first.
        Exception: what `running` raises.
    """
    stopping, task = asyncio.create_task(stop.wait()), asyncio.create_task(running)
    try:
        await asyncio.wait((stopping, task), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
    finally:
        stopping.cancel()
        task.cancel()
    # Gathered, so that an error at the time of the signal is not lost.
    ending = asyncio.gather(task, return_exceptions=True)
    await asyncio.wait((ending,), timeout=_CANCEL_SECONDS)
    raise StoppedError


async def until_signalled(
    run: Callable[[asyncio.Event], Awaitable[int | None]],
    kafka: KafkaConfig,
    *,
    refused: tuple[type[Exception], ...] = (),
) -> int:
    """Run until SIGTERM or SIGINT sets the event passed to `run`, and return an exit code.

    The code is what `run` returns (0 for None), 0 if it raises StoppedError, and 1 if it raises an
    error with a message for the user: about the broker, an address, a client's settings, or one of
    `refused`.
    """
    expected: tuple[type[Exception], ...] = (
        BrokerUnavailableError,
        ClientOptionError,
        HttpUnavailableError,
        *refused,
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        return await run(stop) or 0
    except StoppedError:
        return 0
    except expected as bad:
        print(bad, file=sys.stderr)
    except KafkaError as error:
        print(await explain(error, kafka), file=sys.stderr)
    return 1


def announce_ready(url: str) -> None:
    """Print on standard output that a command serves at a URL."""
    print("ready", url, flush=True)
