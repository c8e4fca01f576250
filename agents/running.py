"""Running a command until a signal ends it, with one line on standard error where it cannot run."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable

from aiokafka.errors import KafkaError

from ldpstream.agents.config import KafkaConfig
from ldpstream.agents.http.door import HttpUnavailableError
from ldpstream.agents.kafka.clients import ClientOptionError
from ldpstream.agents.kafka.refusals import BrokerUnavailableError, explain


async def until_signalled(
    run: Callable[[asyncio.Event], Awaitable[int | None]],
    kafka: KafkaConfig,
    *,
    refused: tuple[type[Exception], ...] = (),
) -> int:
    """Run until SIGTERM or SIGINT sets the event that `run` gets, and return an exit code.

    It is what `run` returns, 0 for None; 1 where it raises an error whose message is for the user:
    one of `refused`, of the broker, of an address, or of the settings of clients.
    """
    told: tuple[type[Exception], ...] = (
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
    except told as bad:
        print(bad, file=sys.stderr)
    except KafkaError as error:
        print(await explain(error, kafka), file=sys.stderr)
    return 1


def announce_ready(url: str) -> None:
    """Say on standard output that a command serves."""
    print("ready", url, flush=True)
