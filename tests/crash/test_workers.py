"""Workers killed with -9, or stopped beyond the session timeout and woken: counts stay exact.

The long form is `python -m benchmarks.resilience.faults`.
"""

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.broker.conftest import on_kafka, on_one_broker
from tests.broker.flow import Flow
from tests.brokers import Broker
from tests.lab import COMPACTED, Lab
from tests.processes import PATIENCE_SECONDS, Worker

pytestmark = [pytest.mark.broker, pytest.mark.crash]
STOP_SECONDS = 9.0
"""Longer than the group's session timeout of 6 s: the stopped worker wakes as a zombie."""
Disturb = Callable[[Lab, list[Worker], random.Random], Awaitable[None]]


async def kill(lab: Lab, workers: list[Worker], rng: random.Random) -> None:
    number = rng.randrange(len(workers))
    workers[number].kill()
    workers[number] = lab.start_worker()
    # Now and then it is killed again before it has come up.
    if rng.random() < 0.75:
        await asyncio.to_thread(workers[number].wait_ready)


async def stop(lab: Lab, workers: list[Worker], rng: random.Random) -> None:
    process = rng.choice(workers).process
    process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(STOP_SECONDS)
    process.send_signal(signal.SIGCONT)


async def run(lab: Lab, disturb: Disturb, *, times: int, workers: int = 2, seed: int) -> None:
    """Count what devices send while workers are disturbed, and check every count and copy."""
    rng = random.Random(seed)
    running = [lab.start_worker() for _ in range(workers)]
    try:
        # Only the first one: others may join under way.
        await asyncio.to_thread(running[0].wait_ready)
        async with lab.producer() as producer:
            flow = Flow(producer, [lab], garbage=True)
            async with flow.run():
                for _ in range(times):
                    await asyncio.sleep(rng.uniform(0.2, 2.0))
                    await disturb(lab, running, rng)
        await lab.close(flow.end_ms)
        await lab.check_exact()
        heads = await lab.heads()
        assert sum(head.n for head in heads) == lab.ledger.n
        assert sum(head.late + head.lost for head in heads) == 0
        assert sum(sum(head.rejected.values()) for head in heads) == flow.garbage
        copies = [dict(c.headers) for c in await lab.records(lab.collection.topics.rejected)]
        assert len({(one["partition"], one["offset"]) for one in copies}) == flow.garbage
        assert all(worker.process.poll() is None for worker in running), "one died by itself"
    finally:
        for worker in running:
            worker.kill()


@on_one_broker
async def test_one_of_two_workers_is_killed(lab: Lab) -> None:
    await run(lab, kill, times=2, seed=2)


@on_kafka  # its sessions are what users have
async def test_one_of_two_workers_becomes_a_zombie(lab: Lab) -> None:
    await run(lab, stop, times=1, seed=3)


@on_kafka
async def test_a_worker_with_a_store_is_killed(running: Broker, tmp_path: Path) -> None:
    await run(Lab(running, tmp_path, store="rocksdb"), kill, times=1, workers=1, seed=5)


@on_kafka  # the embedded one never compacts
async def test_workers_are_killed_while_the_changelog_is_compacted(lab: Lab) -> None:
    changelog = lab.collection.topics.changelog
    await lab.create(changelog, partitions=lab.collection.partitions, configs=COMPACTED)
    await run(lab, kill, times=3, seed=4)
    # Killed workers have deleted few tombstones, and the broker compacts when it gets to it.
    with lab.worker():
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await share_left(lab, changelog) > 0.8:  # noqa: ASYNC110 (the broker sends no event)
                await asyncio.sleep(0.5)


async def share_left(lab: Lab, topic: str) -> float:
    """Return the share of a topic's records that compaction has left."""
    records = await lab.records(topic)
    last = {record.partition: record.offset for record in records}
    return len(records) / sum(offset + 1 for offset in last.values())
