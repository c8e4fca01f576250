"""`ldpstream send`: privatize value lines, and produce the reports."""

import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from typing import BinaryIO, Final

import click
from aiokafka.errors import KafkaError
from rich.console import Console

from ldpstream.agents.broker.delivery import Acknowledged, Delivery
from ldpstream.agents.broker.refusals import explain
from ldpstream.agents.cli.terminal import broker
from ldpstream.agents.cli.terminal.chunks import Chunk, Kept, frames, from_reports, from_values
from ldpstream.agents.cli.terminal.common import (
    CHUNK,
    config_option,
    count,
    load_collection,
    number_option,
    refuse_one_report,
    refuse_words,
)
from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.agents.cli.terminal.ledgers import Spending, ledger_options, opened
from ldpstream.agents.cli.terminal.value_options import Reading, ReadingOptions, reading_options
from ldpstream.agents.config import CollectionConfig, KafkaConfig
from ldpstream.agents.device import Sender
from ldpstream.mechanisms.domains.words import Words

LARGEST_BATCH: Final = 50_000  # even if all times differ, such a frame is below 1 MB


@click.command()
@config_option
@number_option("--batch", 1, LARGEST_BATCH, default=1_000, text="Reports per message.")
@click.option("--reports", is_flag=True, help="Lines are reports that privatize wrote.")
@reading_options
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
    asked: ReadingOptions,
    spending: Spending,
) -> None:
    """Privatize value lines (a file, or stdin) and produce the reports.

    With --reports, lines are what privatize wrote, with their times if they have any. Times must
    lie within the last year and at most a day ahead, unless --replay is given. With --ledger, a
    window's report is sent once, and repeated only where it may not have arrived; without, an input
    that is sent twice counts twice. Prints at the end how many reports in how many messages the
    broker has acknowledged.
    """
    config, collection = load_collection(config_file, name)
    how = Reading.of(collection, asked, reports=reports)
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
        if isinstance(collection.spec.domain, Words):
            collection = broker.run(_in_round(config.kafka, collection), config.kafka, config_file)
        if ledger is not None:
            held = Kept(ledger, collection, values, how, size=size)
            chunks, arrived = held.chunks(), held.mark_sent
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
