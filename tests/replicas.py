"""Reading a changelog to its end, as a worker does."""

import asyncio
from contextlib import suppress

from aiokafka import AIOKafkaConsumer, TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.reading.changelog import ChangelogReader
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.replica import Replica
from tests.processes import eventually


async def read_replicas(
    reader: AIOKafkaConsumer, collection: CollectionConfig, context: Context
) -> list[Replica]:
    """Return replicas that have read a collection's changelog up to its end."""
    replicas = [Replica(context, partition) for partition in range(collection.partitions)]
    broken: list[str] = []
    read = ChangelogReader(
        reader,
        {TopicPartition(collection.topics.changelog, t.partition): t for t in replicas},
        on_read=lambda _: None,
        on_broken=lambda _, why: broken.append(why),
    )
    task = asyncio.create_task(read.run())
    try:
        await eventually(lambda: all(t.head is not None for t in replicas) or bool(broken))
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert not broken
    return replicas
