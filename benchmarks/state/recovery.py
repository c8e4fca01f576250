"""How long a worker takes to read its state back.

    python -m benchmarks.state.recovery --panes 1000,10000 --values 1000

For each number of open panes, the state machine itself writes a changelog to Apache Kafka: every
pane holds reports of every value and is written `--flushes` times. Then a fresh process reads it
with the worker's own reader until every replica has been evaluated, and a worker is started.
Seconds are those of reading (once the clients are connected), of loading the owner's state, and
from the start of the worker's process until it says `ready`. Memory is the reading process's peak,
and the part of it that reading added.
"""

import argparse
import asyncio
import multiprocessing
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tests.brokers import KINDS, Broker, broker
from tests.processes import Worker

from benchmarks.state.lab import KEPT, OPEN, StateLab, fill, load_owned, open_replicas, peak_bytes

MIB = 1 << 20


@dataclass(frozen=True)
class Recovered:
    """The cost of reading a changelog."""

    read_seconds: float
    load_seconds: float
    peak_bytes: int
    added_bytes: int
    cells: int


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the recovery of state.")
    parser.add_argument("--broker", choices=KINDS, default="kafka")
    parser.add_argument("--panes", default="1000,3000,10000", help="open panes a partition")
    parser.add_argument("--values", type=int, default=1_000)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--flushes", type=int, default=1, help="how often each pane is written")
    parser.add_argument("--closed", action="store_true", help="panes that have closed, kept")
    given = parser.parse_args()
    table = Table(
        title_justify="left",
        title=f"{given.values:,} values, {given.partitions} partitions, each pane written "
        f"{given.flushes} x, {given.broker} broker",
    )
    for column in ("panes", "records", "MB", "read s", "load s", "ready s", "peak MiB"):
        table.add_column(column, justify="right")
    table.add_column("added MiB", justify="right")
    table.add_column("B a pane", justify="right")
    with broker(given.broker) as running:
        for panes in map(int, given.panes.split(",")):
            table.add_row(*measure(running, panes, given))
    Console().print(table)


def measure(running: Broker, panes: int, given: argparse.Namespace) -> list[str]:
    """Return the line of one size."""
    with tempfile.TemporaryDirectory() as folder:
        lab = StateLab(
            running,
            Path(folder),
            values=given.values,
            partitions=given.partitions,
            window=KEPT if given.closed else OPEN,
        )
        records, size = asyncio.run(fill(lab, panes=panes, flushes=given.flushes))
        recovered = _apart(lab)
        ready_seconds = _ready(lab)
        return [
            f"{panes:,}",
            f"{records:,}",
            f"{size / 1e6:.1f}",
            f"{recovered.read_seconds:.2f}",
            f"{recovered.load_seconds:.2f}",
            f"{ready_seconds:.2f}",
            f"{recovered.peak_bytes / MIB:.0f}",
            f"{recovered.added_bytes / MIB:.0f}",
            f"{recovered.added_bytes / panes / given.partitions:,.0f}",
        ]


def _apart(lab: StateLab) -> Recovered:
    """Read in a fresh process, whose memory holds nothing else."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_recover, args=(lab.file, sender))
    process.start()
    try:
        if not receiver.poll(300):
            raise TimeoutError("reading the changelog took more than 300 s")
        recovered = receiver.recv()
        assert isinstance(recovered, Recovered)
        return recovered
    finally:
        process.kill()
        process.join()


def _recover(file: Path, sender: Any) -> None:
    sender.send(asyncio.run(_read(StateLab.of(file))))


async def _read(lab: StateLab) -> Recovered:
    async with open_replicas(lab) as (replicas, read):
        before = peak_bytes()
        begun = time.perf_counter()
        await read()
        read_seconds = time.perf_counter() - begun
        begun = time.perf_counter()
        owned = load_owned(lab, replicas)
        load_seconds = time.perf_counter() - begun
        peak = peak_bytes()
        assert len(owned) == len(replicas)
        return Recovered(
            read_seconds, load_seconds, peak, peak - before, sum(len(t.cells) for t in replicas)
        )


def _ready(lab: StateLab) -> float:
    """Return the seconds from the start of a worker's process to its `ready`."""
    begun = time.perf_counter()
    worker: Worker = lab.start_worker()
    try:
        worker.wait_ready()
        seconds = time.perf_counter() - begun
        assert worker.terminate() == 0
        return seconds
    finally:
        worker.kill()


if __name__ == "__main__":
    main()
