"""A pipeline without a broker: real replicas and real partitions over changelogs held in lists."""

import itertools
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from ldpstream.agents import web
from ldpstream.agents.broker.health import BrokerWatch
from ldpstream.agents.config import CollectionConfig, WorkerConfig, read_config
from ldpstream.agents.document.build import final_content
from ldpstream.agents.engine.clock import WorkerClock
from ldpstream.agents.engine.gauges import track
from ldpstream.agents.engine.metrics import Metrics
from ldpstream.agents.engine.waits import Wait
from ldpstream.agents.state.close_orders import Control
from ldpstream.agents.state.closing import SeenHeads
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.flushes import Settled
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.replica import Replica
from ldpstream.mechanisms.base.times import parse_time
from ldpstream.mechanisms.wire.frame import encode_frame
from tests.seeded import SeededEntropy

START_MS = 1_795_255_200_000  # 2026-11-21T10:00:00Z
MINUTE_MS = 60_000
_EPOCHS = itertools.count(1)  # No two are the same, as of random ones.

CITY: dict[str, Any] = {
    "mechanism": "block-hadamard",
    "epsilon": 1.0,
    "domain": {"grid": [6, 10], "blocks": [3, 5]},
    "partitions": 2,
    "minimum": 1,
    "window": {"size": "1m", "idle": "off", "future": "1m", "retention": "1h"},
    "publish": {"top": 5, "ranges": {"downtown": [[1, 2], [2, 4]]}},
}
RIDES: dict[str, Any] = {
    "mechanism": "block-hadamard",
    "epsilon": 2.0,
    "domain": {"values": ["bus", "train", "tram"]},
    "partitions": 1,
    "window": {"size": "1m"},
}
AGES: dict[str, Any] = {
    "mechanism": "block-hadamard",
    "epsilon": 1.0,
    "domain": {"interval": [0.0, 100.0], "bins": 10},
    "partitions": 1,
    "minimum": 0,
    "window": {"size": "2m", "hop": "1m", "retention": "1h"},
    "publish": {"top": 3, "quantiles": [0.5]},
}


@dataclass
class Served:
    """One collection and its changelogs; every partition has one owner, this process."""

    config: CollectionConfig
    context: Context
    replicas: list[Replica]
    owned: frozenset[int]
    parts: list[Partition]
    logs: list[list[tuple[int, bytes, bytes | None]]]
    read: list[int]
    end_offsets: dict[int, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    accepted: tuple["Served", ...] = ()
    partial: bool = False
    waits: Sequence[Wait] = ()

    @property
    def stopped(self) -> bool:
        """As in an engine."""
        return bool(self.problems)

    @property
    def ready(self) -> bool:
        """As in an engine."""
        return not self.problems and all(replica.head is not None for replica in self.replicas)

    def report(
        self, partition: int, labels: Sequence[Any], *, times_ms: Sequence[int], seed: int = 1
    ) -> None:
        """Count reports of these labels, made with a seed, at the time of the last of them."""
        frame = self.config.spec.frame(labels, times_ms=times_ms, entropy=SeededEntropy(seed))
        self.deliver(partition, frame, now_ms=max(START_MS, *times_ms))

    def deliver(self, partition: int, value: bytes, *, now_ms: int = START_MS) -> None:
        """Take in a message, and let the head that includes it win."""
        part = self.parts[partition]
        part.ingest([(part.next, value)], now_ms=now_ms)
        self.end_offsets[partition] = part.next
        self.settle()

    def close(self, until_ms: int) -> None:
        """Close all panes up to a time, as `ldpstream close` does, and publish what is final."""
        for _ in range(3):
            seen = SeenHeads.of(self.replicas)
            for part in self.parts:
                part.clock(
                    replicas=self.replicas,
                    controls=[Control(until_ms, {})],
                    known_partitions=len(self.parts),
                    now_ms=START_MS,
                    heads_seen=seen,
                )
            self.settle()
            self.parts[0].publications()
            self.parts[0].mark_published()

    def settle(self) -> None:
        """Flush every partition into its log, and let every replica read to the end."""
        for partition, part in enumerate(self.parts):
            flush = part.flush()
            if flush is None:
                continue
            log = self.logs[partition]
            for key, value in (*flush.cells, flush.head):
                log.append((len(log), key, value))
            self.replicas[partition].read(
                log[self.read[partition] :], position=len(log), end=len(log)
            )
            self.read[partition] = len(log)
            assert part.settle() is Settled.WON


@dataclass
class Pipeline:
    """Collections by name."""

    collections: Mapping[str, Served]
    broker_watch: BrokerWatch = field(default_factory=BrokerWatch)
    failed: bool = False
    clock: WorkerClock = field(default_factory=lambda: WorkerClock(1_000))
    metrics: Metrics = field(default_factory=Metrics)

    def __post_init__(self) -> None:
        track(cast("Any", self), self.metrics)


def serve(
    pipeline: Any, *, host: str = "127.0.0.1", port: int = 0, **keys: Any
) -> AbstractAsyncContextManager[str]:
    """Serve a pipeline at an address, with these keys of `[worker]`."""
    worker = WorkerConfig(http=f"{host}:{port}").model_copy(update=keys)
    return web.serve(pipeline, worker)


def stopped_clock(time: str) -> WorkerClock:
    """Return a worker's clock that always shows this time, RFC 3339."""
    time_ms = parse_time(time)
    return WorkerClock(1_000, wall_ms=lambda: time_ms, seconds=lambda: 0.0)


def read_city(**changes: object) -> CollectionConfig:
    """Return the collection `city`, with keys of its table added or changed."""
    tables = {"collection": {"city": {**CITY, **changes}}}
    return read_config(tables, base=Path(), environment={}).collections["city"]


def serve_collections(tables: Mapping[str, Mapping[str, Any]], *, read: bool = True) -> Pipeline:
    """Return a pipeline of these `[collection.NAME]` tables with empty logs, which are `read`."""
    config = read_config({"collection": dict(tables)}, base=Path(), environment={})
    return Pipeline({name: _serve(one, read) for name, one in config.collections.items()})


def _serve(config: CollectionConfig, read: bool) -> Served:
    context = Context(
        spec=config.spec,
        window=config.window,
        make_final=final_content(config),
        chunk=16,
        minimum=config.minimum,
        minimum_block=config.minimum_block,
    )
    count = config.partitions
    replicas = [Replica(context, partition) for partition in range(count)]
    served = Served(
        config, context, replicas, frozenset(range(count)), [], [[] for _ in replicas], [0] * count
    )
    if read:
        for replica in replicas:
            replica.read([], position=0, end=0)
        served.parts = [_load(context, partition, replicas) for partition in range(count)]
    return served


def _load(context: Context, partition: int, replicas: Sequence[Replica]) -> Partition:
    if partition:
        # A partition waits until the head of partition 0 includes it; here it starts at once.
        head = replicas[partition].head
        assert head is not None
        return Partition(context, replicas[partition], head, epoch=next(_EPOCHS))
    part = Partition.load(context, partition, replicas, epoch=next(_EPOCHS))
    assert part is not None
    return part


def visits(seed: int, n: int) -> list[list[int]]:
    """Return n places of the grid, the corner by far the most visited."""
    rng = np.random.default_rng(seed)
    return [[int(6 * u**3), int(10 * v**3)] for u, v in rng.random((n, 2))]


def foreign_frame() -> bytes:
    """Return a frame of a spec that no collection has."""
    times = np.array([START_MS], dtype=np.int64)
    return encode_frame(b"\0" * 8, times, np.zeros((1, 1), dtype=np.uint8))
