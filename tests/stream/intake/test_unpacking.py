"""What a consumer returns for batches that unpack to too much, or cannot be read.

The batches are as a broker sends them, and aiokafka's own fetcher reads them.
"""

import struct
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from ldpstream.agents.broker import unpacking
from ldpstream.agents.broker.patches import bounded_fetches
from ldpstream.agents.broker.unpacking import BATCH_BYTES, batch_bytes
from tests import fetched
from tests.attack.bombs import misnamed, specks, zeros

ONE, TWO = TopicPartition("trips", 0), TopicPartition("trips", 1)
CODECS = ("gzip", "snappy", "lz4", "zstd")
NAMES = {name: number for number, name in enumerate(("none", *CODECS))}


class Consumer(fetched.Consumer):
    def fetch(self, *batches: bytes, partition: TopicPartition = ONE) -> None:
        """Queue one answer of these batches, at consecutive offsets."""
        offset, data = 0, b""
        for batch in batches:
            data += struct.pack(">q", offset) + batch[8:]
            offset += int.from_bytes(batch[23:27]) + 1 if batch[16] == 2 else 1
        self.answered(partition, data)


def batch(codec: str, *values: bytes, size: int = 8 << 20) -> bytes:
    """Return a valid batch."""
    builder: Any = DefaultRecordBatchBuilder(2, NAMES[codec], 0, -1, -1, -1, size)
    for offset, value in enumerate(values):
        assert builder.append(offset, 1_000, b"key", value, [("trace", b"1")])
    return bytes(builder.build())


def sized(data: bytes) -> bytes:
    """Return a batch with its length in its header."""
    return data[:8] + struct.pack(">i", len(data) - 12) + data[12:]


@pytest.mark.parametrize("codec", ["none", *CODECS])
async def test_honest_batches_are_read_as_aiokafka_reads_them(codec: str) -> None:
    consumer = Consumer()
    consumer.fetch(batch(codec, b"a", b"b" * 50_000), batch(codec, b"c"))
    found = (await consumer.poll())[ONE]
    assert [(r.offset, r.key, r.value, r.headers) for r in found] == [
        (offset, b"key", value, (("trace", b"1"),))
        for offset, value in enumerate([b"a", b"b" * 50_000, b"c"])
    ]
    assert consumer.places[ONE].position == 3


@pytest.mark.parametrize("codec", CODECS)
async def test_a_batch_up_to_the_bound_is_read_and_one_beyond_is_one_bad_message(
    codec: str, caplog: pytest.LogCaptureFixture
) -> None:
    overhead = len(batch("none", b"x" * 10_000)) - 10_000 - 61
    just = batch(codec, bytes(100_000 - overhead - 1))
    over = batch(codec, bytes(100_000))
    consumer = Consumer(100_000)
    consumer.fetch(batch("none", b"first"), just, over, batch(codec, b"last"))
    found = (await consumer.poll())[ONE]
    assert [(r.offset, len(r.value)) for r in found if r.offset != 2] == [
        (0, 5),
        (1, 100_000 - overhead - 1),
        (3, 4),
    ]
    assert (found[2].value, found[2].timestamp) == (None, 1_000)
    assert "does not unpack to at most 100000 bytes" in caplog.text
    assert consumer.places[ONE].position == 4


def unreadable(kind: str) -> bytes:
    """Return a batch that cannot be read."""
    if kind in CODECS:
        return zeros(kind, 5 << 20).data
    if kind == "many":
        return specks("zstd", 300_000).data
    if kind == "header":
        return misnamed().data
    if kind == "codec":  # an unknown one
        return batch("zstd", b"value")[:22] + b"\x07" + batch("zstd", b"value")[23:]
    # Blocks of no length, which would never end.
    return sized(batch("snappy", b"value")[:61] + unpacking._XERIAL + struct.pack(">i", -4))


@pytest.mark.parametrize("kind", [*CODECS, "many", "header", "codec", "blocks"])
async def test_an_unreadable_batch_is_one_bad_message_at_its_last_offset(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = unreadable(kind)
    # Checksums do not match, and are not tested here.
    monkeypatch.setattr(PartitionRecords, "__init__", _unchecked)
    consumer = Consumer()
    consumer.fetch(data, batch("lz4", b"honest"))
    read = [(record.offset, record.value) for record in (await consumer.poll())[ONE]]
    last = int.from_bytes(data[23:27])
    (offset, why), honest = read
    assert offset == last
    assert why is None
    assert honest == (last + 1, b"honest")


_made = PartitionRecords.__init__


def _unchecked(self: Any, *arguments: Any) -> None:
    _made(self, *arguments[:-2], False, arguments[-1])


async def test_records_before_an_unreadable_one_count() -> None:
    consumer = Consumer()
    data = bytearray(batch("none", b"one", b"two", b"three"))
    at = data.index(b"trace", data.index(b"two"))
    data[at] = 0xFF
    struct.pack_into(">I", data, 17, calc_crc32c(bytes(data[21:])))
    consumer.fetch(bytes(data), batch("none", b"honest"))
    found = (await consumer.poll())[ONE]
    assert [(r.offset, r.value) for r in found] == [(0, b"one"), (2, None), (3, b"honest")]


async def test_a_compressed_message_of_the_old_formats_is_not_unpacked() -> None:
    builder: Any = LegacyRecordBatchBuilder(1, NAMES["gzip"], 1 << 20)
    builder.append(0, 1_000, None, b"value")
    plain: Any = LegacyRecordBatchBuilder(1, 0, 1 << 20)
    plain.append(0, 1_000, None, b"value")
    consumer = Consumer()
    consumer.fetch(bytes(builder.build()), bytes(plain.build()))
    old, honest = (await consumer.poll())[ONE]
    assert (old.offset, old.value) == (0, None)
    assert (honest.offset, honest.value) == (1, b"value")


async def test_a_poll_ends_with_its_budget_and_other_partitions_have_their_turn() -> None:
    consumer = Consumer()
    consumer.fetch(*[zeros("zstd", (4 << 20) - 100).data] * 20)
    consumer.fetch(*[batch("none", b"honest")] * 5, partition=TWO)
    first = await consumer.poll()
    assert [len(first[ONE]), TWO in first] == [4, False]
    second = await consumer.poll()
    assert [record.offset for record in second[TWO]] == list(range(5))
    read = [record.offset for record in [*first[ONE], *second[ONE]]]
    while found := await consumer.poll():
        assert len(found[ONE]) <= 4
        read += [record.offset for record in found[ONE]]
    assert read == list(range(20))
    assert [consumer.places[ONE].position, consumer.places[TWO].position] == [20, 5]


@pytest.mark.slow
async def test_empty_records_count_against_the_budget() -> None:
    consumer = Consumer()
    consumer.fetch(*[specks("zstd", 40_000).data] * 3)
    read = []
    for _ in range(20):
        found = (await consumer.poll()).get(ONE, [])
        assert len(found) <= bounded_fetches.POLL_BYTES // 512
        read += [record.offset for record in found]
    assert read == list(range(120_000))


async def test_a_limited_poll_continues_where_the_last_one_ended() -> None:
    consumer = Consumer()
    consumer.fetch(batch("lz4", *[b"v"] * 10), batch("lz4", *[b"w"] * 10))
    sizes, read = [], []
    while found := (await consumer.poll(7)).get(ONE, []):
        sizes.append(len(found))
        read += [record.offset for record in found]
        assert consumer.places[ONE].position == read[-1] + 1
    assert (sizes, read) == ([7, 7, 6], list(range(20)))


def test_larger_requests_and_fetches_allow_larger_batches() -> None:
    assert batch_bytes({}) == BATCH_BYTES
    assert batch_bytes({"max_request_size": 1 << 20}) == BATCH_BYTES
    assert batch_bytes({"max_partition_fetch_bytes": 1 << 23}) == 1 << 23
    assert batch_bytes({"max_request_size": 1 << 24, "max_partition_fetch_bytes": 5}) == 1 << 24
