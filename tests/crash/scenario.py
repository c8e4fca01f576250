"""A stream of known reports, and workers that are killed or stopped while it is counted.

Event time rises within every partition, so without an order to close nothing is late but what is
made so; the ledger therefore knows every report's outcome in advance.
"""

import asyncio
import random
import signal
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from aiokafka import AIOKafkaProducer

from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import Worker

WINDOWS = 5
STOP_SECONDS = 9.0
"""Longer than the group's session timeout of 6 s: the stopped worker wakes as a zombie."""


@dataclass
class Sent:
    """What was sent besides the reports of the ledger."""

    late: int = 0
    rejected: int = 0


class Stream:
    """Sends frames to all partitions, evenly over the time that the disturbances take."""

    def __init__(self, lab: Lab, producer: AIOKafkaProducer, *, reports: int, a_frame: int) -> None:
        self.sent = Sent()
        self._lab = lab
        self._producer = producer
        self._frames = reports // a_frame
        self._a_frame = a_frame
        self._rng = random.Random(reports)
        self._done = 0

    async def run(self, disturbances: "asyncio.Task[None]", *, frames_a_second: float) -> None:
        """Send until the disturbances are over, then what is left at once.

        The last tenth of the frames is kept until then, so that the stream outlasts them.
        """
        kept = self._frames // 10
        while not disturbances.done():
            if self._done < self._frames - kept:
                await self._step()
            await asyncio.sleep(1 / frames_a_second)
        while self._done < self._frames:
            await self._step()
        await self._producer.flush()

    async def _step(self) -> None:
        lab, topics = self._lab, self._lab.collection.topics
        partition = self._done % lab.collection.partitions
        window = self._done * WINDOWS // self._frames
        first_ms = START_MS + window * WINDOW_MS
        frame = lab.frame(self._a_frame, first_ms=first_ms, last_ms=first_ms + WINDOW_MS - 1)
        await self._producer.send(topics.source, frame, partition=partition)
        self._done += 1
        if self._rng.random() < 0.05:
            await self._producer.send(topics.source, b"no frame", partition=partition)
            self.sent.rejected += 1
        if window >= 1 and self._rng.random() < 0.05:
            # A partition sees windows in order, so one that it has left behind is closed there.
            late = lab.collection.spec.frame_reports(
                lab.reports(3), times_ms=np.full(3, first_ms - WINDOW_MS)
            )
            await self._producer.send(topics.source, late, partition=partition)
            self.sent.late += 3


async def run(
    lab: Lab,
    *,
    disturbance: str,
    times: int,
    workers: int,
    reports: int,
    a_frame: int = 100,
    seed: int = 0,
) -> Sent:
    """Count a stream while workers are disturbed `times` times, and check every count.

    `disturbance` is `kill` (kill -9 and start over) or `stop` (SIGSTOP beyond the session timeout,
    then SIGCONT).
    """
    rng = random.Random(seed)
    with ExitStack() as stack:
        fleet = [lab.start_worker() for _ in range(workers)]
        stack.callback(lambda: [worker.kill() for worker in fleet])
        # Only the first one: others may join under way.
        await asyncio.to_thread(fleet[0].wait_ready)
        disturb = _kill if disturbance == "kill" else _stop

        async def disturb_all() -> None:
            for _ in range(times):
                await asyncio.sleep(rng.uniform(0.2, 2.0))
                await disturb(lab, fleet, rng)

        async with lab.producer() as producer:
            stream = Stream(lab, producer, reports=reports, a_frame=a_frame)
            disturbances = asyncio.create_task(disturb_all())
            estimate_seconds = times * (5.0 if disturbance == "kill" else STOP_SECONDS + 2)
            await stream.run(disturbances, frames_a_second=reports / a_frame / estimate_seconds)
            await disturbances
        await lab.close(START_MS + WINDOWS * WINDOW_MS)
        await lab.check_exact()
        await _check_outcomes(lab, stream.sent)
        assert all(worker.process.poll() is None for worker in fleet), "a worker died by itself"
    return stream.sent


async def _kill(lab: Lab, fleet: list[Worker], rng: random.Random) -> None:
    number = rng.randrange(len(fleet))
    fleet[number].kill()
    fleet[number] = lab.start_worker()
    # Now and then it is killed again before it has come up.
    if rng.random() < 0.75:
        await asyncio.to_thread(fleet[number].wait_ready)


async def _stop(lab: Lab, fleet: list[Worker], rng: random.Random) -> None:
    worker = rng.choice(fleet)
    worker.process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(STOP_SECONDS)
    worker.process.send_signal(signal.SIGCONT)


async def _check_outcomes(lab: Lab, sent: Sent) -> None:
    """Late and rejected are counted once each; their copies arrive at least once."""
    heads = await lab.heads()
    assert sum(head.late for head in heads) == sent.late
    assert sum(sum(head.rejected.values()) for head in heads) == sent.rejected
    assert sum(head.n for head in heads) == lab.ledger.n
    for topic, least in (("late", sent.late / 3), ("rejected", sent.rejected)):
        copies = await lab.records(getattr(lab.collection.topics, topic))
        headers = [dict(copy.headers) for copy in copies]
        assert len({(h["partition"], h["offset"]) for h in headers}) == least
