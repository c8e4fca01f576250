"""Tell workers of other shards where this one answers, as long as it does, and hear where they do.

With clients of its own, next to a pipeline: what becomes of them concerns questions alone.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from ldpstream.agents.config import Config
from ldpstream.agents.kafka.address_topic import declare_addresses
from ldpstream.agents.kafka.clients import replication_factor
from ldpstream.agents.kafka.connections import Connections
from ldpstream.agents.kafka.metadata import count_brokers
from ldpstream.agents.kafka.producing import LastingProducer, NoIdempotenceError
from ldpstream.agents.kafka.refusals import no_idempotence, not_permitted
from ldpstream.agents.served.shards import Shards

RENEW_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.2
_LEAVE_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 1.0
_WAIT_MS: Final = 1_000

log = logging.getLogger(__name__)


@asynccontextmanager
async def telling_addresses(
    config: Config, shards: Shards, stop: asyncio.Event, *, ready: Callable[[], bool]
) -> AsyncIterator[None]:
    """Tell and hear addresses for the length of a block.

    The own one is told once `ready` says so, and deleted as soon as `stop` is set.

    Raises:
        BrokerUnavailableError: if the topic may not be read and written, or the broker lacks a
            required feature.
        TopicError: if the topic cannot be created.
        KafkaError: if the broker does not answer.
    """
    topic, connections = config.worker.addresses_topic, Connections(config.kafka)
    producer = LastingProducer(config.kafka.bootstrap, config.kafka.options)
    try:
        admin = await connections.admin()
        factor = replication_factor(config.kafka.options, brokers=count_brokers(admin))
        if missing := await declare_addresses(admin, topic, replication_factor=factor):
            raise not_permitted(config.kafka, missing)
        await connections.producer(producer)
        consumer = await connections.reader(committed_only=True, wait_ms=_WAIT_MS)
        hearing = asyncio.create_task(_hear(consumer, topic, shards))
        telling = asyncio.create_task(_tell(partial(producer.send, topic, 0), shards, stop, ready))
        try:
            yield
        finally:
            hearing.cancel()
            if not stop.is_set():
                # Something else ends the worker.
                stop.set()
            await asyncio.wait((telling,), timeout=_LEAVE_SECONDS)
            telling.cancel()
    except NoIdempotenceError as error:
        raise no_idempotence(config.kafka) from error
    finally:
        await connections.close()


async def _hear(consumer: AIOKafkaConsumer, topic: str, shards: Shards) -> None:
    consumer.assign([TopicPartition(topic, 0)])
    begun = False
    while True:
        try:
            if not begun:
                await consumer.seek_to_beginning()
                begun = True
            found = await consumer.getmany(timeout_ms=_WAIT_MS)
        except KafkaError as error:
            # What is read again says the same; out of range: what was there has been deleted.
            log.debug("addresses of workers cannot be read: %r", error)
            begun = False
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            for records in found.values():
                for record in records:
                    shards.read(record.key, record.value)


async def _tell(
    send: Callable[[bytes, bytes | None], Awaitable[None]],
    shards: Shards,
    stop: asyncio.Event,
    ready: Callable[[], bool],
) -> None:
    while not ready():
        if await _within(_LOOK_SECONDS, stop):
            return
    key, value = shards.record()
    while True:
        await _sent(send(key, value))
        if await _within(RENEW_SECONDS, stop):
            # Questions go elsewhere from now on.
            await _sent(send(key, None))
            return


async def _within(seconds: float, stop: asyncio.Event) -> bool:
    """Return whether `stop` is set within so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
    return stop.is_set()


async def _sent(sending: Awaitable[None]) -> None:
    try:
        await sending
    except KafkaError as error:
        log.debug("the address was not told: %r", error)
