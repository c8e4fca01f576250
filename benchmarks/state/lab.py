"""Collections with much state on a real broker, for measuring: their changelogs and workers."""

import asyncio
import itertools
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import numpy as np
from aiokafka import AIOKafkaProducer, TopicPartition
from tests.brokers import Broker
from tests.processes import Worker
from tests.seeded import SeededEntropy

from ldpstream.agents.config import load_config
from ldpstream.agents.kafka import clients
from ldpstream.agents.kafka.declare import declare_topics
from ldpstream.agents.kafka.metadata import TopicState
from ldpstream.agents.partition.flushes import Settled
from ldpstream.agents.partition.partition import Partition
from ldpstream.agents.reading.changelog import ChangelogReader
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.stores.choice import Stores
from ldpstream.mechanisms.interface.mechanism import Reports

HOUR_MS = 3_600_000
START_MS = 1_287_000_000_000 // HOUR_MS * HOUR_MS
OPEN = 'grace = "9000d", idle = "off"'
KEPT = 'grace = "0s", idle = "off", retention = "9000d"'
_PANES_A_FLUSH = 50
_WORKER = "import sys; from ldpstream.agents.cli.main import main; main(sys.argv[1:])"
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
        store: str = "memory",
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
store = "{store}"
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
        """Take a collection of the configuration that is written there."""
        self.file = file
        self.config = load_config(file, environment={})
        self.collection = self.config.collections[name]
        self.context = Context(
            spec=self.collection.spec, window=self.collection.window, compose=lambda _: b""
        )

    @classmethod
    def of(cls, file: Path) -> "StateLab":
        """Return the lab whose configuration has been written before."""
        lab = cls.__new__(cls)
        lab.load(file)
        return lab

    def start_worker(self) -> Worker:
        """Start a worker process; the caller has to kill it."""
        return Worker(
            subprocess.Popen(
                [sys.executable, "-c", _WORKER, "worker", "-c", str(self.file)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        )

    def frames(self, reports: int, *, kinds: int = 1, seed: int = 1) -> list[Reports]:
        """Return, for each of `kinds` draws, what makes a frame of any hour: see `frame`."""
        mechanism, rng = self.collection.spec.mechanism, np.random.default_rng(seed)
        drawn = []
        for kind in range(kinds):
            # Every value as often as any other; of more values than reports some, at random.
            values = np.concatenate(
                [rng.permutation(mechanism.size) for _ in range(-(-reports // mechanism.size))]
            )[:reports]
            drawn.append(mechanism.privatize(values, entropy=SeededEntropy(seed + kind)))
        return drawn

    async def declare(self) -> Mapping[str, TopicState]:
        """Create the topics where they are not yet, as a worker does, and return their state."""
        admin = clients.admin(self.config.kafka.bootstrap, self.config.kafka.options)
        await admin.start()
        try:
            return await declare_topics(admin, self.collection, replication_factor=1)
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
    """Write a changelog with so many open panes in every partition; return records and bytes."""
    await lab.declare()
    written = [0, 0]
    async with producing(lab) as producer:
        replicas = [Replica(lab.context, p) for p in range(lab.collection.partitions)]
        for replica in replicas:
            replica.read([], position=0, end=0)
        for replica in replicas:
            await _fill_partition(
                lab, producer, replicas, replica.partition, panes, flushes, written
            )
    return written[0], written[1]


async def _fill_partition(
    lab: StateLab,
    producer: AIOKafkaProducer,
    replicas: Sequence[Replica],
    p: int,
    panes: int,
    flushes: int,
    written: list[int],
) -> None:
    spec, now_ms = lab.collection.spec, START_MS + panes * HOUR_MS
    part = Partition.load(lab.context, p, replicas, epoch=p + 1)
    assert part is not None
    reports = lab.frames(2 * spec.mechanism.size, kinds=16)
    place, offset = 0, 0
    for _ in range(flushes):
        for first in range(0, panes, _PANES_A_FLUSH):
            for pane in range(first, min(first + _PANES_A_FLUSH, panes)):
                chosen = reports[pane % len(reports)]
                times_ms = np.full(len(chosen), START_MS + pane * HOUR_MS)
                frame = spec.frame_reports(chosen, times_ms=times_ms)
                part.ingest([(offset, frame)], now_ms=now_ms)
                await producer.send(lab.collection.topics.source, frame, partition=p)
                offset += 1
            flush = part.flush()
            assert flush is not None
            log = []
            for key, value in (*flush.cells, flush.head):
                await producer.send(lab.collection.topics.changelog, value, key, partition=p)
                log.append((place, key, value))
                place += 1
                written[0] += 1
                written[1] += len(key) + len(value)
            replicas[p].read(log, position=place, end=place)
            assert part.settle() is Settled.WON
    await producer.flush()


class Collection:
    """A collection that is read and nothing else."""

    def __init__(self, lab: StateLab) -> None:
        self.config, self.context = lab.collection, lab.context
        self.replicas = [Replica(lab.context, p) for p in range(lab.collection.partitions)]


Read = Callable[[], Awaitable[None]]


@asynccontextmanager
async def open_replicas(lab: StateLab) -> AsyncIterator[tuple[list[Replica], Read]]:
    """Yield replicas and what reads them up to the end of their changelog, as a worker does."""
    kafka = lab.config.kafka
    reader = clients.reader(kafka.bootstrap, kafka.options, committed_only=False)
    await reader.start()
    collection = Collection(lab)
    replicas, topics = collection.replicas, await lab.declare()
    stores = Stores(lab.config.worker)
    evaluated, broken = asyncio.Event(), list[str]()

    def note(*problem: object) -> None:
        broken.extend(map(str, problem[1:]))
        if broken or all(replica.head is not None for replica in replicas):
            evaluated.set()

    def topic_id(name: str) -> bytes:
        found = topics[name].id
        return b"" if found is None else found.bytes

    async def read() -> None:
        resumed = stores.open([collection], topic_id)
        topic = lab.collection.topics.changelog
        changelog = ChangelogReader(
            reader,
            {TopicPartition(topic, replica.partition): replica for replica in replicas},
            resumed=resumed,
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
        stores.close()
        await reader.stop()


def load_owned(lab: StateLab, replicas: Sequence[Replica]) -> list[Partition]:
    """Return what the owner of all partitions holds of them."""
    loaded = [Partition.load(lab.context, p, replicas, epoch=99) for p in range(len(replicas))]
    return [partition for partition in loaded if partition is not None]


def peak_bytes(pid: int | str = "self") -> int:
    """Return the most memory that a process has had resident since it was started."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if "VmHWM" in line).split()[1])
