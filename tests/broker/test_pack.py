"""Packed messages on a real broker: packers and workers come and go, counts stay exact."""

import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from ldpstream.agents.state.packed import HEAD, decode_packed
from tests.broker.asking import counted
from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.broker


@pytest.fixture
def lab(running: Broker, tmp_path: Path) -> Lab:
    return Lab(running, tmp_path, partitions=2, extra='input = "frames"')


async def send(lab: Lab, producer: AIOKafkaProducer, n: int, *, window: int = 0) -> None:
    """Send single reports, and now and then something else."""
    first_ms = START_MS + window * WINDOW_MS
    topic = lab.collection.topics.source
    for number in range(n):
        frame = lab.frame(1, first_ms=first_ms, last_ms=first_ms + WINDOW_MS - 1)
        await producer.send(topic, frame, partition=number % 2)
        if number % 50 == 0:
            value = [b"short", b"", b"no frame"][number // 50 % 3]
            await producer.send(topic, value, partition=number % 2)
    await producer.flush()


async def test_singles_are_packed_and_counted(lab: Lab) -> None:
    with lab.packer() as packer, lab.worker() as worker:
        async with lab.producer() as producer:
            await send(lab, producer, 500)
            await eventually(lambda: counted(worker) == 500)
            await send(lab, producer, 500, window=1)
        await lab.close(START_MS + 2 * WINDOW_MS)
        await lab.check_exact()
        taken = worker.metrics(
            "ldpstream_packed_messages_total", collection="trips", result="taken"
        )
        assert taken > 0
        assert packer.terminate() == 0
        assert worker.terminate() == 0
    heads = await lab.heads()
    assert sum(sum(head.rejected.values()) for head in heads) == 20
    packed = await lab.records(lab.collection.topics.frames or "")
    # However slowly they came, many share a message.
    assert 0 < len(packed) < 1_020 / 2
    assert [head.frames for head in heads] == [
        sum(record.partition == p for record in packed) for p in range(2)
    ]


@on_kafka  # nothing here depends on the broker
async def test_input_is_switched_and_packers_stay_away(lab: Lab) -> None:
    frames = lab.file.read_text()
    topic = frames.replace('input = "frames"', "")
    async with lab.producer() as producer:
        lab.file.write_text(topic)
        with lab.worker() as worker:
            await send(lab, producer, 200)
            await eventually(lambda: counted(worker) == 200)
        lab.file.write_text(frames)
        with lab.packer() as packer, lab.worker() as worker:
            await send(lab, producer, 200)
            await eventually(lambda: counted(worker) == 400)
            # Without a packer the source is read itself, and partitions are not held up.
            packer.kill()
            await send(lab, producer, 200)
            await eventually(lambda: counted(worker) == 600)
            assert worker.metrics("ldpstream_reread_offsets_total") > 0
            await lab.delete(lab.collection.topics.frames or "")
        lab.file.write_text(topic)
        with lab.worker() as worker:
            await send(lab, producer, 200, window=1)
            await eventually(lambda: counted(worker) == 800)
            await lab.close(START_MS + 2 * WINDOW_MS)
            await lab.check_exact()


@on_kafka  # the embedded one has no codecs
async def test_what_any_producer_wrote_is_packed_byte_for_byte(lab: Lab) -> None:
    source, frames = lab.collection.topics.source, lab.collection.topics.frames or ""
    await lab.create(source, partitions=2)
    headers = [("trace", b"1")]
    with lab.packer() as packer:
        for number, codec in enumerate([None, "gzip", "snappy", "lz4", "zstd"]):
            async with lab.producer(compression_type=codec or "none") as producer:
                for value in (b"x" * 500, b"", bytes([number]) * 30, None):
                    await producer.send(source, value, key=b"k", partition=0, headers=headers)
                await producer.flush()
            async with lab.transactional_producer() as producer:
                await producer.begin_transaction()
                for partition in range(2):
                    await producer.send(source, bytes([number]) * 20, partition=partition)
                await (
                    producer.abort_transaction() if number % 2 else producer.commit_transaction()
                )
        written = {
            (r.partition, r.offset, r.value) for r in await lab.records(source, committed_only=True)
        }

        async def packed() -> set[tuple[int, int, bytes | None]]:
            return {
                (record.partition, *one)
                for record in await lab.records(frames)
                for one in decode_packed(
                    record.value, partition=record.partition, topic_id=topic_id(record.value)
                ).records
            }

        found = await packed()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while found < written:
                await asyncio.sleep(0.1)
                found = await packed()
        assert packer.terminate() == 0
    assert await packed() == written
    assert len(written) == 5 * 4 + 3 * 2


def topic_id(value: bytes | None) -> bytes:
    """Return the source topic's id that a packed message tells."""
    return bytes(HEAD.unpack_from(value or b"")[4])
