"""Producers as devices have them: every codec, idempotent, with transactions kept or aborted."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS

pytestmark = [
    pytest.mark.broker,
    on_kafka,  # see test_embedded.py
]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


# The default, lz4, is written by all other tests; test_clients chooses every codec.
@pytest.mark.parametrize("codec", ["none", "zstd"])
async def test_a_worker_reads_all_codecs_and_writes_each(
    running: Broker, tmp_path: Path, codec: str
) -> None:
    broker = Broker("kafka", running.bootstrap, {"compression_type": codec})
    lab = Lab(broker, tmp_path)
    with lab.worker() as worker:
        for number, used in enumerate(CODECS):
            async with lab.producer(
                compression_type=used, enable_idempotence=number % 2 == 0
            ) as producer:
                for partition in range(4):
                    # All alike: what compression does not shrink would be sent as it is.
                    reports, times_ms = np.full(500, partition), np.full(500, START_MS)
                    lab.ledger.add(reports, times_ms)
                    value = lab.collection.spec.frame_reports(reports, times_ms=times_ms)
                    await producer.send(lab.collection.topics.source, value, partition=partition)
                await producer.flush()
        await lab.close(START_MS + WINDOW_MS)
        await lab.check_exact()
        assert worker.terminate() == 0
        assert worker.errors() == ""
    assert lab.ledger.n == 10_000


async def test_interleaved_transactions_before_and_while_a_worker_runs(lab: Lab) -> None:
    await lab.create(lab.collection.topics.source, partitions=4)
    await _transactions(lab, first=0, last=30)
    with lab.worker() as worker:
        await _transactions(lab, first=30, last=60)
        await lab.close(START_MS + WINDOW_MS)
        await lab.check_exact()
        assert worker.terminate() == 0
        assert worker.errors() == ""
    heads = await lab.heads()
    # The markers that end transactions have offsets too: neither lost nor late nor rejected.
    assert sum(head.lost + head.late + sum(head.rejected.values()) for head in heads) == 0
    assert sum(head.next for head in heads) > len(await lab.records(lab.collection.topics.source))


async def _transactions(lab: Lab, *, first: int, last: int) -> None:
    """Two producers, each with a transaction open while the other's ends; a third has none."""
    source, spec = lab.collection.topics.source, lab.collection.spec
    aborted = spec.frame([1] * 10, times_ms=[START_MS] * 10)
    async with (
        lab.transactional_producer("-one") as one,
        lab.transactional_producer("-other") as other,
        lab.producer() as plain,
    ):
        await other.begin_transaction()
        for number in range(first, last):
            committed = number % 3 != 0
            await one.begin_transaction()
            for partition in (number % 4, (number + 1) % 4):
                value = lab.frame(10, first_ms=START_MS, last_ms=START_MS) if committed else aborted
                await one.send(source, value, partition=partition)
                await other.send(source, aborted, partition=partition)
                await plain.send_and_wait(
                    source, lab.frame(3, first_ms=START_MS, last_ms=START_MS), partition=partition
                )
            await (one.commit_transaction() if committed else one.abort_transaction())
            if number % 5 == 4:
                await other.abort_transaction()
                await other.begin_transaction()
        await other.abort_transaction()


async def test_an_order_to_close_waits_for_an_open_transaction(lab: Lab) -> None:
    source = lab.collection.topics.source
    with lab.worker() as worker:
        async with lab.transactional_producer() as open_one, lab.producer() as plain:
            await open_one.begin_transaction()
            for partition in range(4):
                value = lab.frame(10, first_ms=START_MS, last_ms=START_MS)
                await open_one.send(source, value, partition=partition)
                await open_one.flush()
                value = lab.frame(5, first_ms=START_MS, last_ms=START_MS)
                await plain.send_and_wait(source, value, partition=partition)
            await lab.close(START_MS + WINDOW_MS)
            await asyncio.sleep(2)
            assert await lab.finals() == {}
            # Its worker has gone and come back in the meantime.
            worker.process.kill()
            with lab.worker() as other:
                await asyncio.sleep(1)
                assert await lab.finals() == {}
                await open_one.commit_transaction()
                await lab.check_exact()
                assert other.terminate() == 0
                assert other.errors() == ""
