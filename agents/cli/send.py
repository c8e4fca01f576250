"""`ldpstream send`: a device or a gateway, from value lines to produced frames."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import BinaryIO, Final

import click
import numpy as np
from aiokafka.errors import KafkaError
from numpy.typing import NDArray
from rich.console import Console

from ldpstream.agents.cli import broker
from ldpstream.agents.cli.common import (
    CHUNK,
    config_option,
    count,
    load_collection,
    number_option,
    refuse_one_report,
)
from ldpstream.agents.cli.errors import Failed, Refused
from ldpstream.agents.cli.interrupting import interruptibly
from ldpstream.agents.cli.ledgers import (
    ledger_options,
    opened,
    refuse_without_ledger,
    releases,
)
from ldpstream.agents.cli.reports import read_reports
from ldpstream.agents.cli.source import source_partitions
from ldpstream.agents.cli.values import read_values
from ldpstream.agents.config import CollectionConfig, KafkaConfig
from ldpstream.agents.kafka.delivery import Acknowledged, Delivery
from ldpstream.agents.kafka.record_time import now_ms
from ldpstream.agents.kafka.refusals import explain
from ldpstream.mechanisms.ledger import Ledger, Release
from ldpstream.mechanisms.mechanism import Reports
from ldpstream.mechanisms.one_report import Tokens
from ldpstream.mechanisms.spec import CollectionSpec

Integers = NDArray[np.int64]

LARGEST_BATCH: Final = 50_000  # a frame of as many different times stays below 1 MB


@dataclass(frozen=True, eq=False)
class Chunk:
    """n reports with their times in epoch milliseconds; tokens where `one_report` asks for them."""

    reports: Reports
    times_ms: Integers
    tokens: Tokens | None = None


@click.command()
@config_option
@number_option("--batch", 1, LARGEST_BATCH, default=1_000, text="Reports a message.")
@click.option("--reports", is_flag=True, help="Lines are reports that privatize wrote.")
@click.option("--times", is_flag=True, help="Lines begin with a time; otherwise it is now.")
@ledger_options
@click.argument("name")
@click.argument("values", type=click.File("rb"), default="-")
def send(
    config_file: str,
    name: str,
    values: BinaryIO,
    *,
    batch: int,
    reports: bool,
    times: bool,
    ledger_file: str | None,
    budget: str | None,
    horizon: str | None,
) -> None:
    """Privatize value lines (a file, or stdin) and produce the reports.

    With --reports, lines are what privatize wrote; their times are taken where they have some.
    With --ledger, a window's report is sent once, and again only where it may not have arrived.
    Ends by printing how many reports in how many messages the broker has acknowledged.
    """
    config, collection = load_collection(config_file, name)
    # Whole messages a chunk, so that only the last one can be shorter.
    size = batch * max(1, CHUNK // batch)
    with ExitStack() as stack:
        arrived: Callable[[], None] = _nothing
        if ledger_file is not None:
            if reports:
                raise Refused("--ledger: expected values, not --reports")
            ledger = stack.enter_context(
                opened(collection, ledger_file, budget=budget, horizon=horizon)
            )
            kept = Kept(ledger, collection, values, times=times, size=size)
            chunks, arrived = kept.chunks(), kept.mark_sent
        else:
            refuse_without_ledger(budget, horizon)
            refuse_one_report(collection, "--ledger, which keeps the secret of the device's tokens")
            read = _from_reports if reports else _from_values
            chunks = read(values, collection.spec, times=times, size=size)
        done = broker.run(
            _send(config.kafka, collection, chunks, batch=batch, arrived=arrived),
            config.kafka,
            config_file,
        )
    click.echo(_summary(done))


def _nothing() -> None:
    pass


class Kept:
    """The reports of a ledger that have not arrived yet, each window's once."""

    def __init__(
        self,
        ledger: Ledger,
        collection: CollectionConfig,
        stream: BinaryIO,
        *,
        times: bool,
        size: int,
    ) -> None:
        self._ledger = ledger
        self._spec = collection.spec
        self._releases = releases(ledger, collection, stream, times=times)
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
        """Say that all that was yielded has arrived."""
        self._ledger.mark_sent(self._spec, self._starts)


def _from_values(
    stream: BinaryIO, spec: CollectionSpec, *, times: bool, size: int
) -> Iterator[Chunk]:
    for values in read_values(stream, spec.domain, times=times, chunk=size):
        reports = spec.mechanism.privatize(values.indices)
        yield Chunk(reports, _or_now(values.times_ms, len(reports)))


def _from_reports(
    stream: BinaryIO, spec: CollectionSpec, *, times: bool, size: int
) -> Iterator[Chunk]:
    for lines in read_reports(stream, spec, chunk=size):
        if times and lines.times_ms is None:
            raise Refused("--times: expected reports with times, as privatize --times writes them")
        yield Chunk(lines.reports, _or_now(lines.times_ms, len(lines.reports)))


def _or_now(times_ms: Integers | None, n: int) -> Integers:
    if times_ms is not None:
        return times_ms
    return np.full(n, now_ms(), dtype=np.int64)


def _frames(
    spec: CollectionSpec, chunk: Chunk, batch: int
) -> Iterator[tuple[bytes, int, int | None]]:
    """Yield frames with their number of reports, and the partition where it is not any."""
    if spec.one_report is not None and chunk.tokens is not None:
        for at in spec.one_report.by_partition(chunk.tokens):
            partition = int(spec.one_report.partition(chunk.tokens[at[:1]])[0])
            for start in range(0, len(at), batch):
                part = at[start : start + batch]
                times_ms, tokens = chunk.times_ms[part], chunk.tokens[part]
                frame = spec.frame_reports(chunk.reports[part], times_ms=times_ms, tokens=tokens)
                yield frame, len(part), partition
        return
    for start in range(0, len(chunk.reports), batch):
        rows = slice(start, start + batch)
        reports = chunk.reports[rows]
        yield spec.frame_reports(reports, times_ms=chunk.times_ms[rows]), len(reports), None


async def _send(
    kafka: KafkaConfig,
    collection: CollectionConfig,
    chunks: Iterable[Chunk],
    *,
    batch: int,
    arrived: Callable[[], None],
) -> Acknowledged:
    topic = collection.topics.source
    partitions = await source_partitions(kafka, collection)
    # Colours may be forced upon a pipe; what moves would only fill it.
    console = Console(stderr=True, force_terminal=None if sys.stderr.isatty() else False)
    async with broker.producer(kafka) as producer:
        await producer.partitions_for(topic)
        delivery = Delivery(producer, topic, partitions, precision_ms=collection.spec.precision_ms)
        try:
            with console.status(f"sending to {topic}") as status:
                for chunk in interruptibly(chunks):
                    for frame, reports, partition in _frames(collection.spec, chunk, batch):
                        await delivery.add(frame, reports=reports, partition=partition)
                    status.update(f"{delivery.acknowledged.reports:,} reports acknowledged")
                await delivery.finish()
        except (Refused, Failed) as error:
            await delivery.finish()
            arrived()
            raise type(error)(error.message + _so_far(delivery.acknowledged)) from error
        except KafkaError as error:
            message = await explain(error, kafka)
            raise Failed(message + _so_far(delivery.acknowledged)) from error
    arrived()
    return delivery.acknowledged


def _summary(done: Acknowledged) -> str:
    return f"{count(done.reports, 'report')} in {count(done.messages, 'message')} acknowledged"


def _so_far(done: Acknowledged) -> str:
    return f"; before that {_summary(done)}" if done.messages else ""
