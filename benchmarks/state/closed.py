"""The cost of closed panes by the number of partitions: `python -m benchmarks.state.closed`.

    python -m benchmarks.state.closed --partitions 1,4,16,64 --panes 200 --values 1000

It runs without a broker. The same reports, three a value in every pane, are spread over the
partitions; one flush of each partition writes a pane, the next ones close it. `state` is the size
of the changelogs once all dead records are deleted, keys and heads included, `cells` the number of
records; `written` is the total sent to the changelogs, deletions included; `replica` is the
resident memory that the replicas of all partitions add to a process that reads the remaining
records, and `CPU` the processor time of writing.
"""

import argparse
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np
from rich.console import Console
from rich.table import Table
from tests.seeded import SeededEntropy

from benchmarks.state.cells import HOUR_MS, MIB, make_context, resident_bytes
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.flushes import Settled
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.replica import Replica

Record = tuple[int, bytes, bytes | None]
_REPORTS_A_VALUE = 3


@dataclass(frozen=True)
class Taken:
    """The cost of a collection; `resident_bytes` is that of a reader in a process of its own."""

    cells: int
    state_bytes: int
    written_bytes: int
    cpu_seconds: float
    resident_bytes: int = 0


class Log:
    """The changelog of one partition, its replica and its owner."""

    def __init__(self, context: Context, partition: int) -> None:
        self.replica = Replica(context, partition)
        self.records: dict[bytes, Record] = {}
        self.end = self.written_bytes = self.offset = 0
        self.owner: Partition | None = None
        self.append([])

    def append(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Write records, compact, and read them back."""
        placed: list[Record] = []
        for key, value in records:
            placed.append((self.end, key, value))
            self.records[key] = placed[-1]
            if value is None:
                del self.records[key]
            self.end += 1
            self.written_bytes += len(key) + len(value or b"")
        self.replica.read(placed, position=self.end, end=self.end)

    def flush(self) -> None:
        """Write changed records, and delete dead ones."""
        flush = None if self.owner is None else self.owner.flush()
        if self.owner is not None and flush is not None:
            self.append([*flush.cells, flush.head])
            assert self.owner.settle() is Settled.WON
        self.append([(key, None) for key in self.replica.dead()])


def write(context: Context, *, partitions: int, panes: int) -> tuple[list[Log], float]:
    """Count reports into panes that close one after the other; return the logs and CPU seconds."""
    logs = [Log(context, p) for p in range(partitions)]
    replicas = [log.replica for log in logs]
    mechanism, rng = context.spec.mechanism, np.random.default_rng(1)
    values = np.tile(np.arange(mechanism.size), _REPORTS_A_VALUE)
    reports = mechanism.privatize(rng.permutation(values), entropy=SeededEntropy(1))
    begun = time.process_time()
    for pane in range(panes + 4):
        for p, log in enumerate(logs):
            if log.owner is None:
                log.owner = Partition.load(context, p, replicas, epoch=p + 1)
            if log.owner is not None:
                # The last panes only close what is before them.
                own = reports[p::partitions][: None if pane < panes else 1]
                times_ms = np.full(len(own), pane * HOUR_MS)
                frame = context.spec.frame_reports(own, times_ms=times_ms)
                log.owner.ingest([(log.offset, frame)], now_ms=(panes + 9) * HOUR_MS)
                log.offset += 1
                log.owner.clock(
                    replicas=replicas, controls=(), known_partitions=partitions, now_ms=0
                )
                log.owner.mark_published()
            log.flush()
    return logs, time.process_time() - begun


def measure(partitions: int, panes: int, values: int, sender: Connection) -> None:
    """Send the costs of writing, and then the records to the reading process."""
    logs, cpu_seconds = write(make_context(values), partitions=partitions, panes=panes)
    sizes = [len(k) + len(v or b"") for log in logs for _, k, v in log.records.values()]
    cells = sum(len(log.replica.cells) for log in logs)
    written = sum(log.written_bytes for log in logs)
    sender.send(Taken(cells, sum(sizes), written, cpu_seconds))
    sender.send([(list(log.records.values()), log.end) for log in logs])


def read(partitions: int, values: int, connection: Connection) -> None:
    """Read records into replicas, one log after the other; send the memory that this adds."""
    context = make_context(values)
    connection.send(0)
    before, replicas = resident_bytes(), []
    for p in range(partitions):
        records, end = connection.recv()
        replicas.append(Replica(context, p))
        replicas[-1].read(records, position=end, end=end)
        del records
    connection.send(resident_bytes() - before)


def taken(partitions: int, panes: int, values: int) -> Taken:
    """Measure in two fresh processes, whose memory holds nothing else."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    writing = context.Process(target=measure, args=(partitions, panes, values, sender))
    writing.start()
    sender.close()
    found, logs = receiver.recv(), receiver.recv()
    writing.join()
    ours, theirs = context.Pipe()
    reading = context.Process(target=read, args=(partitions, values, theirs))
    reading.start()
    theirs.close()
    ours.recv()
    for log in logs:
        ours.send(log)
    resident = ours.recv()
    reading.join()
    assert isinstance(found, Taken)
    return Taken(found.cells, found.state_bytes, found.written_bytes, found.cpu_seconds, resident)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what closed panes take.")
    parser.add_argument("--partitions", default="1,4,16,64")
    parser.add_argument("--panes", type=int, default=200)
    parser.add_argument("--values", type=int, default=1_000)
    given = parser.parse_args()
    title = f"{given.panes:,} closed panes of {given.values:,} values"
    table = Table(title_justify="left", title=title)
    columns = ("partitions", "cells", "state MiB", "B a pane", "written MiB", "replica MiB")
    for column in (*columns, "CPU s"):
        table.add_column(column, justify="right")
    for partitions in map(int, given.partitions.split(",")):
        found = taken(partitions, given.panes, given.values)
        table.add_row(
            str(partitions),
            f"{found.cells:,}",
            f"{found.state_bytes / MIB:.2f}",
            f"{found.state_bytes / given.panes:,.0f}",
            f"{found.written_bytes / MIB:.2f}",
            f"{found.resident_bytes / MIB:.1f}",
            f"{found.cpu_seconds:.1f}",
        )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
