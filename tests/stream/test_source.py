"""Reading a source without a group: which refusals of a fetch are about where we read now."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, KafkaTimeoutError, OffsetOutOfRangeError

from ldpstream.agents.reading import source
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
    outside: list[tuple[int, int]] = []

    def go_on(partition: TopicPartition, asked: int, beginning: int) -> None:
        outside.append((asked, beginning))
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
    assert outside == [(1, BEGINNING), (BEGINNING, BEGINNING)][:told]


class Slow(Consumer):
    """Refuses the same place until told otherwise, and says where the log begins when it is let."""

    def __init__(self) -> None:
        super().__init__([])
        self.asked = asyncio.Event()
        self.beginning: asyncio.Future[int] = asyncio.Future()

    async def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[object, int]:
        self.beginning = asyncio.Future()
        self.asked.set()
        return dict.fromkeys(partitions, await self.beginning)

    async def getmany(self, *_: TopicPartition, **__: object) -> dict[object, object]:
        await asyncio.sleep(0)
        if self.at < BEGINNING:
            raise OffsetOutOfRangeError({ONE: self.at})
        return {}


async def test_where_a_log_begins_is_news_of_the_place_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source, "_RETRY_SECONDS", 0.0)
    outside: list[tuple[int, int]] = []
    errors: list[KafkaError] = []
    reader = SourceReader(
        [ONE],
        on_stretch=lambda *_: None,
        on_outside=lambda _, asked, beginning: outside.append((asked, beginning)),
        on_error=errors.append,
    )
    consumer = Slow()
    reader.start(cast("AIOKafkaConsumer", consumer))
    reader.watch(ONE, 1)
    run = asyncio.create_task(reader.run())

    async def asked() -> asyncio.Future[int]:
        async with asyncio.timeout(30):
            await consumer.asked.wait()
        consumer.asked.clear()
        return consumer.beginning

    # The broker is away for a moment: nothing is known, and the place is asked for again.
    (await asked()).set_exception(KafkaTimeoutError())
    again = await asked()
    assert (len(errors), outside, reader.watched(ONE)) == (1, [], True)
    # Meanwhile what is missing has come by another way.
    reader.watch(ONE, 7)
    again.set_result(BEGINNING)
    await asyncio.sleep(0.01)
    assert (outside, reader.watched(ONE)) == ([], True)
    reader.watch(ONE, 2)
    (await asked()).set_result(BEGINNING)
    await eventually(lambda: bool(outside))
    run.cancel()
    assert (outside, reader.watched(ONE)) == ([(2, BEGINNING)], False)


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
        return {
            ONE: [SimpleNamespace(offset=self.at - 1, value=b"x", timestamp=0, timestamp_type=0)]
        }


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
