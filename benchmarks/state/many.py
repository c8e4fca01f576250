"""The cost of a worker with many collections, and how soon one with many partitions counts.

    python -m benchmarks.state.many
    python -m benchmarks.state.many --collections 50 --partitions 12 --seconds 60 --one 1000

The first row is a worker that runs this many collections with almost no state on Apache Kafka. It
is started twice, as the first start also creates the topics. Processor time is its user and system
time; at rest it gets no reports and no requests. Then `/metrics` is scraped ten times. The second
row is a collection with this many partitions: at a steady rate single reports go to partitions in
turn, then one to every partition at once. It shows the time from each record's acknowledgement to
the broker's timestamp of the head that counts it.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aiokafka import AIOKafkaProducer
from rich.console import Console
from rich.table import Table
from tests.brokers import KINDS, Broker, broker
from tests.lab import START_MS, Lab
from tests.processes import Worker

from benchmarks.launch import launch
from benchmarks.resilience.progress import Heads, winning_heads

_TICKS = os.sysconf("SC_CLK_TCK")
_SCRAPES = 10
_READY_SECONDS = 600.0
_SETTLE_SECONDS = 10.0


@dataclass(frozen=True)
class Start:
    """From the start of a process until it is ready."""

    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Scrape:
    """One answer of `/metrics`."""

    seconds: float
    cpu_seconds: float
    lines: int


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a worker of many collections.")
    parser.add_argument("--broker", choices=KINDS, default="kafka")
    parser.add_argument("--collections", type=int, default=50)
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=60.0, help="of rest")
    parser.add_argument("--one", type=int, default=1_000, help="partitions of one collection")
    parser.add_argument("--rate", type=float, default=50.0, help="single reports a second to it")
    given = parser.parse_args()
    console = Console(width=120)
    with broker(given.broker) as running, tempfile.TemporaryDirectory() as folder:
        if given.collections:
            names = [f"c{number}" for number in range(given.collections)]
            lab = Lab(running, Path(folder), names=names, partitions=given.partitions)
            console.print(_resting(lab, given.seconds))
    with broker(given.broker) as running, tempfile.TemporaryDirectory() as folder:
        if given.one:
            console.print(asyncio.run(_arriving(running, Path(folder), given)))


def start(lab: Lab) -> tuple[Worker, Start]:
    """Start a worker process as an operator would; the caller has to kill it."""
    begun = time.perf_counter()
    worker = launch(lab.file)
    worker.wait_ready(seconds=_READY_SECONDS)
    return worker, Start(time.perf_counter() - begun, cpu_seconds(worker))


def cpu_seconds(worker: Worker) -> float:
    """Return the processor time of a worker, user and system."""
    fields = Path(f"/proc/{worker.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resting(lab: Lab, seconds: float) -> Table:
    first, creating = start(lab)
    try:
        assert first.terminate() == 0
    finally:
        first.kill()
    worker, starting = start(lab)
    print(f"worker {worker.process.pid}", file=sys.stderr, flush=True)
    try:
        time.sleep(_SETTLE_SECONDS)
        cpu, begun = cpu_seconds(worker), time.perf_counter()
        time.sleep(seconds)
        rest = (cpu_seconds(worker) - cpu) / (time.perf_counter() - begun)
        scrapes = [_scrape(worker) for _ in range(_SCRAPES)]
    finally:
        worker.kill()
    many = f"{len(lab.config.collections)} collections of {lab.collection.partitions} partitions"
    table = Table("", "", title=many, title_justify="left", show_header=False)
    table.add_row("share of a core at rest", f"{rest:.2%}")
    for what, taken in (("topics to create", creating), ("topics there", starting)):
        said = f"{taken.seconds:.1f} ({taken.cpu_seconds:.1f} of them processor)"
        table.add_row(f"seconds until ready, {what}", said)
    for what, found in (
        ("ms of /metrics", [scrape.seconds for scrape in scrapes]),
        ("its processor ms", [scrape.cpu_seconds for scrape in scrapes]),
    ):
        median, worst = statistics.median(found), max(found)
        table.add_row(f"{what}, median and worst", f"{median * 1e3:.0f}, {worst * 1e3:.0f}")
    table.add_row("lines of /metrics", f"{scrapes[-1].lines:,}")
    return table


def _scrape(worker: Worker) -> Scrape:
    cpu, begun = cpu_seconds(worker), time.perf_counter()
    with urllib.request.urlopen(worker.url + "/metrics") as answer:
        text = answer.read()
    seconds = time.perf_counter() - begun
    return Scrape(seconds, cpu_seconds(worker) - cpu, text.count(b"\n"))


async def _arriving(running: Broker, folder: Path, given: argparse.Namespace) -> Table:
    lab = Lab(running, folder, partitions=given.one)
    worker, _ = await asyncio.to_thread(start, lab)
    print(f"worker {worker.process.pid}", file=sys.stderr, flush=True)
    try:
        async with lab.producer() as producer:
            await asyncio.sleep(_SETTLE_SECONDS)
            steady = await send_singles(lab, producer, number=int(given.rate * 20), rate=given.rate)
            await await_counted(worker, len(steady))
            burst = await send_singles(lab, producer, number=given.one, rate=float("inf"))
            await await_counted(worker, len(steady) + len(burst))
        heads = await winning_heads(lab)
    finally:
        worker.kill()
    table = Table("", "median", "99%", "worst", title_justify="left")
    table.title = f"one collection of {given.one:,} partitions: s from arrival to a winning head"
    for what, sent in ((f"{given.rate:g} single reports a second", steady), ("one each", burst)):
        took = sorted(seconds_until(heads, *record) for record in sent)
        worst = took[-1]
        table.add_row(what, *(f"{s:.2f}" for s in (took[len(took) // 2], _q99(took), worst)))
    return table


def _q99(took: Sequence[float]) -> float:
    return took[min(len(took) - 1, len(took) * 99 // 100)]


async def send_singles(
    lab: Lab, producer: AIOKafkaProducer, *, number: int, rate: float
) -> list[tuple[int, int, float]]:
    """Send reports to partitions in turn; return each one's partition, offset and arrival."""
    topic, begun = lab.collection.topics.source, time.perf_counter()
    frame = lab.frame(1, first_ms=START_MS, last_ms=START_MS)
    found: list[tuple[int, int, float]] = []

    async def arrive(partition: int) -> None:
        record = await producer.send_and_wait(topic, frame, partition=partition)
        found.append((partition, record.offset, time.time()))

    sending = []
    for at in range(number):
        await asyncio.sleep(max(0.0, begun + at / rate - time.perf_counter()))
        sending.append(asyncio.create_task(arrive(at % lab.collection.partitions)))
    await asyncio.gather(*sending)
    return found


async def await_counted(worker: Worker, reports: int) -> None:
    """Wait until a worker says that this many reports of its collection have been counted."""
    counted = 0
    while counted < reports:
        await asyncio.sleep(1.0)
        status = await asyncio.to_thread(worker.get, "/api/collections/trips/status")
        counted = int(status["counted"])


def seconds_until(heads: Heads, partition: int, offset: int, arrived: float) -> float:
    """Return the seconds from a record's arrival to the first head that counts it."""
    return next(at for following, at in heads[partition] if following > offset) - arrived


if __name__ == "__main__":
    main()
