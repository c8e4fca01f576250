"""A worker's memory and processor time by its load.

    python -m benchmarks.state.memory --reports 1,10,50 --windows 1,100,1000 --values 100,1000,43750
    python -m benchmarks.state.memory --retained 1000,10000 --values 43750

Every line is a worker process of its own on Apache Kafka. It is started, its memory is noted, then
frames of 1,000 reports are sent, and it is observed until all are counted. `--reports` (in
millions) is measured with one open window and 1,000 values; `--windows` (open ones) and `--values`
with `--millions` reports each. With `--retained` that many windows are closed and kept.
Fetched messages take memory too, up to one fetch and its copies, so a longer backlog takes more. So
that the lines differ in one quantity only, at most `--backlog` million reports wait at any time;
with 0 all are sent as fast as the broker accepts them. `peak` is the peak of resident memory; `CPU`
is the worker's user and system time after its start; changelog bytes are of keys and values as
sent, superseded ones included.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from aiokafka import TopicPartition
from rich.console import Console
from rich.table import Table
from tests.brokers import KINDS, Broker, broker
from tests.processes import Worker

from benchmarks.state.lab import HOUR_MS, KEPT, OPEN, START_MS, StateLab, peak_bytes, producing
from ldpstream.agents.broker import clients

MIB = 1 << 20
A_FRAME = 1_000
BACKLOG = 1_000_000
"""The most reports that wait to be read."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Case:
    """The load of one worker."""

    what: str
    reports: int
    windows: int
    values: int
    retained: bool = False


@dataclass(frozen=True)
class Taken:
    """The cost of that load."""

    seconds: float
    cpu_seconds: float
    before_bytes: int
    peak_bytes: int
    changelog_bytes: int


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a worker's memory.")
    parser.add_argument("--broker", choices=KINDS, default="kafka")
    parser.add_argument("--reports", default="", help="millions of reports")
    parser.add_argument("--windows", default="", help="open windows")
    parser.add_argument("--retained", default="", help="closed windows")
    parser.add_argument("--values", default="1000", help="sizes of domains")
    parser.add_argument("--millions", type=float, default=2.0)
    parser.add_argument("--backlog", type=float, default=BACKLOG / 1e6, help="millions, 0: any")
    given = parser.parse_args()
    table = Table(
        title_justify="left",
        title=f"frames of {A_FRAME:,} reports, {given.broker} broker",
    )
    for column in ("", "M reports", "windows", "values", "s", "CPU us a report", "start MiB"):
        table.add_column(column, justify="right" if column else "left")
    for column in ("peak MiB", "changelog MB", "B a report"):
        table.add_column(column, justify="right")
    with broker(given.broker) as running:
        for case in _cases(given):
            taken = asyncio.run(measure(running, case, int(given.backlog * 1e6) or case.reports))
            table.add_row(
                case.what,
                f"{case.reports / 1e6:g}",
                f"{case.windows:,}",
                f"{case.values:,}",
                f"{taken.seconds:.1f}",
                f"{taken.cpu_seconds / case.reports * 1e6:.3f}",
                f"{taken.before_bytes / MIB:.0f}",
                f"{taken.peak_bytes / MIB:.0f}",
                f"{taken.changelog_bytes / 1e6:.2f}",
                f"{taken.changelog_bytes / case.reports:.4f}",
            )
    Console(width=120).print(table)


def _cases(given: argparse.Namespace) -> list[Case]:
    values, some = _numbers(given.values), int(given.millions * 1e6)
    cases = [Case("reports", int(m * 1e6), 1, values[0]) for m in _numbers(given.reports)]
    cases += [
        Case("open windows", max(some, 2 * w * A_FRAME), w, values[0])
        for w in _numbers(given.windows)
    ]
    if len(values) > 1:
        cases += [Case("domain", some, 1, int(v)) for v in values]
    retained = _numbers(given.retained)
    cases += [
        Case("retained windows", max(some, w * A_FRAME), w, values[-1], retained=True)
        for w in retained
    ]
    return cases


def _numbers(text: str) -> Sequence[int]:
    return [int(number) for number in text.split(",") if number]


async def measure(running: Broker, case: Case, backlog: int = BACKLOG) -> Taken:
    """Run one worker through a case, with at most `backlog` reports waiting."""
    with tempfile.TemporaryDirectory() as folder:
        lab = StateLab(
            running,
            Path(folder),
            values=case.values,
            partitions=1,
            window=KEPT if case.retained else OPEN,
        )
        worker = lab.start_worker()
        try:
            await asyncio.to_thread(worker.wait_ready)
            before, cpu = peak_bytes(worker.process.pid), _cpu_seconds(worker)
            begun = time.perf_counter()
            await _send(lab, case, worker, backlog // A_FRAME)
            await _counted(worker, case.reports)
            seconds = time.perf_counter() - begun
            cpu = _cpu_seconds(worker) - cpu
            peak = peak_bytes(worker.process.pid)
            size = await _changelog_bytes(lab)
            assert worker.terminate() == 0
            return Taken(seconds, cpu, before, peak, size)
        finally:
            worker.kill()


async def _send(lab: StateLab, case: Case, worker: Worker, backlog: int) -> None:
    """Send all reports window by window, in several rounds if windows stay open.

    This many frames are sent at a time, and the next ones once all of these are counted.
    """
    spec, drawn = lab.collection.spec, lab.frames(A_FRAME, kinds=200)

    @lru_cache(maxsize=20_000)
    def make(hour: int, kind: int) -> bytes:
        times_ms = np.full(A_FRAME, START_MS + hour * HOUR_MS)
        return spec.frame_reports(drawn[kind], times_ms=times_ms)

    frames = case.reports // A_FRAME
    topic = lab.collection.topics.source
    async with producing(lab) as producer:
        for number in range(frames):
            if number and number % backlog == 0:
                await producer.flush()
                await _counted(worker, number * A_FRAME)
            hour = number * case.windows // frames if case.retained else number % case.windows
            await producer.send(topic, make(hour, number % len(drawn)), partition=0)
        await producer.flush()


async def _counted(worker: Worker, reports: int) -> None:
    """Wait until this many reports are counted, each once."""
    while (counted := await asyncio.to_thread(_count, worker)) != reports:
        assert counted < reports, f"{counted} of {reports} reports counted"
        await asyncio.sleep(0.05)


def _count(worker: Worker) -> int:
    status = worker.get("/api/collections/trips/status")
    assert not status["problems"], status["problems"]
    return int(status["counted"])


def _cpu_seconds(worker: Worker) -> float:
    fields = Path(f"/proc/{worker.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


async def _changelog_bytes(lab: StateLab) -> int:
    """Return the bytes of all keys and values that are still in the changelog."""
    kafka = lab.config.kafka
    reader = clients.reader(kafka.bootstrap, kafka.options, committed_only=False, wait_ms=100)
    await reader.start()
    try:
        partition = TopicPartition(lab.collection.topics.changelog, 0)
        reader.assign([partition])
        await reader.seek_to_beginning(partition)
        size, end = 0, 1
        while await reader.position(partition) < end:
            found = await reader.getmany(timeout_ms=500)
            end = reader.highwater(partition) or end
            for record in found.get(partition, []):
                size += len(record.key or b"") + len(record.value or b"")
        return size
    finally:
        await reader.stop()


if __name__ == "__main__":
    main()
