"""A small world without faults: logs in lists, and every send lands at once, in order."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from ldpstream.agents.state.close_orders import Control
from ldpstream.agents.state.closing import Publication
from ldpstream.agents.state.context import Context, WindowTotals
from ldpstream.agents.state.flushes import Copy, Flush, Settled
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.wire.frame import encode_frame
from ldpstream.mechanisms.wire.spec import CollectionSpec

HOUR_MS = 3_600_000


@cache
def make_spec(size: int = 2, precision: str = "1ms", name: str = "tested") -> CollectionSpec:
    mapping = {"mechanism": "block-hadamard", "epsilon": 1.0, "domain": {"size": size}}
    if size == 2:
        mapping |= {"mechanism": "binary", "epsilon": [1.0, 1.0]}
    return CollectionSpec.from_mapping(name, mapping | {"precision": precision}, base=Path())


def tell(totals: WindowTotals) -> bytes:
    """Return a final's content as text: `start n late rejected counts`."""
    counts = ",".join(map(str, totals.statistic.tolist()))
    return f"{totals.start_ms} {totals.n} {totals.late} {totals.rejected} {counts}".encode()


def make_context(
    window: WindowSpec,
    *,
    spec: CollectionSpec | None = None,
    make_final: Callable[[WindowTotals], bytes] = tell,
    **options: Any,
) -> Context:
    return Context(spec=spec or make_spec(), window=window, make_final=make_final, **options)


def frame(*reports: tuple[int, int], spec: CollectionSpec | None = None) -> bytes:
    """Return a frame of reports `(event time in ms, symbol)`; symbols may be out of range."""
    spec = spec or make_spec()
    width = spec.mechanism.report_bytes
    times_ms = np.array([time_ms for time_ms, _ in reports])
    symbols = np.array([symbol for _, symbol in reports], dtype="<u8")
    payload = symbols[:, None].view(np.uint8)[:, :width]
    return encode_frame(spec.fingerprint, times_ms, payload)


def loaded(context: Context) -> tuple[Replica, Partition]:
    """Return an empty partition and its replica."""
    replica = Replica(context, 0)
    replica.read([], position=0, end=0)
    part = Partition.load(context, 0, [replica], epoch=1)
    assert part is not None
    return replica, part


def settle(replica: Replica, part: Partition, *, start: int = 0) -> Flush:
    """Write a flush to the replica's log, from an offset on, and read it back; it wins."""
    flush = part.flush()
    records = [(at, *record) for at, record in enumerate([*flush.cells, flush.head], start)]
    end = start + len(records)
    replica.read(records, position=end, end=end)
    assert part.settle() is Settled.WON
    return flush


class Cluster:
    """All partitions of a collection, with an owner each; the test moves the clock."""

    def __init__(self, context: Context, *, partitions: int = 1, now_ms: int = 0) -> None:
        self.context, self.now_ms, self.partitions = context, now_ms, partitions
        self.epochs = count(1)
        self.source: list[list[bytes | None]] = [[] for _ in range(8)]
        self.log: list[list[tuple[int, bytes, bytes | None]]] = [[] for _ in range(8)]
        self.read = [0] * 8
        self.replicas = [Replica(context, p) for p in range(8)]
        self.parts: dict[int, Partition] = {}
        self.controls: list[Control] = []
        self.probed_ms: dict[int, int] = {}
        self.copies: list[Copy] = []
        self.published: list[Publication] = []
        self.committed = [0] * 8
        for p in range(8):
            self.catch_up(p)

    def catch_up(self, p: int) -> None:
        records = self.log[p][self.read[p] :]
        self.read[p] = len(self.log[p])
        self.replicas[p].read(records, position=self.read[p], end=self.read[p])

    def head(self, p: int = 0) -> Head:
        head = self.replicas[p].head
        assert head is not None
        return head

    def produce(self, p: int, *messages: bytes | None) -> None:
        self.source[p] += messages

    def take_over(self, p: int) -> Partition | None:
        """Let a new owner load the partition; the one before is gone."""
        self.parts.pop(p, None)
        self.probed_ms.pop(p, None)
        part = Partition.load(self.context, p, self.replicas, epoch=next(self.epochs))
        if part is not None:
            self.parts[p] = part
        return part

    def part(self, p: int = 0) -> Partition:
        part = self.parts.get(p) or self.take_over(p)
        assert part is not None
        return part

    def ingest(self, p: int) -> None:
        part = self.part(p)
        records = list(enumerate(self.source[p]))[part.next :]
        part.ingest(records, now_ms=self.now_ms)
        if records:
            end = len(self.source[p])
            part.read_to(end, end=end, asked_ms=self.now_ms - 1)

    def probe(self, p: int) -> None:
        """Probe the end of the log once for every second since the last probe."""
        part, end = self.part(p), len(self.source[p])
        # Probes long before the idle time do not matter, and a step may be hours.
        start_ms = max(self.probed_ms.get(p, self.now_ms), self.now_ms - 100_000)
        for asked_ms in (*range(start_ms, self.now_ms, 1_000), self.now_ms):
            part.read_to(part.next, end=end, asked_ms=asked_ms)
        self.probed_ms[p] = self.now_ms

    def clock(self, p: int, *, probed: bool = True) -> None:
        if probed:
            self.probe(p)
        self.part(p).clock(
            replicas=self.replicas,
            controls=self.controls,
            known_partitions=self.partitions,
            now_ms=self.now_ms,
        )

    def flush(self, p: int) -> Flush | None:
        part = self.part(p)
        flush = part.flush()
        if flush is None:
            return None
        self.copies += flush.copies
        for key, value in (*flush.cells, flush.head):
            self.log[p].append((len(self.log[p]), key, value))
        self.catch_up(p)
        assert part.settle() is Settled.WON
        self.committed[p] = part.base.next
        return flush

    def publish(self) -> None:
        part = self.part(0)
        self.published += part.publications()
        part.mark_published()

    def sweep(self, p: int) -> None:
        for key in self.replicas[p].dead():
            self.log[p].append((len(self.log[p]), key, None))
        self.catch_up(p)

    def step(self, elapsed_ms: int = 0) -> list[Flush]:
        """Do everything once in every partition, and return the flushes."""
        self.now_ms += elapsed_ms
        flushes = []
        for p in range(self.partitions):
            if p in self.parts or self.take_over(p) is not None:
                self.ingest(p)
                self.clock(p)
                if p == 0:
                    self.publish()
                flushes.append(self.flush(p))
        return [flush for flush in flushes if flush is not None]

    def steps(self, times: int, elapsed_ms: int = 0) -> list[Flush]:
        return [flush for _ in range(times) for flush in self.step(elapsed_ms)]

    def finals(self) -> list[str]:
        return [publication.content.decode() for publication in self.published]

    def close(self, until_ms: int, ends: Sequence[int] | None = None) -> None:
        sizes = [len(source) for source in self.source[: self.partitions]]
        self.controls.append(Control(until_ms, dict(enumerate(ends or sizes))))
