"""Kafka clients for commands, closed at the end of a block, with errors as messages; and Ctrl-C.

Commands that use them run on an event loop, where Ctrl-C does not interrupt a read of the input.
"""

import asyncio
import logging
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import click
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from ldpstream.agents.broker import clients
from ldpstream.agents.broker.connections import reporting_waits
from ldpstream.agents.broker.metadata import count_brokers, describe
from ldpstream.agents.broker.offsets import end_offsets
from ldpstream.agents.broker.patches.error_names import name_errors
from ldpstream.agents.broker.record_time import now_ms
from ldpstream.agents.broker.refusals import explain
from ldpstream.agents.broker.topics import TopicError, declare_topics, lacking_partitions
from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.agents.config import CollectionConfig, KafkaConfig
from ldpstream.agents.config.client_options import ClientOptionError
from ldpstream.agents.state.close_orders import Control, encode_control

PATIENCE_MS: Final = 120_000

Result = TypeVar("Result")
Item = TypeVar("Item")
_Call = Callable[[], Awaitable[Any]]


def run(task: Coroutine[Any, Any, Result], kafka: KafkaConfig, config_file: str) -> Result:
    """Run a task that talks to the brokers of `kafka`, the table of a configuration file."""
    # The clients log what they also raise; one message is enough.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    name_errors()
    try:
        return asyncio.run(_explained(task, kafka))
    except ClientOptionError as error:
        raise Refused(f"{config_file}: {error}") from error


async def _explained(task: Coroutine[Any, Any, Result], kafka: KafkaConfig) -> Result:
    try:
        return await task
    except (TopicError, KafkaError) as error:
        raise Failed(await explain(error, kafka)) from error


@asynccontextmanager
async def admin(kafka: KafkaConfig) -> AsyncIterator[AIOKafkaAdminClient]:
    """Return a started administration client, closed at the end of the block."""
    with _refusing_options():
        client = clients.admin(kafka.bootstrap, kafka.options)
    async with _started(client.start, client.close, kafka):
        yield client


@asynccontextmanager
async def producer(kafka: KafkaConfig) -> AsyncIterator[AIOKafkaProducer]:
    """Return a started producer, stopped at the end of the block."""
    # Longer than the clients' default, so that a broker may be away for a minute.
    options = {"request_timeout_ms": PATIENCE_MS, **kafka.options}
    with _refusing_options():
        client = clients.producer(kafka.bootstrap, options)
    async with _started(client.start, client.stop, kafka):
        yield client


@asynccontextmanager
async def reader(kafka: KafkaConfig) -> AsyncIterator[AIOKafkaConsumer]:
    """Return a started consumer without a group, stopped at the end of the block."""
    with _refusing_options():
        client = clients.reader(kafka.bootstrap, kafka.options, committed_only=False)
    async with _started(client.start, client.stop, kafka):
        yield client


async def source_partitions(kafka: KafkaConfig, collection: CollectionConfig) -> int:
    """Return how many partitions the source has; create it as configured if it is missing."""
    topic = collection.topics.source
    async with admin(kafka) as client:
        states = await describe(client, [topic])
        if topic not in states:
            factor = clients.replication_factor(kafka.options, brokers=count_brokers(client))
            states = await declare_topics(client, [collection], replication_factor=factor)
            click.echo(f"created {topic}, and the other topics of {collection.name}", err=True)
    partitions = states[topic].partitions
    if lacking := lacking_partitions(partitions, collection):
        raise Failed(lacking)
    return partitions


async def close_panes(
    kafka: KafkaConfig, collection: CollectionConfig, until_ms: int
) -> dict[int, int]:
    """Order that all panes up to a time close; return the source's ends, by partition.

    It takes effect in each partition once everything up to its end has been read.
    """
    topics = collection.topics
    async with admin(kafka) as client:
        states = await describe(client, [topics.source, topics.control])
    for topic in (topics.source, topics.control):
        if topic not in states:
            raise Failed(f"topic {topic} does not exist: start a worker first, which creates it")
    source = [TopicPartition(topics.source, p) for p in range(states[topics.source].partitions)]
    async with reader(kafka) as consumer:
        ends = await end_offsets(consumer, source)
    by_partition = {partition.partition: end for partition, end in ends.items()}
    async with producer(kafka) as client:
        await client.send_and_wait(
            topics.control,
            encode_control(Control(until_ms=until_ms, ends=by_partition)),
            partition=0,
            timestamp_ms=now_ms(),
        )
    return by_partition


@asynccontextmanager
async def _started(start: _Call, stop: _Call, kafka: KafkaConfig) -> AsyncIterator[None]:
    try:
        async with reporting_waits(kafka.bootstrap, partial(click.echo, err=True)):
            await start()
        yield
    finally:
        await stop()


@contextmanager
def _refusing_options() -> Iterator[None]:
    """Turn all errors of a client about its settings into one kind."""
    try:
        yield
    except ClientOptionError:
        raise
    except (ValueError, TypeError, RuntimeError, OSError) as error:
        raise ClientOptionError(
            f"kafka: the Kafka client does not accept these settings: {error}"
        ) from error


def interruptibly(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items whose reading blocks; Ctrl-C interrupts each read at once.

    Raises:
        KeyboardInterrupt: at SIGINT during a read, unless the process ignores it.
    """
    iterator = iter(items)
    while True:
        with _at_once():
            try:
                item = next(iterator)
            except StopIteration:
                return
        yield item


@contextmanager
def _at_once() -> Iterator[None]:
    """Raise at SIGINT: asyncio's handler only cancels the task, which a blocked read ignores."""
    handler = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or handler in (signal.SIG_IGN, None):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
