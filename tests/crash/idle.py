"""Windows that close by idleness while partitions fall silent and workers come and go.

Devices of some partitions fall silent for longer than `idle`, again and again, and what they send
afterwards is on time. So nothing may be late, whoever reads it and however often the group
rebalances: a partition that is called idle with messages unread would make them late.
"""

import asyncio
import random
import time
from dataclasses import dataclass, field

from aiokafka import AIOKafkaProducer

from tests.lab import Lab
from tests.processes import Worker

IDLE_SECONDS = 5.0
WINDOW = 'grace = "5s", idle = "5s", future = "5s"'
_STEP_SECONDS = 0.05


@dataclass
class Devices:
    """Send frames dated now to partitions that are busy for some seconds, then silent for more."""

    lab: Lab
    rng: random.Random
    done: asyncio.Event = field(default_factory=asyncio.Event)
    _turns: list[float] = field(default_factory=list)
    _busy: list[bool] = field(default_factory=list)

    async def run(self, producer: AIOKafkaProducer) -> None:
        """Send until `done`, to as many partitions as the source then has."""
        topic = self.lab.collection.topics.source
        while not self.done.is_set():
            for partition in sorted(await producer.partitions_for(topic)):
                if self._sends(partition):
                    now_ms = time.time_ns() // 1_000_000
                    frame = self.lab.frame(20, first_ms=now_ms - 50, last_ms=now_ms)
                    await producer.send(topic, frame, partition=partition)
            await asyncio.sleep(_STEP_SECONDS)
        await producer.flush()

    def _sends(self, partition: int) -> bool:
        now, rng = time.monotonic(), self.rng
        if partition == len(self._turns):
            self._turns.append(now + rng.uniform(0, 6))
            self._busy.append(True)
        if now > self._turns[partition]:
            self._busy[partition] = not self._busy[partition]
            longer = 1.0 if self._busy[partition] else 1.2
            self._turns[partition] = now + longer * rng.uniform(1.3, 1.8) * IDLE_SECONDS
        return self._busy[partition]


async def run(lab: Lab, *, seconds: float, seed: int, grown: int | None = None) -> None:
    """Count for so long with two workers, and compare every final with the ledger.

    One worker is ended and started again, then one is killed, in turn, with pauses of a quarter of
    `seconds` on average; in the middle the source grows to `grown` partitions, and both workers are
    restarted.

    Raises:
        AssertionError: where a final differs, a report is late, or a worker ends by itself.
    """
    rng = random.Random(seed)
    fleet: list[Worker] = []
    try:
        fleet += [lab.start_worker(), lab.start_worker()]
        await asyncio.to_thread(fleet[0].wait_ready)
        async with lab.producer() as producer:
            devices = Devices(lab, rng)
            sending = asyncio.create_task(devices.run(producer))
            await _disturb(lab, fleet, rng, seconds=seconds / 2)
            if grown is not None:
                await lab.add_partitions(grown)
                await producer.client.force_metadata_update()
                for number in range(len(fleet)):
                    await _restart(lab, fleet, number)
            await _disturb(lab, fleet, rng, seconds=seconds / 2)
            devices.done.set()
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


async def _disturb(lab: Lab, fleet: list[Worker], rng: random.Random, *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    for kill in (False, True):
        number = rng.randrange(len(fleet))
        await asyncio.sleep(rng.uniform(0.3, 0.7) * seconds / 2)
        if kill:
            fleet[number].kill()
            fleet[number] = lab.start_worker()
        else:
            await _restart(lab, fleet, number)
    await asyncio.sleep(max(0.0, deadline - time.monotonic()))


async def _restart(lab: Lab, fleet: list[Worker], number: int) -> None:
    assert await asyncio.to_thread(fleet[number].terminate) == 0
    fleet[number].kill()
    fleet[number] = lab.start_worker()
