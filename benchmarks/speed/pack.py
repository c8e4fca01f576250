"""Time single reports through `pack` and a worker, and through a bare consumer.

    python -m benchmarks.speed.pack --broker kafka

One run over one topic of single reports measures the processor seconds that a bare aiokafka
`getmany` loop in a process of its own takes to read and drop them, those of `ldpstream pack` until
all are packed, and those of `ldpstream worker` until all are counted and durable. They are the
processor time of the process according to its /metrics. From a worker's time that of another one is
subtracted, which runs afterwards for as long and has nothing left to count. The ratio is what
matters: reports a second on one core through packer and worker together, relative to the bare
consumer.
"""

import argparse
import asyncio
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from aiokafka import TopicPartition
from rich.console import Console
from rich.table import Table
from tests.brokers import KINDS, Broker, broker
from tests.lab import START_MS, Lab
from tests.ports import free_ports
from tests.processes import Worker

from benchmarks.apart import apart
from ldpstream.agents.kafka import clients

PARTITIONS = 4
POLL_SECONDS = 0.25
PATIENCE_SECONDS = 300.0


@dataclass(frozen=True)
class Measured:
    """The cost of all messages for one process."""

    what: str
    cpu_seconds: float
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure single reports through pack.")
    parser.add_argument("--broker", choices=KINDS, default="embedded")
    parser.add_argument("--singles", type=int, default=2_000_000, help="messages of one report")
    given = parser.parse_args()
    with broker(given.broker) as running, tempfile.TemporaryDirectory() as folder:
        lab = Lab(running, Path(folder), partitions=PARTITIONS, extra='input = "frames"')
        asyncio.run(fill(lab, given.singles))
        bare = bare_consumer(running, lab.collection.topics.source, given.singles)
        packer = run_packer(lab, given.singles)
        worker = run_worker(lab, given.singles, "ldpstream worker, of packed messages")
    _show(given.broker, given.singles, bare, packer, worker)


async def fill(lab: Lab, messages: int) -> None:
    """Write the topic; frames are drawn from 4,096 different ones."""
    spec = lab.collection.spec
    times_ms = np.full(1, START_MS)
    frames = [spec.frame_reports(lab.reports(1), times_ms=times_ms) for _ in range(4096)]
    topic = lab.collection.topics.source
    await lab.create(topic, partitions=PARTITIONS)
    async with lab.producer(linger_ms=5) as producer:
        for number in range(messages):
            await producer.send(topic, frames[number % 4096], partition=number % PARTITIONS)
        await producer.flush()


def bare_consumer(running: Broker, topic: str, messages: int) -> Measured:
    """Read and drop all messages in a process of its own."""
    arguments = (running.bootstrap, dict(running.options), topic, messages)
    taken = apart(_read, *arguments, seconds=PATIENCE_SECONDS)
    return Measured("aiokafka getmany", *taken)


def _read(
    bootstrap: str, options: dict[str, object], topic: str, messages: int
) -> tuple[float, float]:
    return asyncio.run(_getmany(bootstrap, options, topic, messages))


async def _getmany(
    bootstrap: str, options: dict[str, object], topic: str, messages: int
) -> tuple[float, float]:
    reader = clients.reader(bootstrap, options, committed_only=True, wait_ms=100)
    await reader.start()
    try:
        partitions = [TopicPartition(topic, p) for p in range(PARTITIONS)]
        reader.assign(partitions)
        await reader.seek_to_beginning(*partitions)
        seen, began, cpu = 0, time.perf_counter(), time.process_time()
        while seen < messages:
            found = await reader.getmany(timeout_ms=1000, max_records=20_000)
            seen += sum(map(len, found.values()))
        return time.process_time() - cpu, time.perf_counter() - began
    finally:
        await reader.stop()


def run_packer(lab: Lab, messages: int) -> Measured:
    """Pack all messages in a process of its own."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    process = lab.start_packer("--http", url.removeprefix("http://"))
    try:
        process.wait_ready()
        began, ready_cpu = time.perf_counter(), metric(url, "process_cpu_seconds_total")
        early = metric(url, "ldpstream_pack_records_total")
        until(lambda: metric(url, "ldpstream_pack_records_total") >= messages)
        took = time.perf_counter() - began
        cpu = metric(url, "process_cpu_seconds_total") - ready_cpu
    finally:
        process.kill()
    share = 1 - early / messages
    return Measured("ldpstream pack", cpu / share, took / share)


def run_worker(lab: Lab, messages: int, what: str) -> Measured:
    """Return the cost of a worker from its start, less that of one with nothing to do.

    A worker counts before it says that it is ready, so only whole runs can be compared.
    """
    cpu, took = _whole_run(lab, messages, 0.0)
    idle_cpu, _ = _whole_run(lab, 0, took)
    return Measured(what, max(0.01, cpu - idle_cpu), took)


def _whole_run(lab: Lab, messages: int, least_seconds: float) -> tuple[float, float]:
    """Run a worker until this much has been counted; return its processor time and elapsed time."""
    worker = lab.start_worker()
    try:
        worker.wait_ready()
        began = time.perf_counter()
        until(lambda: counted(worker) >= messages)
        time.sleep(max(0.0, least_seconds - (time.perf_counter() - began)))
        took = time.perf_counter() - began
        cpu = metric(worker.url, "process_cpu_seconds_total")
        # It leaves the group cleanly and commits its offsets: the stream would
        # otherwise deliver everything to the next one, whatever had been counted.
        assert worker.terminate() == 0
        return cpu, took
    finally:
        worker.kill()


def counted(worker: Worker) -> float:
    """Return how many reports a worker has made durable."""
    return metric(worker.url, 'ldpstream_reports_total{collection="trips",result="counted"')


def until(done: Callable[[], bool], *, every_seconds: float = POLL_SECONDS) -> None:
    """Wait until a condition holds; raises TimeoutError."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError("not done in time")
        time.sleep(every_seconds)


def metric(url: str, name: str) -> float:
    """Return the sum of a metric over its labels."""
    with urllib.request.urlopen(url + "/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def _show(kind: str, messages: int, bare: Measured, packer: Measured, worker: Measured) -> None:
    both = Measured(
        "pack and worker together",
        packer.cpu_seconds + worker.cpu_seconds,
        max(packer.seconds, worker.seconds),
    )
    table = Table(
        title_justify="left",
        title=f"{messages:,} messages of one report, {PARTITIONS} partitions, {kind} broker",
    )
    for column in ("process", "CPU s", "reports/s of a core", "of getmany", "elapsed s"):
        table.add_column(column, justify="left" if column == "process" else "right")
    for one in (bare, packer, worker, both):
        table.add_row(
            one.what,
            f"{one.cpu_seconds:.2f}",
            f"{messages / one.cpu_seconds:,.0f}",
            f"{bare.cpu_seconds / one.cpu_seconds:.2f}",
            f"{one.seconds:.1f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
