"""Two workers against one, and a worker that owns many partitions."""

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.brokers import Broker
from tests.lab import Lab
from tests.processes import Worker

from benchmarks.engine.backlog import counted, metric, until
from benchmarks.engine.cost import MEASURED_CORE, on_core
from benchmarks.engine.topic import fill
from benchmarks.state.lab import peak_bytes
from ldpstream.agents.broker.topics import TopicError, declare_topics

SHARED_PARTITIONS = 8
_READY_SECONDS = 180.0
_POLL_SECONDS = 0.1
_SETTLED_SECONDS = 8.0
"""Seconds until a steady load has reached all stages: a round of flushes takes some seconds."""


@dataclass(frozen=True)
class Together:
    """What this many workers counted in a second, and used per report, on both cores."""

    workers: int
    reports: int
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Many:
    """The cost of a worker that owns many partitions, idle and then with a small load."""

    partitions: int
    ready_seconds: float
    ready_cpu_seconds: float
    idle_cores: float
    busy_cores: float
    sent_a_second: float
    counted_a_second: float
    behind_seconds: float
    """At the end, the time since the newest counted report was sent."""
    peak_bytes: int


def share(running: Broker, *, reports: int) -> list[Together]:
    """Count one backlog with one worker, and an equal one with two."""
    return [_together(running, workers, reports) for workers in (1, 2)]


def _together(running: Broker, workers: int, reports: int) -> Together:
    """Measure from the moment at which all workers are ready, while there is a backlog."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        lab = Lab(running, Path(folder), partitions=SHARED_PARTITIONS)
        # The source is still empty: the group settles before the backlog comes.
        asyncio.run(lab.create(lab.collection.topics.source, partitions=SHARED_PARTITIONS))
        started: list[Worker] = []
        for _ in range(workers):
            started.append(lab.start_worker())
            stack.callback(started[-1].kill)
        for worker in started:
            worker.wait_ready()
        shares = [SHARED_PARTITIONS // workers] * workers
        until(lambda: _owned(started) == shares, every_seconds=_POLL_SECONDS)
        start: list[tuple[float, float]] = []
        asyncio.run(
            fill(
                lab,
                reports,
                1,
                transaction=True,
                before_commit=lambda: start.append((_cpu(started), time.perf_counter())),
            )
        )
        ((cpu, begun),) = start
        while sum(map(counted, started)) < reports:
            time.sleep(_POLL_SECONDS)
        seconds = time.perf_counter() - begun
        return Together(workers, reports, seconds, _cpu(started) - cpu)


def _owned(workers: Sequence[Worker]) -> list[int]:
    path = "/api/collections/trips/status"
    return [
        sum(1 for partition in worker.get(path)["partitions"] if partition["owned"])
        for worker in workers
    ]


def _cpu(workers: Sequence[Worker]) -> float:
    return sum(metric(worker.url, "process_cpu_seconds_total") for worker in workers)


async def _declare(lab: Lab) -> None:
    """Create all topics first: a slow broker takes a while to show this many partitions."""
    async with lab.admin() as admin:
        while True:
            try:
                await declare_topics(admin, [lab.collection], replication_factor=1)
            except TopicError as error:
                print(f"  {error}; once more", file=sys.stderr, flush=True)
            else:
                return


def many(running: Broker, *, partitions: int, seconds: float) -> Many:
    """Start a worker with this many empty partitions, then send each a report a second."""
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(running, Path(folder), partitions=partitions)
        asyncio.run(_declare(lab))
        begun = time.perf_counter()
        with on_core(MEASURED_CORE):
            worker = lab.start_worker()
        try:
            worker.wait_ready(seconds=_READY_SECONDS)
            ready = time.perf_counter() - begun
            cpu = metric(worker.url, "process_cpu_seconds_total")
            time.sleep(2.0)
            idle = _rates(worker, seconds)
            busy, sent, behind = asyncio.run(_busy(lab, worker, partitions, seconds))
            peak = peak_bytes(worker.process.pid)
        finally:
            worker.kill()
    rates = idle.cores, busy.cores, sent, busy.counted, behind
    return Many(partitions, ready, cpu, *rates, peak)


@dataclass(frozen=True)
class Rates:
    """What a worker did per second over an interval."""

    cores: float
    counted: float


def _rates(worker: Worker, seconds: float) -> Rates:
    """Return what a worker does per second, measured for some seconds."""
    before, begun = _looked(worker), time.perf_counter()
    time.sleep(seconds)
    after, took = _looked(worker), time.perf_counter() - begun
    return Rates(*((b - a) / took for a, b in zip(before, after, strict=True)))


def _looked(worker: Worker) -> tuple[float, float]:
    return metric(worker.url, "process_cpu_seconds_total"), counted(worker)


async def _busy(
    lab: Lab, worker: Worker, partitions: int, seconds: float
) -> tuple[Rates, float, float]:
    """Send each partition a report a second.

    Returns what the worker did, the reports sent in a second, and its lag in seconds.
    """
    looking: asyncio.Task[Rates] | None = None
    frame = lab.frame(1, first_ms=0, last_ms=0)
    sent, begun = 0, time.perf_counter()
    async with lab.producer() as producer:
        while looking is None or not looking.done():
            elapsed = time.perf_counter() - begun
            if looking is None and elapsed > _SETTLED_SECONDS:
                looking = asyncio.create_task(asyncio.to_thread(_rates, worker, seconds))
            due = int(elapsed * partitions)
            for number in range(sent, due):
                await producer.send(
                    lab.collection.topics.source, frame, partition=number % partitions
                )
            sent = due
            await asyncio.sleep(0.05)
        a_second = sent / (time.perf_counter() - begun)
        behind = (sent - await asyncio.to_thread(counted, worker)) / a_second
        await producer.flush()
    return await looking, a_second, behind
