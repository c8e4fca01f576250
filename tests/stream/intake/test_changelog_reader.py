"""A changelog whose end goes back: for a moment after a change of leader, or permanently."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from ldpstream.agents.engine.changelog import ChangelogReader
from ldpstream.agents.state.records import RecordError
from ldpstream.agents.state.replica import Replica
from tests.processes import eventually

ONE = TopicPartition("changelog", 0)


@dataclass
class Fetched:
    """An answered fetch: the high watermark, and when it came."""

    end: int
    seconds: int


class Consumer:
    """Gives one answer after another, without records; it starts at the end of the first."""

    def __init__(self, answers: list[Fetched], *, outside: bool = False) -> None:
        self.answers, self.outside = answers, outside
        self.at = answers[0].end
        self.last = answers[0]

    def assign(self, partitions: list[TopicPartition]) -> None: ...

    def pause(self, partition: TopicPartition) -> None: ...

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        self.at = 0

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.at = offset

    async def getmany(self, **_: object) -> dict[object, object]:
        await asyncio.sleep(0)
        if self.outside and self.at > self.last.end:
            raise OffsetOutOfRangeError({ONE: self.at})
        self.last = self.answers.pop(0) if self.answers else self.last
        return {}

    def highwater(self, partition: TopicPartition) -> int:
        return self.last.end

    def last_poll_timestamp(self, partition: TopicPartition) -> int:
        return self.last.seconds * 1000

    async def position(self, partition: TopicPartition) -> int:
        return self.at


class Evaluated:
    """Stands for the replica, and keeps the ends that it is shown."""

    def __init__(self, *, refused: bool = False) -> None:
        self.ends: list[int] = []
        self.restarts = 0
        self.refused = refused

    def read(self, records: list[object], *, position: int, end: int) -> bool:
        if self.refused and not self.restarts:
            raise RecordError("torn")
        self.ends.append(end)
        return position >= end


def start(
    consumer: Consumer,
    replicas: Mapping[TopicPartition, Evaluated],
) -> tuple[asyncio.Task[None], list[tuple[int, str]]]:
    """Start a reader; return its task, and the partitions that it gives up, with the reasons."""
    said: list[tuple[int, str]] = []
    reader = ChangelogReader(
        cast("AIOKafkaConsumer", consumer),
        {at: cast("Replica", replica) for at, replica in replicas.items()},
        on_read=lambda _: None,
        on_broken=lambda at, why: said.append((at.partition, why)),
    )
    return asyncio.create_task(reader.run()), said


@pytest.mark.parametrize(
    ("answers", "broken"),
    [
        ([Fetched(20, 0), Fetched(18, 1), Fetched(18, 25), Fetched(20, 26)], False),
        ([Fetched(20, 0), Fetched(18, 1), Fetched(20, 2), Fetched(18, 40)], False),
        ([Fetched(20, 0), Fetched(18, 1), Fetched(18, 32)], True),
    ],
)
async def test_an_end_may_go_back_for_a_while(answers: list[Fetched], broken: bool) -> None:
    consumer, replica = Consumer(answers), Evaluated()
    run, said = start(consumer, {ONE: replica})
    await eventually(lambda: not consumer.answers)
    await asyncio.sleep(0.01)
    run.cancel()
    assert said == ([(0, "its end went back from 20 to 18")] if broken else [])
    # Meanwhile the log counts as long as before: the replica never sees a shorter one.
    assert set(replica.ends) == {20}


async def test_a_log_that_was_given_up_stops_no_other() -> None:
    consumer = Consumer([Fetched(20, 0), Fetched(18, 0)], outside=True)
    run, said = start(consumer, {ONE: Evaluated()})
    await asyncio.sleep(0)
    consumer.at = 20
    await eventually(lambda: bool(said))
    # Every further poll is refused as well.
    await asyncio.sleep(0.01)
    assert not run.done()
    run.cancel()
    assert said == [(0, "its end went back: it was created again or cut")]


class Failing(Evaluated):
    """A replica that raises an unexpected error."""

    def read(self, records: list[object], *, position: int, end: int) -> bool:
        raise ZeroDivisionError("in a replica")


async def test_an_unexpected_error_in_one_replica_stops_no_other() -> None:
    replica, two = Evaluated(), TopicPartition("other", 1)
    run, said = start(Consumer([Fetched(20, 0)]), {ONE: Failing(), two: replica})
    await eventually(lambda: bool(said and replica.ends))
    await asyncio.sleep(0.01)
    assert not run.done()
    run.cancel()
    assert said == [(0, "internal error: ZeroDivisionError('in a replica')")]
