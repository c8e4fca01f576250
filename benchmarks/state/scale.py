"""A worker's memory by partitions and shards, with what the model of docs/scale.md says.

    python -m benchmarks.state.scale
    python -m benchmarks.state.scale --partitions 4,16,64 --shards 1,2,4 --panes 100 --values 1000

A worker counts reports of so many open windows of so many values, in all partitions, on Apache
Kafka. Then another worker is started for each line. What it has resident at most until it is ready
is compared with a model of three constants: what a worker takes without state, a partition, and a
byte of counts (8 for each value, window and partition). They are measured at one partition without
state, at the most partitions without state, and at the most with state; the other lines are
predictions. It measures memory, so it may run next to other work.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from tests.brokers import KINDS, Broker, broker
from tests.processes import Worker

from benchmarks.state.lab import HOUR_MS, START_MS, StateLab, peak_bytes, producing

MIB = 1 << 20
_PROGRAM = "import sys; from ldpstream.agents.cli.main import main; main(sys.argv[1:])"
_NAMES = ("rides", "modes", "trips", "city")
"""In shards 1, 2, 3 and 4 of 4, so two of them in each of 2."""
_READY_SECONDS = 600.0


@dataclass(frozen=True)
class Line:
    """One worker: what it reads, and what it had resident."""

    partitions: int
    collections: int
    shards: int
    panes: int
    values: int
    peak_bytes: int

    @property
    def held(self) -> int:
        """The partitions whose changelogs it reads."""
        return self.partitions * self.collections // self.shards

    @property
    def count_bytes(self) -> int:
        """Bytes of the counts that it reads."""
        return 8 * self.held * self.panes * self.values


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Compare a worker's memory with the model.")
    parser.add_argument("--broker", choices=KINDS, default="kafka")
    parser.add_argument("--partitions", default="4,16,64")
    parser.add_argument("--shards", default="1,2,4")
    parser.add_argument("--panes", type=int, default=50)
    parser.add_argument("--values", type=int, default=1_000)
    given = parser.parse_args()
    partitions, shards = (
        [int(one) for one in text.split(",")] for text in (given.partitions, given.shards)
    )
    with broker(given.broker) as running:
        # An empty worker, and one with few values, give what is not counts.
        bare = [measure(running, 1, 1, 0, given.values)[0]]
        many = measure(running, partitions[-1], 1, 0, given.values)
        lines = [
            line for p in partitions for line in measure(running, p, 1, given.panes, given.values)
        ]
        lines += measure(running, 4, len(_NAMES), given.panes, given.values, shards=shards)
    base = bare[0].peak_bytes
    a_partition = max(0.0, (many[0].peak_bytes - base) / (many[0].held - 1))
    largest = max(lines[: len(partitions)], key=lambda line: line.count_bytes)
    rest = largest.peak_bytes - base - a_partition * largest.held
    a_byte = rest / largest.count_bytes
    Console(width=120).print(_table(lines, base, a_partition, a_byte))


def measure(
    running: Broker,
    partitions: int,
    collections: int,
    panes: int,
    values: int,
    *,
    shards: Sequence[int] = (1,),
) -> list[Line]:
    """Fill collections, and start a worker of the first shard of so many, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        lab = StateLab(running, Path(folder), values=values, partitions=partitions)
        file, names = lab.file, _NAMES[:collections]
        head, _, table = file.read_text().partition("[collection.trips]")
        tables = (
            f"[collection.{name}]" + table.replace('topic = "trips', f'topic = "{name}')
            for name in names
        )
        file.write_text(head + "".join(tables))
        if panes:
            asyncio.run(_fill(lab, names, panes))
        return [
            Line(partitions, collections, total, panes, values, _ready(file, total))
            for total in shards
        ]


async def _fill(lab: StateLab, names: Sequence[str], panes: int) -> None:
    """Have a worker count a frame of every window in every partition."""
    with _working(lab.file, 1) as worker:
        for name in names:
            lab.load(lab.file, name)
            spec, topics = lab.collection.spec, lab.collection.topics
            partitions = range(lab.collection.partitions)
            drawn = lab.frames(2 * spec.mechanism.size, kinds=8)
            async with producing(lab) as producer:
                for pane in range(panes):
                    reports = drawn[pane % len(drawn)]
                    times_ms = np.full(len(reports), START_MS + pane * HOUR_MS)
                    frame = spec.frame_reports(reports, times_ms=times_ms)
                    for partition in partitions:
                        await producer.send(topics.source, frame, partition=partition)
                await producer.flush()
            sent = panes * len(partitions) * len(drawn[0])
            path, counted = f"/api/collections/{name}/status", 0
            while counted < sent:
                await asyncio.sleep(0.5)
                counted = int((await asyncio.to_thread(worker.get, path))["counted"])


def _ready(file: Path, shards: int) -> int:
    with _working(file, shards) as worker:
        peak = peak_bytes(worker.process.pid)
        print(f"{file.parent.name}, shard 1/{shards}: {peak / MIB:.0f} MiB", file=sys.stderr)
        return peak


@contextmanager
def _working(file: Path, shards: int) -> Iterator[Worker]:
    words = [sys.executable, "-c", _PROGRAM, "worker", "-c", str(file), "--shard", f"1/{shards}"]
    # Nobody asks it about other shards.
    environment = {**os.environ, "LDPSTREAM_ADVERTISE": "http://127.0.0.1:1"}
    worker = Worker(subprocess.Popen(words, stdout=subprocess.PIPE, env=environment))
    try:
        worker.wait_ready(seconds=_READY_SECONDS)
        yield worker
    finally:
        worker.kill()


def _table(lines: Sequence[Line], base: int, a_partition: float, a_byte: float) -> Table:
    table = Table(title_justify="left")
    table.title = (
        f"a worker: {base / MIB:.0f} MiB, {a_partition / 1024:.0f} KiB a partition, "
        f"{a_byte:.2f} bytes a byte of counts"
    )
    for column in ("collections", "partitions", "shards", "MiB of counts", "MiB", "model", "off"):
        table.add_column(column, justify="right")
    for line in lines:
        model = base + a_partition * line.held + a_byte * line.count_bytes
        table.add_row(
            f"{line.collections}",
            f"{line.partitions}",
            f"{line.shards}",
            f"{line.count_bytes / MIB:.1f}",
            f"{line.peak_bytes / MIB:.0f}",
            f"{model / MIB:.0f}",
            f"{(model / line.peak_bytes - 1):+.0%}",
        )
    return table


if __name__ == "__main__":
    main()
