"""Open the clients of a process, and close all of them even if the broker has gone.

A worker may start before its broker does: it waits for an answer first.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaConnectionError

from ldpstream.agents.broker import clients
from ldpstream.agents.broker.health import BrokerWatch
from ldpstream.agents.broker.probe import why_not
from ldpstream.agents.broker.producer import LastingProducer, NoIdempotenceError
from ldpstream.agents.broker.refusals import describe_error, no_idempotence
from ldpstream.agents.config import KafkaConfig

_RETRY_SECONDS: Final = 1.0
QUIET_SECONDS: Final = 5.0

log = logging.getLogger(__name__)


class Connections:
    """The clients opened so far.

    All methods raise KafkaError if the broker does not answer; clients opened before stay open
    until `close`.
    """

    def __init__(self, kafka: KafkaConfig) -> None:
        self._kafka = kafka
        self._stack = AsyncExitStack()

    async def admin(self) -> AIOKafkaAdminClient:
        """Open an administration client."""
        client = clients.admin(self._kafka.bootstrap, self._kafka.options)
        self._stack.push_async_callback(clients.stop_client, client.close)
        async with reporting_waits(self._kafka.bootstrap, log.warning):
            await client.start()
        return client

    async def reader(self, *, committed_only: bool, wait_ms: int) -> AIOKafkaConsumer:
        """Open a consumer without a group; see `ldpstream.agents.broker.clients.reader`."""
        consumer = clients.reader(
            self._kafka.bootstrap,
            self._kafka.options,
            committed_only=committed_only,
            wait_ms=wait_ms,
        )
        self._stack.push_async_callback(clients.stop_client, consumer.stop)
        await consumer.start()
        return consumer

    async def producer(self, producer: LastingProducer) -> None:
        """Open a producer."""
        self._stack.push_async_callback(producer.stop)
        try:
            await producer.start()
        except NoIdempotenceError as error:
            raise no_idempotence(self._kafka) from error

    async def close(self) -> None:
        """Close all clients, the last opened first."""
        await self._stack.aclose()


async def wait_for_broker(kafka: KafkaConfig, watch: BrokerWatch) -> None:
    """Wait until a broker answers; meanwhile `watch` and a line of the log say that it does not."""
    while True:
        connections = Connections(kafka)
        try:
            await connections.admin()
            break
        except KafkaConnectionError as error:
            if await why_not(kafka.bootstrap, kafka.options) is not None:
                break  # It answers, but refuses us: connecting to it will report why.
            log.debug("no broker yet: %r", error)
        finally:
            await connections.close()
        if not watch.silent:
            log.warning("%s The worker waits for it", describe_error(KafkaConnectionError(), kafka))
        watch.silent = True
        await asyncio.sleep(_RETRY_SECONDS)
    if watch.silent:
        watch.silent = False
        log.info("a broker answers at %s", kafka.bootstrap)


@asynccontextmanager
async def reporting_waits(bootstrap: str, report: Callable[[str], None]) -> AsyncIterator[None]:
    """Call `report` with one line if the block, which connects to `bootstrap`, takes long.

    A broker that drops packets costs most of a minute.
    """
    line = f"waiting for the broker at {bootstrap} to answer"
    timer = asyncio.get_running_loop().call_later(QUIET_SECONDS, report, line)
    try:
        yield
    finally:
        timer.cancel()
