"""`ldpstream send`: privatize value lines, and produce the reports.

Reports are read, framed and sent in the order of the input's lines: round robin over partitions, in
large batches, in bounded memory.
"""

import asyncio
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Final

import click
import numpy as np
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from rich.console import Console

from ldpstream.agents.broker.record_time import now_ms, record_time_ms
from ldpstream.agents.broker.refusals import explain
from ldpstream.agents.cli.terminal import broker
from ldpstream.agents.cli.terminal.common import (
    CHUNK,
    count,
    load_collection,
    refuse_one_report,
    refuse_words,
)
from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.agents.cli.terminal.ledgers import opened, releases
from ldpstream.agents.cli.terminal.options import ReadingOptions, Spending
from ldpstream.agents.cli.terminal.reports import read_reports
from ldpstream.agents.cli.terminal.value_options import Reading
from ldpstream.agents.cli.terminal.values import read_values
from ldpstream.agents.config import CollectionConfig, KafkaConfig
from ldpstream.agents.device import Sender
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.interface.mechanism import Reports
from ldpstream.mechanisms.ledger import Ledger, Release
from ldpstream.mechanisms.wire.one_report import Tokens
from ldpstream.mechanisms.wire.spec import CollectionSpec

_IN_FLIGHT: Final = 64


@dataclass
class Acknowledged:
    """What the broker has acknowledged so far."""

    messages: int = 0
    reports: int = 0


@dataclass
class _Batch:
    builder: Any  # aiokafka's BatchBuilder, which has no types
    messages: int = 0
    reports: int = 0


class Delivery:
    """Spreads messages without keys over the partitions of one topic.

    One batch for each partition is filled, and sent when full; at most 64 are in flight. `add` and
    `flush` raise the first KafkaError only after everything in flight has been answered, so that
    `acknowledged` is exact. Records have the timestamp of `record_time`, and neither key nor
    headers.
    """

    def __init__(
        self, producer: AIOKafkaProducer, topic: str, partitions: int, *, precision_ms: int
    ) -> None:
        self.acknowledged = Acknowledged()
        self._producer = producer
        self._topic = topic
        self._precision_ms = precision_ms
        self._batches: list[_Batch | None] = [None] * partitions
        # Random, so that many runs that send little do not all start with partition 0.
        self._turn = secrets.randbelow(partitions)
        self._pending: dict[asyncio.Future[Any], _Batch] = {}

    async def add(self, message: bytes, *, reports: int, partition: int | None = None) -> None:
        """Send a message with this many reports to a partition, by default the next one."""
        if partition is None:
            partition = self._turn
            self._turn = (partition + 1) % len(self._batches)
        if not self._append(partition, message, reports):
            await self._send(partition)
            self._append(partition, message, reports)

    async def flush(self) -> None:
        """Send what is waiting, and return when everything is acknowledged."""
        for partition in range(len(self._batches)):
            await self._send(partition)
        await self._settle(asyncio.ALL_COMPLETED)

    def _append(self, partition: int, message: bytes, reports: int) -> bool:
        batch = self._batches[partition]
        if batch is None:
            batch = self._batches[partition] = _Batch(self._producer.create_batch())
        timestamp_ms = record_time_ms(now_ms(), precision_ms=self._precision_ms)
        if batch.builder.append(key=None, value=message, timestamp=timestamp_ms) is None:
            return False
        batch.messages += 1
        batch.reports += reports
        return True

    async def _send(self, partition: int) -> None:
        batch = self._batches[partition]
        self._batches[partition] = None
        if batch is None:
            return
        if len(self._pending) >= _IN_FLIGHT:
            await self._settle(asyncio.FIRST_COMPLETED)
        try:
            future = await self._producer.send_batch(
                batch.builder, self._topic, partition=partition
            )
        except KafkaError:
            await self._settle(asyncio.ALL_COMPLETED)
            raise
        self._pending[future] = batch

    async def _settle(self, how: str) -> None:
        if not self._pending:
            return
        done, _ = await asyncio.wait(self._pending, return_when=how)
        failures = self._count(done)
        if failures and self._pending:
            done, _ = await asyncio.wait(self._pending)
            self._count(done)
        if failures:
            raise failures[0]

    def _count(self, done: set[asyncio.Future[Any]]) -> list[BaseException]:
        failures = []
        for future in done:
            batch = self._pending.pop(future)
            error = future.exception()
            if error is None:
                self.acknowledged.messages += batch.messages
                self.acknowledged.reports += batch.reports
            else:
                failures.append(error)
        return failures


@dataclass(frozen=True, eq=False)
class Chunk:
    """n reports with their times in epoch milliseconds, and tokens where `one_report` is set."""

    reports: Reports
    times_ms: Integers
    tokens: Tokens | None = None


class PendingReports:
    """The reports of a ledger that are not acknowledged yet, one per window."""

    def __init__(
        self,
        ledger: Ledger,
        collection: CollectionConfig,
        stream: BinaryIO,
        reading: Reading,
        *,
        size: int,
    ) -> None:
        self._ledger = ledger
        self._spec = collection.spec
        self._releases = releases(ledger, collection, stream, reading)
        self._size = size
        self._starts: dict[int, None] = {}

    def chunks(self) -> Iterator[Chunk]:
        """Yield the reports; those before a refused line come before the refusal is raised."""
        waiting: list[Release] = []
        try:
            for release in self._releases:
                if not release.sent and release.start_ms not in self._starts:
                    self._starts[release.start_ms] = None
                    waiting.append(release)
                if len(waiting) == self._size:
                    yield self._chunk(waiting)
                    waiting = []
        except (Refused, Failed):
            if waiting:
                yield self._chunk(waiting)
            raise
        if waiting:
            yield self._chunk(waiting)

    def _chunk(self, waiting: Sequence[Release]) -> Chunk:
        payload = np.concatenate([release.payload for release in waiting])
        reports, _ = self._spec.mechanism.decode(payload)
        times_ms = np.array([release.time_ms for release in waiting])
        if self._spec.one_report is None:
            return Chunk(reports, times_ms)
        return Chunk(reports, times_ms, self._spec.tokens(self._ledger.secret, times_ms))

    def mark_sent(self) -> None:
        """Record in the ledger that all yielded reports have arrived."""
        self._ledger.mark_sent(self._spec, self._starts)


def send_values(
    config_file: str,
    name: str,
    values: BinaryIO,
    *,
    batch: int,
    reports: bool,
    options: ReadingOptions,
    spending: Spending,
) -> None:
    """Produce a report for each line of values, or the reports in the lines."""
    config, collection = load_collection(config_file, name)
    how = Reading.of(collection, options, reports=reports)
    # A chunk is a whole number of messages, so that only the last message can be shorter.
    size = batch * max(1, CHUNK // batch)
    # No spinner in a pipe, even where FORCE_COLOR is set: it would only fill the output.
    console = Console(stderr=True, force_terminal=None if sys.stderr.isatty() else False)
    ledger_file = spending.ledger
    if ledger_file is None:
        spending.refuse()
        refuse_words(collection)
        refuse_one_report(collection, "--ledger, which keeps the secret of the device's tokens")
    elif reports:
        raise Refused("--ledger: expected values, not --reports")
    with ExitStack() as stack:
        ledger, arrived = None, None
        if ledger_file is not None:
            ledger = stack.enter_context(opened(collection, ledger_file, spending))
        if collection.spec.words is not None:
            collection = broker.run(_in_round(config.kafka, collection), config.kafka, config_file)
        if ledger is not None:
            waiting = PendingReports(ledger, collection, values, how, size=size)
            chunks, arrived = waiting.chunks(), waiting.mark_sent
        else:
            read = from_reports if reports else from_values
            chunks = read(values, collection, how, size=size)
        done = broker.run(
            _send(config.kafka, collection, chunks, console, batch=batch, arrived=arrived),
            config.kafka,
            config_file,
        )
    click.echo(_summary(done))


async def _in_round(kafka: KafkaConfig, collection: CollectionConfig) -> CollectionConfig:
    """Return a collection of unknown words as its newest round asks about them."""
    newest = await Sender(collection.spec, kafka.bootstrap, options=kafka.options).round()
    if newest is None:
        name = collection.name
        raise Failed(f"{name}: no round has begun: start one with `ldpstream discover {name}`")
    return replace(collection, spec=newest.spec)


async def _send(
    kafka: KafkaConfig,
    collection: CollectionConfig,
    chunks: Iterable[Chunk],
    console: Console,
    *,
    batch: int,
    arrived: Callable[[], None] | None,
) -> Acknowledged:
    topic = collection.topics.source
    partitions = await broker.source_partitions(kafka, collection)
    async with broker.producer(kafka) as producer:
        await producer.partitions_for(topic)
        delivery = Delivery(producer, topic, partitions, precision_ms=collection.spec.precision_ms)
        try:
            with console.status(f"sending to {topic}") as status:
                for chunk in broker.interruptibly(chunks):
                    for frame, reports, partition in frames(collection.spec, chunk, batch):
                        await delivery.add(frame, reports=reports, partition=partition)
                    status.update(f"{delivery.acknowledged.reports:,} reports acknowledged")
                await delivery.flush()
        except (Refused, Failed) as error:
            await delivery.flush()
            if arrived is not None:
                arrived()
            raise type(error)(error.message + _so_far(delivery.acknowledged)) from error
        except KafkaError as error:
            message = await explain(error, kafka)
            raise Failed(message + _so_far(delivery.acknowledged)) from error
    if arrived is not None:
        arrived()
    return delivery.acknowledged


def _summary(done: Acknowledged) -> str:
    return f"{count(done.reports, 'report')} in {count(done.messages, 'message')} acknowledged"


def _so_far(done: Acknowledged) -> str:
    return f"; before that {_summary(done)}" if done.messages else ""


def from_values(
    stream: BinaryIO, collection: CollectionConfig, reading: Reading, *, size: int
) -> Iterator[Chunk]:
    """Draw and yield the reports of value lines."""
    spec = collection.spec
    for values in read_values(stream, spec.domain, reading, chunk=size):
        reports = spec.mechanism.privatize(values.indices)
        yield Chunk(reports, _or_now(values.times_ms, len(reports)))


def from_reports(
    stream: BinaryIO, collection: CollectionConfig, reading: Reading, *, size: int
) -> Iterator[Chunk]:
    """Yield the reports that `privatize` wrote."""
    for lines in read_reports(stream, collection.spec, chunk=size, near=reading.near):
        if reading.times and lines.times_ms is None:
            raise Refused("--times: expected reports with times, as privatize --times writes them")
        yield Chunk(lines.reports, _or_now(lines.times_ms, len(lines.reports)))


def _or_now(times_ms: Integers | None, n: int) -> Integers:
    if times_ms is not None:
        return times_ms
    return np.full(n, now_ms(), dtype=np.int64)


def frames(
    spec: CollectionSpec, chunk: Chunk, batch: int
) -> Iterator[tuple[bytes, int, int | None]]:
    """Yield frames, their numbers of reports, and the partition where tokens determine it.

    A frame holds at most `batch` reports.
    """
    if spec.one_report is not None and chunk.tokens is not None:
        for at in spec.one_report.by_partition(chunk.tokens):
            partition = int(spec.one_report.partition(chunk.tokens[at[:1]])[0])
            for start in range(0, len(at), batch):
                indices = at[start : start + batch]
                times_ms, tokens = chunk.times_ms[indices], chunk.tokens[indices]
                frame = spec.frame_reports(chunk.reports[indices], times_ms=times_ms, tokens=tokens)
                yield frame, len(indices), partition
        return
    for start in range(0, len(chunk.reports), batch):
        rows = slice(start, start + batch)
        reports = chunk.reports[rows]
        yield spec.frame_reports(reports, times_ms=chunk.times_ms[rows]), len(reports), None
