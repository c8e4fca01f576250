"""A collection on a real broker for tests: its configuration, workers, devices and ledger.

Devices send known reports, so the ledger is exact: it holds the statistic of every window with
each report counted once.
"""

import asyncio
import copy
import itertools
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from numpy.typing import NDArray

from ldpstream.agents.broker import clients
from ldpstream.agents.broker.metadata import describe
from ldpstream.agents.broker.offsets import end_offsets
from ldpstream.agents.config import CollectionConfig, load_config
from ldpstream.agents.document.build import final_content
from ldpstream.agents.state.close_orders import Control, encode_control
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.view import totals
from tests import forked
from tests.brokers import Broker
from tests.configuring import collection, configuration
from tests.ledger import WINDOW_MS, Ledger
from tests.processes import PATIENCE_SECONDS, Worker
from tests.replicas import read_replicas

START_MS = 1_287_000_000_000 // WINDOW_MS * WINDOW_MS
"""October 2010: the event time of a replay is far from the wall clock."""

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "500",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "0",
}
"""Settings of a changelog that is compacted all the time."""
_numbers = itertools.count()
Client = TypeVar("Client", AIOKafkaConsumer, AIOKafkaProducer)


@asynccontextmanager
async def running(client: Client) -> AsyncIterator[Client]:
    """Start a client, and stop it at the end of the block."""
    await client.start()
    try:
        yield client
    finally:
        await client.stop()


class Lab:
    """A configuration file for one broker, with names that no other test uses."""

    def __init__(
        self,
        broker: Broker,
        folder: Path,
        *,
        names: Sequence[str] = ("trips",),
        partitions: int = 4,
        window: str = 'grace = "0s", idle = "off"',
        extra: str = "",
        collections: Mapping[str, str] | None = None,
    ) -> None:
        """`collections` are whole tables by name, without their topics, in place of `names`."""
        self.broker = broker
        self.file = folder / "ldpstream.toml"
        run = f"{os.getpid()}-{next(_numbers)}"
        alike = collection(partitions=partitions, window=window, extra=extra)
        bodies = collections or dict.fromkeys(names, alike)
        self.file.write_text(configuration(broker, bodies, run=run))
        self.config = load_config(self.file, environment={})
        self.collection = next(iter(self.config.collections.values()))
        self.ledger = Ledger(self.collection)
        self._rng = np.random.default_rng(1)

    def reload(self) -> None:
        """Read the configuration file again."""
        self.config = load_config(self.file, environment={})
        self.collection = self.config.collections[self.collection.name]

    def reports(self, n: int) -> NDArray[np.int64]:
        possible = self.collection.spec.mechanism.possible_reports()
        return possible[self._rng.integers(0, len(possible), n)]

    def frame(self, n: int, *, first_ms: int, last_ms: int) -> bytes:
        """Return a frame of n reports spread over a span of event time, and enter them."""
        reports = self.reports(n)
        times_ms = np.sort(self._rng.integers(first_ms, last_ms + 1, n))
        self.ledger.add(reports, times_ms)
        return self.collection.spec.frame_reports(reports, times_ms=times_ms)

    async def add_partitions(self, total: int) -> None:
        """Add partitions to the source, wait for them, and change the configuration."""
        source = self.collection.topics.source
        async with self.admin() as admin, asyncio.timeout(PATIENCE_SECONDS):
            await admin.create_partitions({source: NewPartitions(total)})
            while (await describe(admin, [source]))[source].partitions != total:  # noqa: ASYNC110 (the broker sends no event)
                await asyncio.sleep(0.05)
        text = self.file.read_text()
        self.file.write_text(
            text.replace(f"partitions = {self.collection.partitions}", f"partitions = {total}")
        )
        self.reload()

    def of(self, name: str) -> "Lab":
        """Return a lab of another collection of the same file, with its own ledger."""
        other = copy.copy(self)
        other.collection = self.config.collections[name]
        other.ledger = Ledger(other.collection)
        return other

    def changed(self, name: str, *changes: tuple[str, str]) -> "Lab":
        """Return a lab with its own ledger and file, which has texts of this one replaced.

        Broker, topics and group are the same.
        """
        other = copy.copy(self)
        text = self.file.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        other.file = self.file.with_name(name)
        other.file.write_text(text)
        other.reload()
        other.ledger = Ledger(other.collection)
        return other

    # --- clients -------------------------------------------------------------------------------

    def producer(self, **options: object) -> AbstractAsyncContextManager[AIOKafkaProducer]:
        kafka = self.config.kafka
        return running(clients.producer(kafka.bootstrap, {**kafka.options, **options}))

    def reader(
        self, *, committed_only: bool = False
    ) -> AbstractAsyncContextManager[AIOKafkaConsumer]:
        kafka = self.config.kafka
        return running(
            clients.reader(
                kafka.bootstrap, kafka.options, committed_only=committed_only, wait_ms=100
            )
        )

    def transactional_producer(
        self, name: str = ""
    ) -> AbstractAsyncContextManager[AIOKafkaProducer]:
        own = f"{self.collection.topics.source}{name}"
        bootstrap = self.broker.bootstrap
        return running(AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=own))

    @asynccontextmanager
    async def admin(self) -> AsyncIterator[AIOKafkaAdminClient]:
        admin = clients.admin(self.config.kafka.bootstrap, self.config.kafka.options)
        await admin.start()
        try:
            yield admin
        finally:
            await admin.close()

    async def create(
        self,
        topic: str,
        *,
        partitions: int,
        replicas: int = 1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic, and wait until the broker lists it."""
        new = NewTopic(topic, partitions, replicas, topic_configs=dict(configs or {}))
        async with self.admin() as admin, asyncio.timeout(PATIENCE_SECONDS):
            while topic not in await describe(admin, [topic]):
                await admin.create_topics([new])
                await asyncio.sleep(0.1)

    async def delete(self, topic: str) -> None:
        """Delete a topic, and wait until the broker no longer lists it."""
        async with self.admin() as admin:
            before = (await describe(admin, [topic]))[topic]
            await admin.delete_topics([topic])
            # A running worker may create the topic again, with another id.
            async with asyncio.timeout(PATIENCE_SECONDS):
                while (left := (await describe(admin, [topic])).get(topic)) and left == before:  # noqa: ASYNC110 (the broker sends no event)
                    await asyncio.sleep(0.05)

    async def delete_before(self, partition: TopicPartition, offset: int) -> None:
        async with self.admin() as admin:
            await admin.delete_records({partition: RecordsToDelete(before_offset=offset)})

    async def records(
        self, topic: str, *, committed_only: bool = False
    ) -> list[ConsumerRecord[bytes, bytes]]:
        """Return all records that a topic holds now."""
        async with self.reader(committed_only=committed_only) as reader:
            partitions = [TopicPartition(topic, p) for p in await _partitions(reader, topic)]
            ends = await end_offsets(reader, partitions)
            await reader.seek_to_beginning(*partitions)
            found: list[ConsumerRecord[bytes, bytes]] = []
            while any([await reader.position(p) < ends[p] for p in partitions]):
                for batch in (await reader.getmany(timeout_ms=100)).values():
                    found += batch
            return found

    async def close(self, until_ms: int, *, collection: CollectionConfig | None = None) -> None:
        """Order all panes closed up to a time, as the `close` command does."""
        topics = (collection or self.collection).topics
        async with self.reader() as reader, self.producer() as producer:
            source = [
                TopicPartition(topics.source, p) for p in await _partitions(reader, topics.source)
            ]
            ends = await end_offsets(reader, source)
            control = Control(until_ms, {p.partition: end for p, end in ends.items()})
            await producer.send_and_wait(topics.control, encode_control(control), partition=0)

    # --- answers --------------------------------------------------------------------------------

    async def finals(self) -> dict[int, list[dict[str, Any]]]:
        """Return the final documents published so far, by start of the window, in epoch ms."""
        found: dict[int, list[dict[str, Any]]] = {}
        for record in await self.records(self.collection.topics.estimates):
            document = json.loads(record.value or b"")
            own = document["fingerprint"] == self.collection.spec.fingerprint.hex()
            if document["final"] and own:
                start = np.datetime64(document["window"]["start"].rstrip("Z"), "ms")
                found.setdefault(int(start.astype(np.int64)), []).append(document)
        return found

    async def heads(self, *, of: "Lab | None" = None) -> list[Head]:
        """Return every partition's head as the changelog has it.

        `of` is the lab whose collection accepts this one; the partitions are those of its topics.
        """
        topics = self.collection if of is None else of.collection
        return [replica.head or Head() for replica in await self._replicas(topics)]

    async def statistics(self) -> dict[int, NDArray[np.int64]]:
        """Return the statistic of every window of the ledger as the changelog has it."""
        replicas, size_ms = await self._replicas(self.collection), self.collection.window.size_ms
        return {
            start: totals(self.context, replicas, start, start + size_ms).statistic
            for start in self.ledger.windows
        }

    @property
    def context(self) -> Context:
        one = self.collection
        return Context(spec=one.spec, window=one.window, make_final=final_content(one))

    async def _replicas(self, topics: CollectionConfig) -> list[Replica]:
        async with self.reader() as reader:
            return await read_replicas(reader, topics, self.context)

    async def check_exact(self, *, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until every window of the ledger is final, and compare with the ledger.

        Counts in the changelog are the ledger's, report for report; finals have the ledger's n,
        and every copy of a final is the same.
        """
        wanted = {start: int(s.sum()) for start, s in self.ledger.windows.items()}
        deadline = time.monotonic() + seconds
        finals = await self.finals()
        while not wanted.keys() <= finals.keys() and time.monotonic() < deadline:
            await asyncio.sleep(0.3)
            finals = await self.finals()
        got = {start: documents[0]["n"] for start, documents in finals.items()}
        assert got == wanted, [(head.next, head.n, head.clock) for head in await self.heads()]
        for documents in finals.values():
            assert all(document == documents[0] for document in documents)
        for start, statistic in (await self.statistics()).items():
            np.testing.assert_array_equal(statistic, self.ledger.windows[start])

    # --- workers --------------------------------------------------------------------------------

    @contextmanager
    def worker(self, *, environment: Mapping[str, str] | None = None) -> Iterator["Worker"]:
        """Run a worker process and wait until it is ready; kill it at the end if it still runs."""
        with _ready(self.start_worker(environment=environment)) as worker:
            yield worker

    def start_worker(
        self,
        *,
        command: str = "worker",
        file: Path | None = None,
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        stderr: int | IO[bytes] = subprocess.PIPE,
    ) -> "Worker":
        """Start a worker, or another long-running command; the caller has to kill it."""
        words = [command, "-c", str(file or self.file), *arguments]
        variables = {**os.environ, **(environment or {})}
        process = forked.start(words, environment=variables, stderr=stderr)
        return Worker(process)

    def refusal(self) -> list[str]:
        """Return the lines with which a worker ends that cannot start."""
        worker = self.start_worker()
        try:
            assert worker.wait() == 1
            return worker.errors().splitlines()
        finally:
            worker.kill()


@contextmanager
def _ready(worker: Worker) -> Iterator[Worker]:
    try:
        worker.wait_ready()
        yield worker
    finally:
        worker.kill()


async def _partitions(reader: AIOKafkaConsumer, topic: str) -> list[int]:
    reader.assign([TopicPartition(topic, 0)])
    await reader._client.force_metadata_update()
    return sorted(reader.partitions_for_topic(topic) or [0])
