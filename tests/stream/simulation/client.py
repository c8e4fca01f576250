"""A consumer as a reader sees it, over a log that the test keeps: what aiokafka does, step by step.

A fetch is sent and answered at different moments, one at a time for each partition; an answer
counts only for the position that it was sent for. Fetched records wait until they are polled, and a
seek or a pause drops them.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

from aiokafka import TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from ldpstream.agents.state.batch import UNDATED, Dates


class Answer(NamedTuple):
    """A broker's answer: records `(offset, value)` below `stop`, the end of the log, and dates.

    `stop` is below the position asked for if that is no longer in the log.
    """

    records: Sequence[tuple[int, bytes | None]]
    stop: int
    end: int
    dates: Dates = UNDATED


@dataclass
class _Place:
    position: int = 0
    paused: bool = False
    highwater: int | None = None
    answered: int | None = None
    asked: tuple[int, Answer] | None = None
    fetched: Answer | None = None
    refused: int | None = None


@dataclass
class Client:
    """Stands for an `AIOKafkaConsumer`; `fetch` and `beginning` are the broker's."""

    fetch: Callable[[TopicPartition, int], Answer]
    beginning: Callable[[TopicPartition], int]
    places: dict[TopicPartition, _Place] = field(default_factory=dict)
    answers: int = 0
    exists: bool = True

    def ask(self, partition: TopicPartition) -> None:
        place = self.places[partition]
        if not (place.paused or place.asked or place.fetched or place.refused is not None):
            place.asked = place.position, self.fetch(partition, place.position)

    def answer(self, partition: TopicPartition) -> None:
        place = self.places[partition]
        if place.asked is None:
            return
        (position, answer), place.asked = place.asked, None
        if position != place.position:
            return
        if answer.stop < position:
            place.refused = position
            return
        self.answers += 1
        place.highwater, place.answered = answer.end, self.answers
        place.fetched = answer if answer.stop > position else None

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        self.places = {partition: _Place() for partition in partitions}

    def seek(self, partition: TopicPartition, offset: int) -> None:
        place = self.places[partition]
        place.position, place.fetched, place.refused = offset, None, None

    def pause(self, partition: TopicPartition) -> None:
        self.places[partition].paused = True

    def resume(self, partition: TopicPartition) -> None:
        self.places[partition].paused = False

    def highwater(self, partition: TopicPartition) -> int | None:
        return self.places[partition].highwater

    def last_poll_timestamp(self, partition: TopicPartition) -> int | None:
        return self.places[partition].answered

    def partitions_for_topic(self, _: str) -> set[int]:
        return set(range(99)) if self.exists else set()

    async def position(self, partition: TopicPartition) -> int:
        return self.places[partition].position

    async def beginning_offsets(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        return {partition: self.beginning(partition) for partition in partitions}

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int, max_records: int
    ) -> dict[TopicPartition, list[Any]]:
        found: dict[TopicPartition, list[Any]] = {}
        for partition in partitions or list(self.places):
            place = self.places[partition]
            if place.refused is not None and not found:
                refused, place.refused = place.refused, None
                raise OffsetOutOfRangeError({partition: refused})
            if place.paused:
                place.fetched = None
            if place.fetched is None or max_records <= 0:
                continue
            records, stop, end, dates = place.fetched
            taken, rest = records[:max_records], records[max_records:]
            place.position = taken[-1][0] + 1 if rest else stop
            dated = dates.part(max_records, len(records))
            place.fetched = Answer(rest, stop, end, dated) if rest else None
            if taken:
                times_ms, appended = dates.times_ms or [-1] * len(taken), int(dates.appended)
                found[partition] = [
                    SimpleNamespace(offset=o, value=value, timestamp=at, timestamp_type=appended)
                    for (o, value), at in zip(taken, times_ms, strict=False)
                ]
                max_records -= len(taken)
        return found


def run_now(steps: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that only yields to the event loop, and return its result."""
    while True:
        try:
            steps.send(None)
        except StopIteration as end:
            return end.value
