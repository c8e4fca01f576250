"""Reading a source without a group: which refusals of a fetch are about where we read now."""

import asyncio
from typing import cast

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from ldpstream.agents.source import SourceReader
from tests.processes import eventually

ONE = TopicPartition("trips", 0)
BEGINNING = 6


class Consumer:
    """Refuses one fetch after another, each of the offset that it is told."""

    def __init__(self, refused: list[int]) -> None:
        self.refused = refused
        self.at = 0

    def assign(self, partitions: list[TopicPartition]) -> None: ...

    def pause(self, partition: TopicPartition) -> None: ...

    def resume(self, partition: TopicPartition) -> None: ...

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.at = offset

    def last_poll_timestamp(self, partition: TopicPartition) -> None: ...

    def highwater(self, partition: TopicPartition) -> None: ...

    async def position(self, partition: TopicPartition) -> int:
        return self.at

    async def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[object, int]:
        return dict.fromkeys(partitions, BEGINNING)

    async def getmany(self, **_: object) -> dict[object, object]:
        await asyncio.sleep(0)
        if self.refused:
            raise OffsetOutOfRangeError({ONE: self.refused.pop(0)})
        return {}


@pytest.mark.parametrize(("refused", "told"), [([1], 1), ([1, 1], 1), ([1, 6], 2), ([0, 2], 0)])
async def test_a_refused_fetch_counts_only_where_the_partition_is_read(
    refused: list[int], told: int
) -> None:
    outside: list[int] = []

    def go_on(partition: TopicPartition, beginning: int) -> None:
        outside.append(beginning)
        reader.watch(partition, beginning)

    reader = SourceReader(
        [ONE],
        on_stretch=lambda *_: None,
        on_outside=go_on,
        on_error=lambda error: pytest.fail(repr(error)),
    )
    consumer = Consumer(refused)
    reader.start(cast("AIOKafkaConsumer", consumer))
    reader.watch(ONE, 1)
    run = asyncio.create_task(reader.run())
    await eventually(lambda: not consumer.refused)
    await asyncio.sleep(0.01)
    run.cancel()
    assert outside == [BEGINNING] * told
