"""The memory of a cell of the state in a worker.

    python -m benchmarks.state.cells --panes 10000,100000 --values 1000
    python -m benchmarks.state.cells --panes 2000 --values 43750

Every line is a process of its own, without a broker: a replica reads the changelog of one partition
with this many closed panes that are kept, each with about three reports a value, in fetches of 500
records. `replica` is the resident memory that this adds, `cell` the same divided by the number of
live cells, `owner` the memory that loading the partition adds, and `CPU` the processor time of
reading, generating the records included.
"""

import argparse
import gc
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from ldpstream.agents.state.cell_encoding import Totals, encode_chunk, encode_totals
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.encoding import encode_head, encode_key, state_prefix
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.records import HEAD, Head, Key, Name
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.wire.spec import CollectionSpec

MIB = 1 << 20
HOUR_MS = 3_600_000
EPOCH = 1 << 60
PANES_A_FLUSH = 100
_RECORDS_A_FETCH = 500
_FETCHES_A_READ = 40
_MEAN = 3

Record = tuple[int, bytes, bytes | None]


@dataclass(frozen=True)
class Taken:
    """The cost of one changelog."""

    cells: int
    values_bytes: int
    replica_bytes: int
    owner_bytes: int
    cpu_seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the memory of cells.")
    parser.add_argument(
        "--panes", default="10000,100000", help="closed panes, each a multiple of 100"
    )
    parser.add_argument("--values", type=int, default=1_000)
    given = parser.parse_args()
    sizes = [int(panes) for panes in given.panes.split(",")]
    if any(panes < PANES_A_FLUSH or panes % PANES_A_FLUSH for panes in sizes):
        parser.error(f"--panes: expected multiples of {PANES_A_FLUSH}")
    table = Table(title_justify="left", title=f"{given.values:,} values, one partition")
    for column in ("panes", "cells", "values MiB", "replica MiB", "B a cell", "owner MiB"):
        table.add_column(column, justify="right")
    table.add_column("CPU s", justify="right")
    for panes in sizes:
        taken = _apart(panes, given.values)
        table.add_row(
            f"{panes:,}",
            f"{taken.cells:,}",
            f"{taken.values_bytes / MIB:.1f}",
            f"{taken.replica_bytes / MIB:.1f}",
            f"{taken.replica_bytes / taken.cells:,.0f}",
            f"{taken.owner_bytes / MIB:.1f}",
            f"{taken.cpu_seconds:.1f}",
        )
    Console(width=100).print(table)


def _apart(panes: int, values: int) -> Taken:
    """Measure in a fresh process, whose memory holds nothing else."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(panes, values, sender))
    process.start()
    sender.close()
    taken = receiver.recv()
    process.join()
    assert isinstance(taken, Taken)
    return taken


def _send(panes: int, values: int, sender: Connection) -> None:
    sender.send(measure(panes, values))


def measure(panes: int, values: int) -> Taken:
    """Read a changelog, and then load the partition as its owner does."""
    context = make_context(values)
    # The memory for generating records does not count.
    list(changelog(context, PANES_A_FLUSH))
    before = resident_bytes()
    replica = Replica(context, 0)
    begun = time.process_time()
    _read(replica, changelog(context, panes))
    cpu_seconds = time.process_time() - begun
    after = resident_bytes()
    owned = Partition.load(context, 0, [replica], epoch=EPOCH - 1)
    assert owned is not None
    return Taken(
        cells=len(replica.cells),
        values_bytes=replica.size_bytes,
        replica_bytes=after - before,
        owner_bytes=resident_bytes() - after,
        cpu_seconds=cpu_seconds,
    )


def make_context(values: int) -> Context:
    """Return a collection with windows of an hour that are kept for years."""
    mapping = {
        "mechanism": "block-hadamard",
        "epsilon": 1.0,
        "domain": {"size": values, "blocks": 100},
    }
    spec = CollectionSpec.from_mapping("cells", mapping, base=Path())
    window = WindowSpec(size_ms=HOUR_MS, hop_ms=HOUR_MS, retention_ms=1 << 50)
    return Context(spec=spec, window=window, make_final=lambda _: b"")


def changelog(context: Context, panes: int) -> Iterator[Record]:
    """Yield the records of a partition whose panes were each written once and then closed."""
    prefix, rng = state_prefix(context), np.random.default_rng(1)
    offset = n = 0
    for seq in range(1, panes // PANES_A_FLUSH + 1):
        cells: list[tuple[Name, bytes]] = []
        for pane in range((seq - 1) * PANES_A_FLUSH, seq * PANES_A_FLUSH):
            counts = rng.poisson(_MEAN, context.spec.mechanism.statistic_size)
            for start in range(0, len(counts), context.chunk):
                chunk = encode_chunk(counts[start : start + context.chunk])
                cells.append((Name("count", pane, start // context.chunk), chunk))
            total = int(counts.sum())
            n += total
            cells.append((Name("n", pane), encode_totals(Totals(total, 0, total))))
        head = Head(
            epoch=EPOCH, seq=seq, next=seq, closed=panes, n=n, partitions=1, lineage={EPOCH: seq}
        )
        for name, value in (*cells, (HEAD, encode_head(head))):
            yield offset, encode_key(prefix, Key(name, EPOCH, seq)), value
            offset += 1


def _read(replica: Replica, records: Iterator[Record]) -> None:
    """Let a replica read as from a broker: in fetches, and rarely at the log's end."""
    fetches, fetched = 0, list[Record]()
    for record in records:
        fetched.append(record)
        if len(fetched) == _RECORDS_A_FETCH:
            fetches += 1
            position = record[0] + 1
            end = position + (fetches % _FETCHES_A_READ > 0)
            replica.read(fetched, position=position, end=end)
            fetched = []
    position = record[0] + 1
    assert replica.read(fetched, position=position, end=position)


def resident_bytes() -> int:
    """Return this process's resident memory."""
    gc.collect()
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmRSS:")[2].split()[0])


if __name__ == "__main__":
    main()
