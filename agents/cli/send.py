"""`ldpstream send`: a device or a gateway, from value lines to produced frames."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

import click
import numpy as np
from aiokafka.errors import KafkaError
from numpy.typing import NDArray
from rich.console import Console

from ldpstream.agents.cli import broker
from ldpstream.agents.cli.common import CHUNK, config_option, count, load_collection
from ldpstream.agents.cli.delivery import Acknowledged, Delivery
from ldpstream.agents.cli.errors import Failed, Refused
from ldpstream.agents.cli.reports import read_reports
from ldpstream.agents.cli.values import read_values
from ldpstream.agents.clients import replication_factor
from ldpstream.agents.config import CollectionConfig, KafkaConfig
from ldpstream.agents.declare import declare_topics
from ldpstream.agents.metadata import describe
from ldpstream.agents.refusals import explain
from ldpstream.mechanisms.mechanism import Reports
from ldpstream.mechanisms.spec import CollectionSpec

Integers = NDArray[np.int64]

LARGEST_BATCH: Final = 50_000  # a frame of as many different times stays below 1 MB


@dataclass(frozen=True, eq=False)
class Chunk:
    """n reports with their times in epoch milliseconds."""

    reports: Reports
    times_ms: Integers


@click.command()
@config_option
@click.option(
    "--batch",
    type=click.IntRange(1, LARGEST_BATCH),
    default=1_000,
    show_default=True,
    metavar="N",
    help="Reports a message.",
)
@click.option("--reports", is_flag=True, help="Lines are reports that privatize wrote.")
@click.option("--times", is_flag=True, help="Lines begin with a time; otherwise it is now.")
@click.argument("name")
@click.argument("values", type=click.File("rb"), default="-")
def send(
    config_file: str, name: str, values: BinaryIO, *, batch: int, reports: bool, times: bool
) -> None:
    """Privatize value lines (a file, or stdin) and produce the reports.

    With --reports, lines are what privatize wrote; their times are taken where they have some.
    Ends by printing how many reports in how many messages the broker has acknowledged.
    """
    config, collection = load_collection(config_file, name)
    # Whole messages a chunk, so that only the last one can be shorter.
    size = batch * max(1, CHUNK // batch)
    if reports:
        chunks = _from_reports(values, collection.spec, times=times, size=size)
    else:
        chunks = _from_values(values, collection.spec, times=times, size=size)
    done = broker.run(
        _send(config.kafka, collection, chunks, batch=batch), config.kafka, config_file
    )
    click.echo(_summary(done))


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
    return np.full(n, time.time_ns() // 1_000_000, dtype=np.int64)


def _frames(spec: CollectionSpec, chunk: Chunk, batch: int) -> Iterator[tuple[bytes, int]]:
    for start in range(0, len(chunk.reports), batch):
        part = slice(start, start + batch)
        reports = chunk.reports[part]
        yield spec.frame_reports(reports, times_ms=chunk.times_ms[part]), len(reports)


async def _send(
    kafka: KafkaConfig, collection: CollectionConfig, chunks: Iterable[Chunk], *, batch: int
) -> Acknowledged:
    topic = collection.topics.source
    partitions = await _partitions(kafka, collection)
    console = Console(stderr=True)
    async with broker.producer(kafka) as producer:
        await producer.partitions_for(topic)
        delivery = Delivery(producer, topic, partitions)
        try:
            with console.status(f"sending to {topic}") as status:
                for chunk in chunks:
                    for frame, reports in _frames(collection.spec, chunk, batch):
                        await delivery.add(frame, reports=reports)
                    status.update(f"{delivery.acknowledged.reports:,} reports acknowledged")
                await delivery.finish()
        except Refused as error:
            await delivery.finish()
            raise Refused(error.message + _so_far(delivery.acknowledged)) from error
        except KafkaError as error:
            message = await explain(error, kafka)
            raise Failed(message + _so_far(delivery.acknowledged)) from error
    return delivery.acknowledged


async def _partitions(kafka: KafkaConfig, collection: CollectionConfig) -> int:
    """Return how many partitions the source has; it is created as configured where missing."""
    topic = collection.topics.source
    async with broker.admin(kafka) as admin:
        found = await describe(admin, [topic])
        if topic not in found:
            brokers = len((await admin.describe_cluster())["brokers"])
            found = await declare_topics(
                admin,
                collection,
                replication_factor=replication_factor(kafka.options, brokers=brokers),
            )
            click.echo(f"created the topics of {collection.name}", err=True)
    return found[topic].partitions


def _summary(done: Acknowledged) -> str:
    return f"{count(done.reports, 'report')} in {count(done.messages, 'message')} acknowledged"


def _so_far(done: Acknowledged) -> str:
    return f"; before that {_summary(done)}" if done.messages else ""
