"""Seconds from the acknowledgement of a report to the estimates that include it.

A provisional estimate is the first published document whose n counts the report. There is one
partition, so that a document with n reports holds the first n that were sent, and one open window.
For a final the time runs from the acknowledged frame that closes the window to its final document,
over all partitions: how long a window stays open is configured and not a cost.
"""

import asyncio
import json
import tempfile
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from aiokafka import AIOKafkaConsumer, TopicPartition
from tests.brokers import Broker
from tests.fairness import trickle
from tests.lab import START_MS, Lab
from tests.processes import eventually

from benchmarks.engine.topic import PARTITIONS

FLUSH_AND_PUBLISH = "flush every 250 ms, publish.every = 500 ms"
_WAIT_SECONDS = 30.0


class Waiting:
    """Acknowledged messages, and those of them that a published document counts."""

    def __init__(self) -> None:
        self.took: list[float] = []
        self._published = 0
        self._since: deque[tuple[int, float]] = deque()

    def acknowledged(self, n: int) -> None:
        """Note that all of the first n reports have been acknowledged."""
        if n <= self._published:
            self.took.append(0.0)
        else:
            self._since.append((n, time.monotonic()))

    def published(self, n: int) -> None:
        """Note the arrival of a document of n reports."""
        self._published = n
        while self._since and self._since[0][0] <= n:
            self.took.append(time.monotonic() - self._since.popleft()[1])


@dataclass(frozen=True)
class Latency:
    """The latencies of many reports, or windows, in seconds."""

    what: str
    seconds: tuple[float, ...]

    def quantile(self, p: float) -> float:
        """Return a quantile."""
        return float(np.quantile(self.seconds, p))


def measure(running: Broker, *, seconds: float, windows: int) -> list[Latency]:
    """Measure provisional estimates at a low and at a moderate load, and finals."""
    found = []
    for what, size, every in (
        ("provisional, 10 singles/s", 1, 0.1),
        ("provisional, 500 singles/s", 1, 0.002),
        ("provisional, frames of 1,000, 100,000 reports/s", 1_000, 0.01),
    ):
        with tempfile.TemporaryDirectory() as folder:
            lab = Lab(running, Path(folder), partitions=1)
            took = asyncio.run(provisional(lab, size=size, every=every, seconds=seconds))
            found.append(Latency(what, tuple(took)))
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(running, Path(folder), partitions=PARTITIONS)
        found.append(Latency(f"final, {PARTITIONS} partitions", asyncio.run(_finals(lab, windows))))
    return found


async def _finals(lab: Lab, windows: int) -> tuple[float, ...]:
    name = lab.collection.name
    with lab.worker() as worker:
        # One collection plays both parts: there is no backlog, and its own windows are counted.
        seen = await trickle(lab, worker, slow=name, fast=name, backlog=1 << 62, windows=windows)
    return tuple(seen.finals)


async def provisional(lab: Lab, *, size: int, every: float, seconds: float) -> list[float]:
    """Send for some seconds; return how long each message took to be in a published document."""
    source = lab.collection.topics.source
    frames = [
        lab.collection.spec.frame_reports(lab.reports(size), times_ms=np.full(size, START_MS))
        for _ in range(16)
    ]
    waiting = Waiting()
    worker = lab.start_worker()
    try:
        await asyncio.to_thread(worker.wait_ready)
        async with lab.producer() as producer, lab.reader() as reader:
            reading = asyncio.create_task(_read(reader, lab, waiting))
            begun, number, tasks = time.monotonic(), 0, []
            while time.monotonic() - begun < seconds:
                number += 1
                await asyncio.sleep(max(0.0, begun + number * every - time.monotonic()))
                sent = await producer.send(source, frames[number % 16], partition=0)
                tasks.append(asyncio.create_task(_acknowledged(sent, number * size, waiting)))
            await asyncio.gather(*tasks)
            all_published = partial(_all_published, waiting, number)
            await eventually(all_published, seconds=_WAIT_SECONDS)
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
    finally:
        worker.kill()
    return waiting.took


def _all_published(waiting: Waiting, messages: int) -> bool:
    return len(waiting.took) >= messages


async def _acknowledged(sent: "asyncio.Future[object]", n: int, waiting: Waiting) -> None:
    await sent
    waiting.acknowledged(n)


async def _read(reader: AIOKafkaConsumer, lab: Lab, waiting: Waiting) -> None:
    partition = TopicPartition(lab.collection.topics.estimates, 0)
    reader.assign([partition])
    await reader.seek_to_beginning(partition)
    while True:
        for record in (await reader.getmany(timeout_ms=20)).get(partition, []):
            assert record.value is not None
            waiting.published(json.loads(record.value)["n"])
