"""Collections with large state on a real broker: their changelogs and workers."""

import asyncio
import itertools
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import numpy as np
from aiokafka import AIOKafkaProducer, TopicPartition
from tests.brokers import Broker
from tests.processes import Worker
from tests.seeded import SeededEntropy

from benchmarks.launch import launch
from ldpstream.agents.broker import clients
from ldpstream.agents.broker.metadata import TopicState
from ldpstream.agents.broker.topics import declare_topics
from ldpstream.agents.config import load_config
from ldpstream.agents.document.build import final_content
from ldpstream.agents.engine.changelog import ChangelogReader
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.flushes import Settled
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.replica import Replica
from ldpstream.mechanisms.interface.mechanism import Reports

HOUR_MS = 3_600_000
START_MS = 1_287_000_000_000 // HOUR_MS * HOUR_MS
OPEN = 'grace = "9000d", idle = "off"'
KEPT = 'grace = "0s", idle = "off", retention = "9000d"'
_PANES_A_FLUSH = 50
_numbers = itertools.count()


class StateLab:
    """A configuration file with one collection of hourly windows that stay open for years."""

    def __init__(
        self,
        broker: Broker,
        folder: Path,
        *,
        values: int,
        partitions: int,
        window: str = OPEN,
    ) -> None:
        # Another name than those of tests.lab, which may share the broker.
        run = f"state-{os.getpid()}-{next(_numbers)}"
        file = folder / "ldpstream.toml"
        options = "\n".join(f"{key} = {str(v).lower()}" for key, v in broker.options.items())
        file.write_text(f"""[kafka]
bootstrap = "{broker.bootstrap}"
{options}
session_timeout_ms = 6000
heartbeat_interval_ms = 1000
[worker]
id = "s-{run}"
http = "127.0.0.1:0"
[collection.trips]
mechanism = "block-hadamard"
epsilon = 1.0
domain = {{ size = {values}, blocks = {min(values, 100)} }}
topic = "trips-{run}"
partitions = {partitions}
window = {{ size = "1h", {window} }}
publish = {{ every = "5s", top = 5 }}
""")
        self.load(file)

    def load(self, file: Path, name: str = "trips") -> None:
        """Use a collection of the configuration file that exists."""
        self.file = file
        self.config = load_config(file, environment={})
        self.collection = self.config.collections[name]
        self.context = Context(
            spec=self.collection.spec,
            window=self.collection.window,
            make_final=final_content(self.collection),
        )

    @classmethod
    def of(cls, file: Path) -> "StateLab":
        """Return a lab with an existing configuration file."""
        lab = cls.__new__(cls)
        lab.load(file)
        return lab

    def start_worker(self) -> Worker:
        """Start a worker process; the caller has to kill it."""
        return launch(self.file, stderr=subprocess.PIPE)

    def frames(self, reports: int, *, kinds: int = 1, seed: int = 1) -> list[Reports]:
        """Return a template for each of `kinds` draws; `frame` makes a frame of any hour of it."""
        mechanism, rng = self.collection.spec.mechanism, np.random.default_rng(seed)
        drawn = []
        for kind in range(kinds):
            # Every value equally often; with more values than reports, a random subset.
            values = np.concatenate(
                [rng.permutation(mechanism.size) for _ in range(-(-reports // mechanism.size))]
            )[:reports]
            drawn.append(mechanism.privatize(values, entropy=SeededEntropy(seed + kind)))
        return drawn

    async def declare(self) -> Mapping[str, TopicState]:
        """Create missing topics, as a worker does, and return their state."""
        admin = clients.admin(self.config.kafka.bootstrap, self.config.kafka.options)
        await admin.start()
        try:
            return await declare_topics(admin, [self.collection], replication_factor=1)
        finally:
            await admin.close()


@asynccontextmanager
async def producing(lab: StateLab) -> AsyncIterator[AIOKafkaProducer]:
    """Open the worker's own kind of producer."""
    producer = clients.producer(lab.config.kafka.bootstrap, lab.config.kafka.options)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


async def fill(lab: StateLab, *, panes: int, flushes: int) -> tuple[int, int]:
    """Write a changelog with this many panes in every partition; return records and bytes.

    Panes whose grace has passed are closed, gathered and published.
    """
    await lab.declare()
    async with producing(lab) as producer:
        filling = _Filling(lab, producer)
        # The other partitions cannot be loaded before partition 0's head says how many there are.
        await filling.advance(0)
        for partition in range(lab.collection.partitions):
            await filling.count(partition, panes=panes, flushes=flushes)
        while [True for p in range(lab.collection.partitions) if await filling.advance(p)]:
            pass
        for partition in range(lab.collection.partitions):
            await filling.delete_dead(partition)
        await producer.flush()
    return filling.records, filling.written_bytes


class _Filling:
    """The owner of all partitions of a collection, and the size of what it has written."""

    def __init__(self, lab: StateLab, producer: AIOKafkaProducer) -> None:
        self.records = self.written_bytes = 0
        self._lab, self._producer = lab, producer
        partitions = range(lab.collection.partitions)
        self._replicas = [Replica(lab.context, p) for p in partitions]
        self._places = [0] * len(partitions)
        self._owned: dict[int, Partition] = {}
        self._drawn = lab.frames(lab.collection.spec.mechanism.size, kinds=16)
        for replica in self._replicas:
            replica.read([], position=0, end=0)

    async def count(self, p: int, *, panes: int, flushes: int) -> None:
        """Let one partition count a frame of every pane, this many times."""
        part, spec, topic = self._load(p), self._lab.collection.spec, self._lab.collection.topics
        now_ms = START_MS + panes * HOUR_MS
        for _ in range(flushes):
            for first in range(0, panes, _PANES_A_FLUSH):
                for pane in range(first, min(first + _PANES_A_FLUSH, panes)):
                    reports = self._drawn[pane % len(self._drawn)]
                    times_ms = np.full(len(reports), START_MS + pane * HOUR_MS)
                    frame = spec.frame_reports(reports, times_ms=times_ms)
                    part.ingest([(part.next, frame)], now_ms=now_ms)
                    # Its offset has been counted: nobody reads the message.
                    await self._producer.send(topic.source, b"", partition=p)
                await self._flush(p)

    async def advance(self, p: int) -> bool:
        """Close, gather and publish; return whether there was anything to write."""
        part = self._load(p)
        known = len(self._replicas)
        part.clock(replicas=self._replicas, controls=(), known_partitions=known, now_ms=0)
        part.publications()
        part.mark_published()
        return await self._flush(p)

    async def delete_dead(self, p: int) -> None:
        """Delete records that can no longer be part of the state, as owners do."""
        await self._append(p, [(key, None) for key in self._replicas[p].dead()])

    def _load(self, p: int) -> Partition:
        if p not in self._owned:
            part = Partition.load(self._lab.context, p, self._replicas, epoch=p + 1)
            assert part is not None
            self._owned[p] = part
        return self._owned[p]

    async def _flush(self, p: int) -> bool:
        flush = self._owned[p].flush()
        if flush is not None:
            await self._append(p, [*flush.cells, flush.head])
            assert self._owned[p].settle() is Settled.WON
        return flush is not None

    async def _append(self, p: int, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        log, changelog = [], self._lab.collection.topics.changelog
        for key, value in records:
            await self._producer.send(changelog, value, key, partition=p)
            log.append((self._places[p], key, value))
            self._places[p] += 1
            self.records += 1
            self.written_bytes += len(key) + len(value or b"")
        self._replicas[p].read(log, position=self._places[p], end=self._places[p])


class Collection:
    """A collection that is only read."""

    def __init__(self, lab: StateLab) -> None:
        self.config, self.context = lab.collection, lab.context
        self.replicas = [Replica(lab.context, p) for p in range(lab.collection.partitions)]


Read = Callable[[], Awaitable[None]]


@asynccontextmanager
async def open_replicas(lab: StateLab) -> AsyncIterator[tuple[list[Replica], Read]]:
    """Yield replicas and a call that reads them to the end of the changelog, as a worker does."""
    kafka = lab.config.kafka
    reader = clients.reader(kafka.bootstrap, kafka.options, committed_only=False)
    await reader.start()
    collection = Collection(lab)
    replicas = collection.replicas
    await lab.declare()
    evaluated, broken = asyncio.Event(), list[str]()

    def note(*problem: object) -> None:
        broken.extend(map(str, problem[1:]))
        if broken or all(replica.head is not None for replica in replicas):
            evaluated.set()

    async def read() -> None:
        topic = lab.collection.topics.changelog
        changelog = ChangelogReader(
            reader,
            {TopicPartition(topic, replica.partition): replica for replica in replicas},
            on_read=note,
            on_broken=note,
        )
        task = asyncio.create_task(changelog.run())
        try:
            await evaluated.wait()
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        if broken:
            raise RuntimeError(broken[0])

    try:
        yield replicas, read
    finally:
        await reader.stop()


def load_owned(lab: StateLab, replicas: Sequence[Replica]) -> list[Partition]:
    """Return the state that the owner of all partitions holds."""
    loaded = [Partition.load(lab.context, p, replicas, epoch=99) for p in range(len(replicas))]
    return [partition for partition in loaded if partition is not None]


def peak_bytes(pid: int | str = "self") -> int:
    """Return a process's peak of resident memory since its start."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if "VmHWM" in line).split()[1])
