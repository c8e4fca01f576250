"""Windows that close by idleness while workers come and go: every final equals the ledger.

Devices of some partitions fall silent for longer than `idle`, again and again, and what they send
afterwards is on time. So nothing may be late, whoever reads it and however often the group
rebalances: a partition that is called idle with messages unread would make them late.
"""

import asyncio
import random
import time
from pathlib import Path

import pytest

from tests.brokers import Broker
from tests.lab import Lab
from tests.processes import Worker

pytestmark = [
    pytest.mark.broker,
    pytest.mark.crash,
    pytest.mark.parametrize("running", ["kafka"], indirect=True),
]
PARTITIONS = 6
SECONDS = 24.0


async def send(lab: Lab, rng: random.Random, done: asyncio.Event) -> None:
    """Send frames dated now to partitions that are busy for some seconds, then silent for more."""
    turns = [time.monotonic() + rng.uniform(0, 6) for _ in range(PARTITIONS)]
    busy = [True] * PARTITIONS
    async with lab.producer() as producer:
        while not done.is_set():
            for p in range(PARTITIONS):
                if time.monotonic() > turns[p]:
                    busy[p] = not busy[p]
                    turns[p] = time.monotonic() + rng.uniform(6.5, 9) * (1 if busy[p] else 1.2)
                if busy[p]:
                    now_ms = time.time_ns() // 1_000_000
                    frame = lab.frame(20, first_ms=now_ms - 50, last_ms=now_ms)
                    await producer.send(lab.collection.topics.source, frame, partition=p)
            await asyncio.sleep(0.05)
        await producer.flush()


async def disturb(lab: Lab, fleet: list[Worker]) -> None:
    """End one worker and start it again, then do so with the other one, killed."""
    await asyncio.sleep(SECONDS / 4)
    assert await asyncio.to_thread(fleet[0].terminate) == 0
    fleet[0].kill()
    fleet[0] = lab.start_worker()
    await asyncio.sleep(SECONDS / 4)
    fleet[1].kill()
    fleet[1] = lab.start_worker()
    await asyncio.sleep(SECONDS / 2)


async def test_every_final_equals_the_ledger_and_nothing_is_late(
    running: Broker, tmp_path: Path
) -> None:
    lab = Lab(
        running, tmp_path, partitions=PARTITIONS, window='grace = "5s", idle = "5s", future = "5s"'
    )
    fleet: list[Worker] = []
    try:
        fleet += [lab.start_worker(), lab.start_worker()]
        await asyncio.to_thread(fleet[0].wait_ready)
        done = asyncio.Event()
        sending = asyncio.create_task(send(lab, random.Random(1), done))
        await disturb(lab, fleet)
        done.set()
        await sending
        # No order to close: all of them fall idle, and time goes on.
        await lab.check_exact()
        heads = await lab.heads()
        assert sum(head.late for head in heads) == 0
        assert sum(head.n for head in heads) == lab.ledger.n
        finals = await lab.finals()
        assert sum(documents[0]["late"] for documents in finals.values()) == 0
        assert all(worker.process.poll() is None for worker in fleet), "a worker died by itself"
    finally:
        for worker in fleet:
            worker.kill()
