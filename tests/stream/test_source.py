"""Reading a source without a group: which refusals of a fetch are about where we read now."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from ldpstream.agents.reading.pace import PARTITIONS, paced
from ldpstream.agents.reading.source import SourceReader, Stretch, sliced
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

    async def getmany(self, *_: TopicPartition, **__: object) -> dict[object, object]:
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


class Quick(Consumer):
    """Answers a fetch with a record in the very millisecond in which the partition was watched."""

    def last_poll_timestamp(self, partition: TopicPartition) -> int:  # type: ignore[override]
        return 1_000

    def highwater(self, partition: TopicPartition) -> int:  # type: ignore[override]
        return 3

    async def getmany(self, *_: TopicPartition, **__: object) -> dict[object, object]:
        await asyncio.sleep(0)
        if self.at == 3:
            return {}
        self.at += 1
        return {ONE: [SimpleNamespace(offset=self.at - 1, value=b"x")]}


async def test_what_comes_within_a_millisecond_is_not_taken_for_a_hole() -> None:
    told: list[Stretch] = []
    reader = SourceReader(
        [ONE],
        on_stretch=lambda _, stretch: told.append(stretch),
        on_outside=lambda *_: None,
        on_error=lambda error: pytest.fail(repr(error)),
    )
    reader.start(cast("AIOKafkaConsumer", Quick([])))
    reader.watch(ONE, 0)
    run = asyncio.create_task(reader.run())
    await eventually(lambda: bool(told) and told[-1].stop == 3)
    run.cancel()
    assert [offset for stretch in told for offset, _ in stretch.records] == [0, 1, 2]
    assert [stretch.start for stretch in told] == [0, 1, 2]


def test_more_partitions_are_gone_through_less_often() -> None:
    assert paced(0.25, 1) == paced(0.25, PARTITIONS) == 0.25
    assert paced(0.25, 10 * PARTITIONS) == 2.5
    assert paced(0.25, 10 * PARTITIONS, most=1.0) == 1.0


def test_nothing_is_cut_into_no_slices() -> None:
    assert list(sliced([])) == []
    records = [(offset, b"x") for offset in range(2_500)]
    parts = list(sliced(records))
    assert len(parts) > 1
    assert [record for part in parts for record in part] == records
