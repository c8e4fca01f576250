"""Reading a changelog to its end, as a worker does."""

import asyncio
from contextlib import suppress

from aiokafka import AIOKafkaConsumer, TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.reading.changelog import ChangelogReader
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.tail import Tail
from tests.processes import eventually


async def read_tails(
    reader: AIOKafkaConsumer, collection: CollectionConfig, context: Context
) -> list[Tail]:
    """Return tails that have read a collection's changelog up to its end."""
    tails = [Tail(context, partition) for partition in range(collection.partitions)]
    broken: list[str] = []
    read = ChangelogReader(
        reader,
        {TopicPartition(collection.topics.changelog, t.partition): t for t in tails},
        on_read=lambda _: None,
        on_broken=lambda _, why: broken.append(why),
        on_error=lambda error: broken.append(repr(error)),
    )
    task = asyncio.create_task(read.run())
    try:
        await eventually(lambda: all(t.head is not None for t in tails) or bool(broken))
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert not broken
    return tails
