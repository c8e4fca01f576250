"""Clients of a configuration's broker, its topics, and what these hold."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete

from ldpstream.agents.broker import clients
from ldpstream.agents.broker.metadata import describe
from ldpstream.agents.broker.offsets import end_offsets
from ldpstream.agents.config import CollectionConfig, Config
from ldpstream.agents.state.close_orders import Control, encode_control
from tests.brokers import Broker
from tests.processes import PATIENCE_SECONDS

Client = TypeVar("Client", AIOKafkaConsumer, AIOKafkaProducer)


@asynccontextmanager
async def running(client: Client) -> AsyncIterator[Client]:
    """Start a client, and stop it at the end of the block."""
    await client.start()
    try:
        yield client
    finally:
        await client.stop()


class Connected:
    """The clients of a collection, and what its topics hold."""

    broker: Broker
    config: Config
    collection: CollectionConfig

    def producer(self, **options: object) -> AbstractAsyncContextManager[AIOKafkaProducer]:
        kafka = self.config.kafka
        return running(clients.producer(kafka.bootstrap, {**kafka.options, **options}))

    def reader(
        self, *, committed_only: bool = False
    ) -> AbstractAsyncContextManager[AIOKafkaConsumer]:
        kafka = self.config.kafka
        return running(
            clients.reader(
                kafka.bootstrap, kafka.options, committed_only=committed_only, wait_ms=100
            )
        )

    def transactional_producer(
        self, name: str = ""
    ) -> AbstractAsyncContextManager[AIOKafkaProducer]:
        own = f"{self.collection.topics.source}{name}"
        bootstrap = self.broker.bootstrap
        return running(AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=own))

    @asynccontextmanager
    async def admin(self) -> AsyncIterator[AIOKafkaAdminClient]:
        admin = clients.admin(self.config.kafka.bootstrap, self.config.kafka.options)
        await admin.start()
        try:
            yield admin
        finally:
            await admin.close()

    async def create(
        self,
        topic: str,
        *,
        partitions: int,
        replicas: int = 1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic, and wait until the broker lists it."""
        new = NewTopic(topic, partitions, replicas, topic_configs=dict(configs or {}))
        async with self.admin() as admin, asyncio.timeout(PATIENCE_SECONDS):
            while topic not in await describe(admin, [topic]):
                await admin.create_topics([new])
                await asyncio.sleep(0.1)

    async def delete(self, topic: str) -> None:
        """Delete a topic, and wait until the broker no longer lists it."""
        async with self.admin() as admin:
            before = (await describe(admin, [topic]))[topic]
            await admin.delete_topics([topic])
            # A running worker may create the topic again, with another id.
            async with asyncio.timeout(PATIENCE_SECONDS):
                while (left := (await describe(admin, [topic])).get(topic)) and left == before:  # noqa: ASYNC110 (the broker sends no event)
                    await asyncio.sleep(0.05)

    async def delete_before(self, partition: TopicPartition, offset: int) -> None:
        async with self.admin() as admin:
            await admin.delete_records({partition: RecordsToDelete(before_offset=offset)})

    async def records(
        self, topic: str, *, committed_only: bool = False
    ) -> list[ConsumerRecord[bytes, bytes]]:
        """Return all records that a topic holds now."""
        async with self.reader(committed_only=committed_only) as reader:
            partitions = [TopicPartition(topic, p) for p in await _partitions(reader, topic)]
            ends = await end_offsets(reader, partitions)
            await reader.seek_to_beginning(*partitions)
            found: list[ConsumerRecord[bytes, bytes]] = []
            while any([await reader.position(p) < ends[p] for p in partitions]):
                for batch in (await reader.getmany(timeout_ms=100)).values():
                    found += batch
            return found

    async def close(self, until_ms: int, *, collection: CollectionConfig | None = None) -> None:
        """Order all panes closed up to a time, as the `close` command does."""
        topics = (collection or self.collection).topics
        async with self.reader() as reader, self.producer() as producer:
            source = [
                TopicPartition(topics.source, p) for p in await _partitions(reader, topics.source)
            ]
            ends = await end_offsets(reader, source)
            control = Control(until_ms, {p.partition: end for p, end in ends.items()})
            await producer.send_and_wait(topics.control, encode_control(control), partition=0)


async def _partitions(reader: AIOKafkaConsumer, topic: str) -> list[int]:
    reader.assign([TopicPartition(topic, 0)])
    await reader._client.force_metadata_update()
    return sorted(reader.partitions_for_topic(topic) or [0])
