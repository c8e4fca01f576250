"""Publish this worker's address for workers of other shards, and read theirs.

This uses a topic and clients of its own, whose failures affect only forwarded requests.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from ldpstream.agents.broker.clients import replication_factor
from ldpstream.agents.broker.connections import Connections
from ldpstream.agents.broker.metadata import count_brokers, describe
from ldpstream.agents.broker.offsets import replayed
from ldpstream.agents.broker.producer import LastingProducer
from ldpstream.agents.broker.refusals import not_permitted
from ldpstream.agents.broker.shards import Shards
from ldpstream.agents.broker.topics import DELAYS_SECONDS, TopicError, create_topics
from ldpstream.agents.config import Config

RENEW_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.2
_LEAVE_SECONDS: Final = 2.0
_WAIT_MS: Final = 1_000
# Workers renew their addresses every few seconds, so old records are useless.
_CONFIGS: Final = {
    "cleanup.policy": "compact,delete",
    "retention.ms": "3600000",
    "segment.ms": "600000",
}
_NEEDED: Final = {"read", "write"}

log = logging.getLogger(__name__)


@asynccontextmanager
async def telling_addresses(
    config: Config, shards: Shards, stop: asyncio.Event, *, ready: Callable[[], bool]
) -> AsyncIterator[None]:
    """Publish and read addresses during a block.

    This worker's own is published once it is `ready`, and deleted as soon as `stop` is set.

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
    finally:
        await connections.close()


async def _hear(consumer: AIOKafkaConsumer, topic: str, shards: Shards) -> None:
    async for record in replayed(consumer, [topic]):
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
            # From now on requests go elsewhere.
            await _sent(send(key, None))
            return


async def _within(seconds: float, stop: asyncio.Event) -> bool:
    """Return whether `stop` is set within this many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
    return stop.is_set()


async def _sent(sending: Awaitable[None]) -> None:
    try:
        await sending
    except KafkaError as error:
        log.debug("the address was not told: %r", error)


async def declare_addresses(
    client: AIOKafkaAdminClient, topic: str, *, replication_factor: int
) -> Sequence[str]:
    """Create the topic if it is missing; return what is not permitted on it.

    Raises:
        TopicError: if the broker refuses to create it.
        KafkaError: if the broker does not answer.
    """
    found = await describe(client, [topic])
    if topic not in found:
        new = NewTopic(topic, 1, replication_factor, topic_configs=_CONFIGS)
        await create_topics(client, [new])
        for delay_seconds in DELAYS_SECONDS:
            await asyncio.sleep(delay_seconds)
            found = await describe(client, [topic])
            if topic in found:
                break
        else:
            raise TopicError(f"topic {topic} was created, but the broker does not show it")
    return missing_on_addresses(topic, found[topic].permitted)


def missing_on_addresses(topic: str, permitted: frozenset[str] | None) -> list[str]:
    """Return what is not permitted on the topic; empty if the broker does not say."""
    lacking = sorted(_NEEDED - permitted) if permitted is not None else ()
    return [f"topic {topic}: expected permission to {one}, got none" for one in lacking]
