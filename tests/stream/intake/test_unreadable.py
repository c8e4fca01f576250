"""One batch that cannot be read stops no consumer, and hides nothing around it."""

import asyncio
import struct
from typing import Any

import cramjam
import pytest
from aiokafka import TopicPartition
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c_py

from tests.fetched import Consumer
from tests.unreadable import unreadable

ONE, OTHER = TopicPartition("a", 0), TopicPartition("b", 0)
_CRC, _CRC_START = 17, 21


def good(*values: bytes, codec: int = 0) -> bytes:
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 16)
    for offset, value in enumerate(values):
        builder.append(offset, 1_000, None, value, [])
    return bytes(builder.build())


def log_of(*batches: bytes, start: int = 0) -> bytes:
    """Return batches with a broker's offsets, beginning with the batch of offset `start`."""
    found, end = [], 0
    for batch in batches:
        base, end = end, end + struct.unpack_from(">i", batch, 23)[0] + 1
        if end > start:
            found.append(struct.pack(">q", base) + batch[8:])
    return b"".join(found)


def signed(batch: bytearray) -> bytes:
    """Return a changed batch with a valid checksum."""
    struct.pack_into(">I", batch, _CRC, calc_crc32c_py(bytes(batch[_CRC_START:])))
    return bytes(batch)


class Reader(Consumer):
    def read(self, most: int | None = None) -> dict[TopicPartition, list[tuple[int, Any]]]:
        return {
            partition: [(record.offset, record.value) for record in records]
            for partition, records in asyncio.run(self.poll(most)).items()
        }

    def positions(self) -> dict[TopicPartition, int]:
        return {partition: place.position for partition, place in self.places.items()}


BATCHES = (
    *(good(b"0", b"1"), unreadable([b"2", b"3"], after=2)),
    *(good(b"7"), unreadable(), good(b"9")),
)
READ = [(0, b"0"), (1, b"1"), (2, b"2"), (3, b"3"), (6, None), (7, b"7"), (8, None), (9, b"9")]


@pytest.mark.parametrize("most", [None, 1, 3])
@pytest.mark.parametrize("start", range(10))
def test_every_read_of_an_offset_gives_the_same_record(most: int | None, start: int):
    reader = Reader()
    reader.answered(ONE, log_of(*BATCHES, start=start), start=start)
    found = []
    while some := reader.read(most):
        found += some[ONE]
        assert reader.places[ONE].position > found[-1][0]
    assert found == [record for record in READ if record[0] >= start]
    assert reader.places[ONE].position == 10


def test_thousands_of_unreadable_batches_are_passed_over_and_mentioned_once(
    caplog: pytest.LogCaptureFixture,
):
    # Each has a byte after its last record.
    longer = bytearray(good(b"x") + b"\0")
    struct.pack_into(">i", longer, 8, len(longer) - 12)
    reader = Reader()
    reader.answered(ONE, log_of(*[signed(longer)] * 3_000, *[unreadable()] * 3_000))
    found = reader.read()[ONE]
    assert [value for _, value in found] == [b"x"] * 3_000 + [None] * 3_000
    assert len([one for one in caplog.records if one.levelname == "WARNING"]) == 1
    assert "topic a[0], offsets 3000 to 3000" in caplog.text


def test_bytes_that_do_not_unpack_are_passed_over():
    packed = bytearray(good(*[bytes(100)] * 9, codec=4))
    packed[70:80] = bytes(10)
    reader = Reader()
    reader.answered(ONE, log_of(signed(packed), good(b"9")))
    assert reader.read() == {ONE: [(8, None), (9, b"9")]}


@pytest.mark.parametrize("error", [CorruptRecordException, MemoryError])
def test_corruption_and_lack_of_memory_are_raised_and_lose_nothing_else(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
):
    batch = bytearray(good(b"1", b"x" * 500, codec=4))
    if error is CorruptRecordException:
        batch[-1] ^= 1
    else:

        def fail(*_: Any) -> None:
            raise MemoryError

        monkeypatch.setattr(cramjam.zstd, "decompress_into", fail)
    reader = Reader()
    third = TopicPartition("c", 0)
    reader.answered(OTHER, good(b"0"))
    reader.answered(ONE, log_of(good(b"0"), bytes(batch)))
    reader.answered(third, good(b"0"))
    assert set(reader.read()) == {OTHER, ONE, third}
    with pytest.raises(error):
        reader.read()
    assert reader.positions() == {OTHER: 1, ONE: 1, third: 1}
    # The consumer has to fetch it again.
    assert reader.read() == {}
