"""Compare a worker's state and memory, by partitions and shards, with docs/how-to/size.md.

    python -m benchmarks.state.scale
    python -m benchmarks.state.scale --partitions 4,16,64 --shards 1,2,4 --open 100 --closed 100

The state machine writes changelogs with this many open and closed windows in every partition to
Apache Kafka. Then workers are started for each line. The size of the state that a worker reports,
and its peak of resident memory until it has read the state, are compared with the model. Its
constants are measured: the memory of a worker without state and of a partition (from the most
partitions without state); the memory of a byte of a broker's answer while it is read and of a byte
of state (from the fewest and the most partitions). All else is predicted: the size of the state
everywhere, and the memory of the other lines. *Received* is what the worker's connections received
until it was ready. The command measures memory, so it may run next to other work.
"""

import argparse
import asyncio
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from tests.brokers import KINDS, Broker, broker
from tests.processes import Worker

from benchmarks.launch import launch
from benchmarks.state.lab import StateLab, fill, peak_bytes

MIB = 1 << 20
_NAMES = ("rides", "modes", "trips", "city")
"""Names in shards 1, 2, 3 and 4 of 4, and so two in each of 2 shards."""
_READY_SECONDS = 600.0
_RECEIVED = re.compile(r"bytes_received:(\d+)")
_ANSWER_BYTES = 8 * MIB
_CHUNK = 4096
_CHUNK_BYTES, _TOTALS_BYTES, _FINAL_BYTES = 14, 25, 1_700
"""The bytes of a chunk without its counts, of a pane's totals, and of a final's document."""


@dataclass(frozen=True)
class Line:
    """One worker: what it reads, and what that took; `open` and `closed` count windows."""

    workers: int
    partitions: int
    collections: int
    shards: int
    open: int
    closed: int
    entries: int
    state_bytes: int
    peak_bytes: int
    received_bytes: int
    """Bytes from the broker until it was ready, compressed."""

    @property
    def read(self) -> int:
        """The number of collections that it reads."""
        return self.collections // self.shards

    @property
    def answer_bytes(self) -> int:
        """The bytes of a broker's answer: a worker reads all its changelogs at once."""
        return min(_ANSWER_BYTES, self.received_bytes)

    @property
    def model_state_bytes(self) -> int:
        """The bytes that the model predicts for the values of all records.

        A count takes one byte, as each value is reported once in a pane and partition.
        """
        chunks = math.ceil(self.entries / _CHUNK)
        pane = chunks * _CHUNK_BYTES + self.entries + _TOTALS_BYTES
        panes = self.open * self.partitions + self.closed
        return self.read * (panes * pane + self.closed * _FINAL_BYTES)


@dataclass(frozen=True)
class Model:
    """The constants of a worker's memory, and the memory per byte of an answer and of state."""

    base: float
    a_partition: float
    a_read_byte: float
    a_byte: float

    @classmethod
    def fit(cls, base: float, a_partition: float, least: Line, most: Line) -> "Model":
        """Fit the memory per byte to two lines with state."""
        lines = least, most
        rest = [
            line.peak_bytes - base - a_partition * line.partitions * line.read for line in lines
        ]
        known = [(line.answer_bytes, line.model_state_bytes) for line in lines]
        a_read_byte, a_byte = np.linalg.solve(known, rest)
        return cls(base, a_partition, float(a_read_byte), float(a_byte))

    def added(self, line: Line) -> float:
        """Return the resident memory of a worker beyond that of one without state."""
        partitions = self.a_partition * line.partitions * line.read
        read = self.a_read_byte * line.answer_bytes
        return partitions + read + self.a_byte * line.model_state_bytes


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare a worker's memory with the model.")
    parser.add_argument("--broker", choices=KINDS, default="kafka")
    parser.add_argument("--partitions", default="4,16,64")
    parser.add_argument("--shards", default="1,2,4")
    parser.add_argument("--workers", default="1,2,4", help="sharing 16 partitions")
    parser.add_argument("--open", type=int, default=100, help="windows in every partition")
    parser.add_argument("--closed", type=int, default=100, help="windows that are kept")
    parser.add_argument("--values", type=int, default=4_000)
    given = parser.parse_args()
    partitions, shards, workers = (
        [int(one) for one in text.split(",")]
        for text in (given.partitions, given.shards, given.workers)
    )
    panes = given.open, given.closed
    with broker(given.broker) as running:
        base = measure(running, 1, 1, (0, 0), given.values)[0].peak_bytes
        bare = measure(running, partitions[-1], 1, (0, 0), given.values)[0]
        lines = [line for p in partitions for line in measure(running, p, 1, panes, given.values)]
        lines += measure(running, 16, len(_NAMES), panes, given.values, shards=shards)
        lines += measure(running, 16, 1, panes, given.values, workers=workers)
    a_partition = max(0.0, (bare.peak_bytes - base) / (partitions[-1] - 1))
    model = Model.fit(base, a_partition, lines[0], lines[len(partitions) - 1])
    Console(width=130).print(_table(lines, model))


def measure(
    running: Broker,
    partitions: int,
    collections: int,
    panes: tuple[int, int],
    values: int,
    *,
    shards: Sequence[int] = (1,),
    workers: Sequence[int] = (1,),
) -> list[Line]:
    """Fill collections; in turn start workers of the first of this many shards."""
    opened, closed = panes
    with tempfile.TemporaryDirectory() as folder:
        window = f'grace = "{max(0, opened - 1)}h", idle = "off", retention = "9000d"'
        lab = StateLab(running, Path(folder), values=values, partitions=partitions, window=window)
        file, names = lab.file, _NAMES[:collections]
        entries = lab.collection.spec.mechanism.statistic_size
        head, _, table = file.read_text().partition("[collection.trips]")
        tables = (
            f"[collection.{name}]" + table.replace('topic = "trips', f'topic = "{name}')
            for name in names
        )
        file.write_text(head + "".join(tables))
        for name in names if sum(panes) else ():
            lab.load(file, name)
            asyncio.run(fill(lab, panes=opened + closed, flushes=1))
        return [
            Line(many, partitions, collections, total, opened, closed, entries, *found)
            for many in workers
            for total in shards
            for found in [_ready(file, total, many)]
        ]


def _ready(file: Path, shards: int, workers: int) -> tuple[int, int, int]:
    """Return a worker's bytes of state, its peak of memory, and the bytes received.

    Of several workers it is the one with the highest peak.
    """
    with ExitStack() as stack:
        fleet = [stack.enter_context(_working(file, shards)) for _ in range(workers)]
        for worker in fleet:
            worker.wait_ready(seconds=_READY_SECONDS)
        peaks = {peak_bytes(worker.process.pid): worker for worker in fleet}
        peak, worker = max(peaks.items(), key=lambda item: item[0])
        state = int(worker.metrics("ldpstream_state_bytes"))
        received = _received_bytes(worker.process.pid)
        found = ", ".join(f"{n / MIB:.1f}" for n in (state, peak, received))
        print(f"{workers} of shard 1/{shards}, MiB: {found}", file=sys.stderr)
        return state, peak, received


def _received_bytes(pid: int) -> int:
    """Return the bytes received over the open connections of a process."""
    # A healthy worker keeps its connections.
    shown = subprocess.run(["ss", "-tniHp"], capture_output=True, text=True, check=True).stdout
    sockets = shown.replace("\n\t", " ").splitlines()
    own = (line for line in sockets if f"pid={pid}," in line)
    return sum(int(found[1]) for line in own if (found := _RECEIVED.search(line)))


@contextmanager
def _working(file: Path, shards: int) -> Iterator[Worker]:
    # It is not asked about other shards.
    environment = {"LDPSTREAM_ADVERTISE": "http://127.0.0.1:1"}
    worker = launch(file, "--shard", f"1/{shards}", environment=environment)
    try:
        yield worker
    finally:
        worker.kill()


def _table(lines: Sequence[Line], model: Model) -> Table:
    table = Table(title_justify="left")
    table.title = (
        f"a worker: {model.base / MIB:.0f} MiB, {model.a_partition / 1024:.0f} KiB a partition, "
        f"{model.a_read_byte:.2f} bytes a byte of an answer, {model.a_byte:.2f} a byte of state"
    )
    for column in ("workers", "collections", "partitions", "shards", "received MiB"):
        table.add_column(column, justify="right")
    for column in ("state MiB", "model", "off", "added MiB", "model", "off", "resident MiB", "off"):
        table.add_column(column, justify="right")
    for line in lines:
        added = model.added(line)
        table.add_row(
            f"{line.workers}",
            f"{line.collections}",
            f"{line.partitions}",
            f"{line.shards}",
            f"{line.received_bytes / MIB:.1f}",
            *_compared(line.state_bytes, line.model_state_bytes),
            *_compared(line.peak_bytes - model.base, added),
            f"{line.peak_bytes / MIB:.0f}",
            f"{(model.base + added) / line.peak_bytes - 1:+.0%}",
        )
    return table


def _compared(found: float, model: float) -> tuple[str, str, str]:
    return f"{found / MIB:.1f}", f"{model / MIB:.1f}", f"{model / found - 1:+.0%}"


if __name__ == "__main__":
    main()
