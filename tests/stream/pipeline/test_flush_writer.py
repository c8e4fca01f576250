"""The order in which a flush goes to the broker: one batch, or cells first and then the head."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from aiokafka.errors import KafkaTimeoutError

from ldpstream.agents.broker.identity import SourceChangedError
from ldpstream.agents.engine.flushing import InFlightFlushes, Services
from ldpstream.agents.state.flushes import Copy, Flush
from tests.stream.owning import Holder
from tests.stream.serving import read_city

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
