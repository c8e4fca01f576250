"""Small batches that unpack to much, and batches that aiokafka cannot read, in a source topic.

Devices that write to Kafka themselves choose how their batches are compressed. These batches are
built byte by byte, without the product's code.
"""

import asyncio
import struct
import time
import tomllib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import cramjam
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError
from aiokafka.record.util import calc_crc32c

from tests.attack.stand import COLLECTION, Attack, Outcome, Stand, resident_bytes
from tests.brokers import Broker
from tests.processes import PATIENCE_SECONDS, Worker

_MIB: Final = 1 << 20
_MOST_GROWTH: Final = 128 * _MIB
_CODECS: Final = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
_HONEST: Final = 100


@dataclass(frozen=True)
class Batch:
    """A record batch as it goes over the wire, and what aiokafka's producer asks of one."""

    data: bytes

    def close(self) -> None: ...

    def closed(self) -> bool:
        return True

    def record_count(self) -> int:
        return 1

    def size(self) -> int:
        return len(self.data)

    def _build(self) -> bytes:
        return self.data


def zeros(codec: str, size: int) -> Batch:
    """Return a batch of one record whose value is `size` zeros."""
    body = b"\x00\x00\x00\x01" + _varint(size)
    head = _varint(len(body) + size + 1) + body
    return _batch(_pack(codec, head, size, b"\x00"), codec=_CODECS[codec], records=1)


def specks(codec: str, records: int) -> Batch:
    """Return a batch of many records of seven bytes, without a key and without a value."""
    packed = _pack(codec, b"", 0, b"".join(map(_speck, range(records))))
    return _batch(packed, codec=_CODECS[codec], records=records)


def misnamed() -> Batch:
    """Return a batch of one record with a header whose name is not UTF-8."""
    body = b"\x00\x00\x00\x01" + _varint(5) + b"value" + _varint(1) + _varint(1) + b"\xff\x01"
    return _batch(_varint(len(body)) + body, codec=0, records=1)


def _speck(place: int) -> bytes:
    body = b"\x00\x00" + _varint(place) + b"\x01\x01\x00"
    return _varint(len(body)) + body


def _varint(number: int) -> bytes:
    left, made = number << 1, bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*made, left])


def _batch(records_packed: bytes, *, codec: int, records: int) -> Batch:
    now = int(time.time() * 1000)
    after = struct.pack(">hiqqqhii", codec, records - 1, now, now, -1, -1, -1, records)
    after += records_packed
    head = struct.pack(">qiibI", 0, len(after) + 9, -1, 2, calc_crc32c(after))
    return Batch(head + after)


def _pack(codec: str, head: bytes, zeros: int, replica: bytes) -> bytes:
    """Return `head`, this many zero bytes and `replica`, packed without making them all."""
    parts = [head, *[bytes(min(_MIB, zeros - at)) for at in range(0, zeros, _MIB)], replica]
    if codec == "gzip":
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        return b"".join(map(packer.compress, parts)) + packer.flush()
    if codec == "snappy":
        return bytes.fromhex("82534e41505059000000000100000001") + b"".join(_blocks(parts))
    if codec == "lz4":
        stream = cramjam.lz4.Compressor(level=9, content_checksum=False, block_linked=False)
    else:
        stream = cramjam.zstd.Compressor()
    for part in parts:
        stream.compress(part)
    return bytes(stream.finish())


def _blocks(parts: Sequence[bytes]) -> Iterator[bytes]:
    for part in filter(None, parts):
        block = bytes(cramjam.snappy.compress_raw(part))
        yield struct.pack(">i", len(block)) + block


async def produce(broker: Broker, topic: str, batches: Sequence[Batch]) -> list[str]:
    """Write batches to partition 0; returns the names of the errors that the broker answered."""
    producer = AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap, max_request_size=8 * _MIB, **broker.security
    )
    await producer.start()
    refused = []
    try:
        for batch in batches:
            try:
                await (await producer.send_batch(batch, topic, partition=0))
            except KafkaError as error:
                refused.append(type(error).__name__)
    finally:
        await producer.stop()
    return refused


async def _operators_topic(broker: Broker, topic: str) -> None:
    """Create a source as an operator does who leaves compression to producers."""
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap, **broker.security)
    await admin.start()
    try:
        configs = {"compression.type": "producer"}
        await admin.create_topics([NewTopic(topic, 1, 1, topic_configs=configs)])
        async with asyncio.timeout(PATIENCE_SECONDS):
            while topic not in await admin.list_topics():  # noqa: ASYNC110 (the broker sends no event)
                await asyncio.sleep(0.05)
    finally:
        await admin.close()


async def _thrown(
    stand: Stand, make: Callable[[bool], Sequence[Batch]], *, product: bool
) -> Outcome:
    """Write batches, then honest reports, to a source that a worker reads."""
    file = stand.configure({"trips": COLLECTION})
    topic = tomllib.loads(file.read_text())["collection"]["trips"]["topic"]
    if not product:
        await _operators_topic(stand.broker, topic)
    with stand.serving("worker", "-c", str(file)) as worker:
        return await _judged(stand, file, topic, make, worker)


async def _judged(
    stand: Stand,
    file: Path,
    topic: str,
    make: Callable[[bool], Sequence[Batch]],
    worker: Worker,
) -> Outcome:
    pid = worker.process.pid
    before = resident_bytes(pid)
    batches = make(stand.short)
    refused = await produce(stand.broker, topic, batches)
    honest = b"".join(b"%d\n" % (number % 12) for number in range(_HONEST))
    sent = stand.run("send", "trips", "-c", str(file), stdin=honest)
    counted = 0.0
    deadline = time.monotonic() + PATIENCE_SECONDS
    while counted < _HONEST and time.monotonic() < deadline:
        await asyncio.sleep(0.5)
        try:
            counted = worker.metrics(
                "ldpstream_reports_total", collection="trips", result="counted"
            )
            grown = resident_bytes(pid) - before
        except (OSError, StopIteration):
            return Outcome(False, "the process has ended")
    held = counted == _HONEST and grown < _MOST_GROWTH and not sent.returncode
    figure = (
        f"{sum(map(Batch.size, batches)) / 1000:.1f} kB, {len(refused)} of {len(batches)} refused "
        f"by the broker: {grown / _MIB:+.0f} MiB, {counted:.0f} of {_HONEST} honest reports counted"
    )
    return Outcome(held, figure)


async def unwarned(stand: Stand) -> Outcome:
    """Check a source that an operator has created, and then one of the product's."""
    warned = []
    for product in (False, True):
        file = stand.configure({"trips": COLLECTION})
        topic = tomllib.loads(file.read_text())["collection"]["trips"]["topic"]
        if product:
            stand.run("send", "trips", "-c", str(file), stdin=b"3\n")
        else:
            await _operators_topic(stand.broker, topic)
        said = stand.run("check", "-c", str(file)).stdout.decode()
        warned.append(f"{topic}: warning: compression.type=producer" in said)
    figure = f"warned of the operator's topic: {warned[0]}; of the product's: {warned[1]}"
    return Outcome(warned == [True, False], figure)


def _each(short: bool) -> Sequence[Batch]:
    scale = 1 if short else 4
    return [
        zeros("zstd", scale * 100 * _MIB),
        zeros("gzip", scale * 100 * _MIB),
        zeros("lz4", min(scale, 2) * 100 * _MIB),
        zeros("snappy", 20 * _MIB),
    ]


def _swarm(short: bool) -> Sequence[Batch]:
    return [zeros("zstd", 4 * _MIB - 100)] * (150 if short else 500)


def _dust(short: bool) -> Sequence[Batch]:
    return [specks("zstd", 500_000)] * (3 if short else 10)


def _misnamed(_: bool) -> Sequence[Batch]:
    return [misnamed()]


ATTACKS = (
    Attack(
        "bomb-codecs-operators-topic",
        "batches that unpack to hundreds of MB cost a worker at most 128 MiB",
        partial(_thrown, make=_each, product=False),
    ),
    Attack(
        "bomb-codecs-own-topic",
        "the same in a topic that the worker has created",
        partial(_thrown, make=_each, product=True),
    ),
    Attack(
        "bomb-swarm",
        "many batches that unpack to 4 MiB each cost it no more",
        partial(_thrown, make=_swarm, product=False),
    ),
    Attack(
        "bomb-dust",
        "batches of half a million empty records cost it no more",
        partial(_thrown, make=_dust, product=False),
    ),
    Attack(
        "bomb-header-name",
        "a record whose header has no readable name stops nobody",
        partial(_thrown, make=_misnamed, product=False),
    ),
    Attack(
        "bomb-unwarned",
        "check warns of a source that keeps batches as they were compressed",
        unwarned,
    ),
)
