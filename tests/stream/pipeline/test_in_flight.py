"""Flushes: their order, failures that are logged once, draining, and their pace."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RequestTimedOutError,
)

from ldpstream.agents.broker.identity import SourceChangedError
from ldpstream.agents.engine.clock import PARTITIONS
from ldpstream.agents.engine.flushing import FLUSH_SECONDS, FlushPace, InFlightFlushes, Services
from ldpstream.agents.engine.intake import OwnedPartition
from ldpstream.agents.state.flushes import Copy, Flush, Settled
from tests.stream.owning import Holder
from tests.stream.serving import read_city


class Unconnected(InFlightFlushes):
    """Flushes without services to write them."""

    def __init__(self) -> None:
        any_ = cast("Any", None)
        services = Services(any_, any_, any_, any_)
        super().__init__("trips", read_city(), services, Holder())


class Refusing(Unconnected):
    """Refuses the flushes of the first partitions with the given errors."""

    def __init__(self, errors: list[KafkaError]) -> None:
        super().__init__()
        self.errors = errors

    async def write_flush(self, partition: int, _: object) -> None:
        if partition < len(self.errors):
            raise self.errors[partition]


def held(partition: int) -> OwnedPartition:
    state: Any = SimpleNamespace(
        partition=partition,
        full=True,
        outcome=object(),
        flush=lambda: SimpleNamespace(next=1),
        settle=lambda: Settled.WON,
    )
    return OwnedPartition(state)


async def test_a_partition_that_cannot_be_written_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    flushes = Refusing([MessageSizeTooLargeError(), MessageSizeTooLargeError()])
    flushes.errors.append(RequestTimedOutError())
    partitions = [held(partition) for partition in range(4)]

    async def rounds(number: int) -> None:
        for _ in range(number):
            for one in partitions:
                flushes.start(one)
                assert one.flight is not None
                await one.flight

    await rounds(5)
    (said,) = caplog.messages
    assert "partition 0 cannot be written" in said
    assert "(MESSAGE_SIZE_TOO_LARGE): raise max.message.bytes of the topic" in said
    assert [said] == flushes.complaints.problems
    # After a success the next failure is logged again.
    refused, flushes.errors = flushes.errors, []
    await rounds(1)
    flushes.errors = refused
    await rounds(5)
    assert len(caplog.messages) == 2


class Slow(Unconnected):
    """Writes at once, except partition 0, which waits; keeps what it writes."""

    def __init__(self) -> None:
        super().__init__()
        self.carried: list[int] = []
        self.written = asyncio.Event()

    async def write_flush(self, partition: int, _: object) -> None:
        self.carried.append(partition)
        if partition == 0:
            await self.written.wait()


async def test_a_partition_that_is_given_up_begins_no_flush_while_others_drain() -> None:
    slow, partitions = Slow(), [held(0), held(1)]
    draining = asyncio.create_task(slow.drain(partitions, 60))
    for _ in range(50):
        await asyncio.sleep(0)
    assert slow.carried == [0, 1]
    assert partitions[1].flight is None
    for _ in range(3):
        slow.start(partitions[1])
        slow.schedule(partitions[1])
    slow.written.set()
    await draining
    assert slow.carried == [0, 1]
    assert all(one.flight is None for one in partitions)


def test_many_flushes_go_in_rounds_and_a_few_at_once() -> None:
    pace, rounds, last = FlushPace(), list[float](), -1.0
    # Ten times as many partitions as may flush at once always have something, for ten seconds.
    for step in range(100):
        now = step / 10
        with pace.round(now):
            if pace.open:
                rounds.append(now)
                for _ in range(10 * PARTITIONS):
                    assert pace.open
                    pace.started(now)
        assert not pace.open
    assert rounds == pytest.approx([0.0, 2.5, 5.0, 7.5], abs=0.21)
    # A single partition flushes as soon as it is due, whatever was before.
    for step in range(100):
        last = 20 + step * FLUSH_SECONDS
        with pace.round(last):
            assert pace.open
        assert pace.open
        pace.started(last)


HEAD = (b"head", b"h")


@dataclass
class Sent:
    """Keeps what is sent, in order; a batch holds `room` records."""

    room: int
    refused: str = ""
    order: list[str] = field(default_factory=list)

    def note(self, what: str) -> None:
        if what == self.refused:
            raise KafkaTimeoutError
        self.order.append(what)

    async def send_records(
        self, topic: str, partition: int, records: Sequence[tuple[bytes, bytes | None]]
    ) -> None:
        self.note("head" if records[-1] == HEAD else f"{len(records)} cells")

    async def send_whole(
        self, topic: str, partition: int, records: Sequence[tuple[bytes, bytes | None]]
    ) -> bool:
        if len(records) > self.room:
            return False
        assert records[-1] == HEAD
        self.note(f"whole of {len(records)}")
        return True

    async def send_all(self, topic: str, partition: int, messages: Sequence[object]) -> None:
        self.note(f"{len(messages)} copies")

    async def check(self, names: Sequence[str], *, then: str) -> None:
        self.note("check")


def make(sent: Sent, cells: int) -> tuple[InFlightFlushes, Flush]:
    named = tuple((b"cell", b"%d" % number) for number in range(cells))
    copies = (Copy(kind="late", value=b"", headers=()),)
    flush = Flush(copies=copies, cells=named, head=HEAD)
    any_ = cast("Any", sent)
    return InFlightFlushes("city", read_city(), Services(any_, any_, any_, any_), Holder()), flush


@pytest.mark.parametrize(
    ("room", "cells", "order"),
    [
        (10, 9, ["1 copies", "check", "whole of 10"]),
        (10, 0, ["1 copies", "check", "whole of 1"]),
        (10, 10, ["1 copies", "check", "10 cells", "check", "head"]),
    ],
)
async def test_the_head_goes_with_the_cells_or_after_them(
    room: int, cells: int, order: list[str]
) -> None:
    sent = Sent(room)
    writer, flush = make(sent, cells)
    await writer.write_flush(0, flush)
    assert sent.order == order


@pytest.mark.parametrize("refused", ["1 copies", "check", "10 cells"])
async def test_no_head_is_sent_after_what_failed(refused: str) -> None:
    sent = Sent(10, refused=refused)
    writer, flush = make(sent, 10)
    with pytest.raises(KafkaTimeoutError):
        await writer.write_flush(0, flush)
    assert "head" not in sent.order


async def test_no_head_is_sent_for_another_topic() -> None:
    class Changed(Sent):
        async def check(self, names: Sequence[str], *, then: str) -> None:
            raise SourceChangedError("another one")

    sent = Changed(10)
    writer, flush = make(sent, 1)
    with pytest.raises(SourceChangedError):
        await writer.write_flush(0, flush)
    assert not any("whole" in what for what in sent.order)
