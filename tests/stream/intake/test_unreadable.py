"""Batches are read as aiokafka reads them; those that cannot be stop no consumer."""

import asyncio
import random
import struct
import tomllib
from pathlib import Path
from typing import Any

import cramjam
import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import PartitionRecords
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.util import calc_crc32c, calc_crc32c_py

from ldpstream.agents.broker import unpacking
from ldpstream.agents.broker.patches import bounded_fetches
from ldpstream.agents.broker.unpacking import BATCH_BYTES, batch_bytes
from tests import fetched
from tests.attack.bombs import misnamed, specks, zeros
from tests.fetched import Consumer, Place, fetch_result
from tests.soak import seeds
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


TRIPS, TRIPS_1 = TopicPartition("trips", 0), TopicPartition("trips", 1)
CODECS = ("gzip", "snappy", "lz4", "zstd")
NAMES = {name: number for number, name in enumerate(("none", *CODECS))}


class Answering(fetched.Consumer):
    def fetch(self, *batches: bytes, partition: TopicPartition = TRIPS) -> None:
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


@pytest.mark.parametrize("codec", CODECS)
async def test_a_batch_up_to_the_bound_is_read_and_one_beyond_is_one_bad_message(
    codec: str, caplog: pytest.LogCaptureFixture
) -> None:
    overhead = len(batch("none", b"x" * 10_000)) - 10_000 - 61
    just = batch(codec, bytes(100_000 - overhead - 1))
    over = batch(codec, bytes(100_000))
    consumer = Answering(100_000)
    consumer.fetch(batch("none", b"first"), just, over, batch(codec, b"last"))
    found = (await consumer.poll())[TRIPS]
    assert [(r.offset, len(r.value)) for r in found if r.offset != 2] == [
        (0, 5),
        (1, 100_000 - overhead - 1),
        (3, 4),
    ]
    assert (found[2].value, found[2].timestamp) == (None, 1_000)
    assert "does not unpack to at most 100000 bytes" in caplog.text
    assert consumer.places[TRIPS].position == 4


def of_kind(kind: str) -> bytes:
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
    data = of_kind(kind)
    # Checksums do not match, and are not tested here.
    monkeypatch.setattr(PartitionRecords, "__init__", _unchecked)
    consumer = Answering()
    consumer.fetch(data, batch("lz4", b"honest"))
    read = [(record.offset, record.value) for record in (await consumer.poll())[TRIPS]]
    last = int.from_bytes(data[23:27])
    (offset, why), honest = read
    assert offset == last
    assert why is None
    assert honest == (last + 1, b"honest")


_made = PartitionRecords.__init__


def _unchecked(self: Any, *arguments: Any) -> None:
    _made(self, *arguments[:-2], False, arguments[-1])


async def test_records_before_an_unreadable_one_count() -> None:
    consumer = Answering()
    data = bytearray(batch("none", b"one", b"two", b"three"))
    at = data.index(b"trace", data.index(b"two"))
    data[at] = 0xFF
    struct.pack_into(">I", data, 17, calc_crc32c(bytes(data[21:])))
    consumer.fetch(bytes(data), batch("none", b"honest"))
    found = (await consumer.poll())[TRIPS]
    assert [(r.offset, r.value) for r in found] == [(0, b"one"), (2, None), (3, b"honest")]


async def test_a_compressed_message_of_the_old_formats_is_not_unpacked() -> None:
    builder: Any = LegacyRecordBatchBuilder(1, NAMES["gzip"], 1 << 20)
    builder.append(0, 1_000, None, b"value")
    plain: Any = LegacyRecordBatchBuilder(1, 0, 1 << 20)
    plain.append(0, 1_000, None, b"value")
    consumer = Answering()
    consumer.fetch(bytes(builder.build()), bytes(plain.build()))
    old, honest = (await consumer.poll())[TRIPS]
    assert (old.offset, old.value) == (0, None)
    assert (honest.offset, honest.value) == (1, b"value")


async def test_a_poll_ends_with_its_budget_and_other_partitions_have_their_turn() -> None:
    consumer = Answering()
    consumer.fetch(*[zeros("zstd", (4 << 20) - 100).data] * 20)
    consumer.fetch(*[batch("none", b"honest")] * 5, partition=TRIPS_1)
    first = await consumer.poll()
    assert [len(first[TRIPS]), TRIPS_1 in first] == [4, False]
    second = await consumer.poll()
    assert [record.offset for record in second[TRIPS_1]] == list(range(5))
    read = [record.offset for record in [*first[TRIPS], *second[TRIPS]]]
    while found := await consumer.poll():
        assert len(found[TRIPS]) <= 4
        read += [record.offset for record in found[TRIPS]]
    assert read == list(range(20))
    assert [consumer.places[TRIPS].position, consumer.places[TRIPS_1].position] == [20, 5]


@pytest.mark.slow
async def test_empty_records_count_against_the_budget() -> None:
    consumer = Answering()
    consumer.fetch(*[specks("zstd", 40_000).data] * 3)
    read = []
    for _ in range(20):
        found = (await consumer.poll()).get(TRIPS, [])
        assert len(found) <= bounded_fetches.POLL_BYTES // 512
        read += [record.offset for record in found]
    assert read == list(range(120_000))


def test_larger_requests_and_fetches_allow_larger_batches() -> None:
    assert batch_bytes({}) == BATCH_BYTES
    assert batch_bytes({"max_request_size": 1 << 20}) == BATCH_BYTES
    assert batch_bytes({"max_partition_fetch_bytes": 1 << 23}) == 1 << 23
    assert batch_bytes({"max_request_size": 1 << 24, "max_partition_fetch_bytes": 5}) == 1 << 24


CODES = range(5)
_CONTROL = 0x20
_ATTRIBUTES, _SUM, _SUM_START = 21, 17, 21


class Log:
    """Batches of a partition, and the aborted transactions in it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.end = rng, 0
        self.aborted: list[tuple[int, int, int]] = []
        self._batches: list[tuple[int, bytes]] = []

    def grow(self) -> None:
        kind = self.rng.choice(["plain", "plain", "gaps", "committed", "aborted"])
        if kind in {"committed", "aborted"}:
            producer, first = self.rng.randrange(1, 4), self.end
            for _ in range(self.rng.randint(1, 2)):
                self._batch(producer=producer)
            self._marker(producer, commit=kind == "committed")
            if kind == "aborted":
                self.aborted.append((producer, first, self.end))
        else:
            self._batch(gaps=kind == "gaps")

    def _batch(self, *, producer: int = -1, gaps: bool = False) -> None:
        builder = self._builder(self.rng.choice(CODES), producer)
        offset = 0
        for _ in range(self.rng.randint(1, 30)):
            offset += self.rng.choice([1, 5]) if gaps else 1
            headers = [("trace", b"1")] if self.rng.random() < 0.2 else []
            assert builder.append(offset - 1, 1_000, self._key(), self._value(), headers)
        self._write(bytearray(builder.build()), offset)

    def _marker(self, producer: int, *, commit: bool) -> None:
        builder = self._builder(0, producer)
        builder.append(0, 1_000, struct.pack(">HH", 0, commit), b"", [])
        batch = bytearray(builder.build())
        batch[_ATTRIBUTES + 1] |= _CONTROL
        self._write(batch, 1)

    def _builder(self, codec: int, producer: int) -> Any:
        transactional = producer >= 0
        return DefaultRecordBatchBuilder(2, codec, transactional, producer, 0, 0, 1 << 14)

    def _write(self, batch: bytearray, length: int) -> None:
        struct.pack_into(">q", batch, 0, self.end)
        struct.pack_into(">I", batch, _SUM, calc_crc32c_py(bytes(batch[_SUM_START:])))
        self.end += length
        self._batches.append((self.end, bytes(batch)))

    def _key(self) -> bytes | None:
        return self.rng.choice([None, b"key"])

    def _value(self) -> bytes | None:
        return self.rng.choice([None, b"", b"abc", self.rng.randbytes(self.rng.randint(1, 40))])

    def from_(self, start: int) -> bytes:
        """Return what a broker answers: whole batches, beginning with the offset's own."""
        return b"".join(batch for end, batch in self._batches if end > start)

    def aborted_from(self, start: int) -> list[tuple[int, int]]:
        """Return the aborted transactions that a broker sends with it: those that end later."""
        return [(producer, first) for producer, first, end in self.aborted if end > start]


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(20, soak=1_000))
async def test_batches_hold_what_aiokafka_reads(seed: int) -> None:
    rng = random.Random(seed)
    log = Log(rng)
    for _ in range(12):
        log.grow()
    start = rng.choice([0, rng.randrange(log.end)])
    data, aborted, plain = log.from_(start), log.aborted_from(start), Place(start)
    expected = fetch_result(TRIPS, data, plain, aborted).getall()

    consumer, found, places = Consumer(), [], []
    consumer.answered(TRIPS, data, start=start, aborted=aborted)
    while some := (await consumer.poll(rng.choice([1, 2, 5]))).get(TRIPS, []):
        found += some
        places.append(consumer.places[TRIPS].position)
        assert places[-1] > some[-1].offset
    assert found == expected
    assert places == sorted(places)
    assert consumer.places[TRIPS].position == plain.position == log.end
    # Another fetch may begin at any offset in between.
    for place in places[:1]:
        consumer.answered(TRIPS, log.from_(place), start=place, aborted=log.aborted_from(place))
        rest = (await consumer.poll()).get(TRIPS, [])
        assert rest == [record for record in expected if record.offset >= place]


def test_aiokafka_is_pinned_to_versions_whose_internals_are_known() -> None:
    project = Path(__file__).resolve().parents[3] / "pyproject.toml"
    assert "aiokafka>=0.14,<0.15" in tomllib.loads(project.read_text())["project"]["dependencies"]
