"""The end of a log is the larger of what a fetch and a request for offsets say."""

from typing import cast

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaTimeoutError

from ldpstream.agents.broker.offsets import end_offsets

ONE, TWO = TopicPartition("trips", 0), TopicPartition("trips", 1)


class Consumer:
    """Has for each partition the answer of the request, and that of the second fetch."""

    def __init__(self, told: dict[TopicPartition, int], marks: dict[TopicPartition, int]) -> None:
        self.told, self.marks = told, marks
        self.fetched = 0

    def assign(self, partitions: list[TopicPartition]) -> None: ...

    async def seek_to_end(self, *partitions: TopicPartition) -> None: ...

    async def position(self, partition: TopicPartition) -> int:
        return self.told[partition]

    def highwater(self, partition: TopicPartition) -> int | None:
        return self.marks.get(partition) if self.fetched >= 2 else None

    async def getmany(self, **_: object) -> dict[object, object]:
        self.fetched += 1
        return {}


async def test_the_larger_of_both_is_the_end() -> None:
    # ONE has a new leader, whose high watermark lags; the request for TWO is behind.
    consumer = Consumer({ONE: 20, TWO: 11}, {ONE: 18, TWO: 15})
    found = await end_offsets(cast("AIOKafkaConsumer", consumer), [ONE, TWO])
    assert found == {ONE: 20, TWO: 15}


async def test_a_fetch_that_is_never_answered_ends_in_an_error() -> None:
    consumer = Consumer({ONE: 20, TWO: 11}, {ONE: 20})
    with pytest.raises(KafkaTimeoutError, match=r"trips\[1\]"):
        await end_offsets(cast("AIOKafkaConsumer", consumer), [ONE, TWO], timeout_seconds=0.1)
