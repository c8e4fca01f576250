"""Run a packer: its clients, topics, metrics, and shutdown."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from ldpstream.agents.config import CollectionConfig, Config
from ldpstream.agents.kafka import clients
from ldpstream.agents.kafka.connections import Connections
from ldpstream.agents.kafka.declare import TopicError, declare_topics
from ldpstream.agents.kafka.metadata import count_brokers, describe
from ldpstream.agents.kafka.permissions import PACKER, missing_on_group, missing_on_topics
from ldpstream.agents.kafka.producing import LastingProducer, NoIdempotenceError
from ldpstream.agents.kafka.refusals import no_idempotence, not_permitted
from ldpstream.agents.metrics.packing import PackMetrics
from ldpstream.agents.packing.assigned import PackOptions
from ldpstream.agents.packing.batches import take_whole
from ldpstream.agents.packing.packer import Packer
from ldpstream.agents.packing.page import Health, check_page, serve_page
from ldpstream.agents.pipeline.identity import MISSING_SECONDS
from ldpstream.agents.process.console import set_up_logging
from ldpstream.agents.process.leaving import run_and_leave
from ldpstream.agents.process.running import unless_stopped, until_signalled

FETCH_BYTES: Final = 64 << 10
"""The broker delays smaller answers for a while, since they cost more than they bring."""
_WATCH_SECONDS: Final = 2.0
END_SECONDS: Final = 8.0
"""How long a packer has for sending and committing when it is told to end."""

log = logging.getLogger(__name__)


def run_packer(
    config: Config, options: PackOptions, *, http: str | None, verbose: bool = False
) -> int:
    """Pack until SIGTERM or SIGINT, and return the exit code: 0, or 1 if it failed.

    Prints `ready` on standard output once partitions are assigned. `http` is an address for
    /metrics, or None. May end the process (`run_and_leave`).
    """
    set_up_logging(verbose=verbose)
    packing = partial(pack, config, options, http=http, announce=lambda: print("ready", flush=True))
    return run_and_leave(until_signalled(packing, config.kafka, refused=(TopicError,)))


def packed_collections(config: Config) -> list[CollectionConfig]:
    """Return the collections whose input is packed."""
    return [c for c in config.collections.values() if c.topics.frames is not None]


async def pack(
    config: Config,
    options: PackOptions,
    stop: asyncio.Event,
    *,
    http: str | None,
    announce: Callable[[], None],
) -> None:
    """Pack until `stop` is set; `announce` is called once partitions have been assigned.

    Raises:
        BrokerUnavailableError: if the broker lacks what is needed.
        TopicError: if a topic contradicts the configuration, or a source topic is created again.
        HttpUnavailableError: if `http` cannot be listened on, or needs a token.
        KafkaError: if the broker does not answer, or refuses.
    """
    access = None if http is None else check_page(http, config.worker)
    collections = packed_collections(config)
    metrics = PackMetrics([c.name for c in collections])
    connections = Connections(config.kafka)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(connections.close)
        opening = _open(connections, config, collections, options, metrics)
        packer, watch = await unless_stopped(opening, stop)
        if access is not None and http is not None:
            page = serve_page(http, access, metrics=metrics, health=watch.health)
            await stack.enter_async_context(page)
        announced = asyncio.create_task(_announce(packer, announce))
        stack.callback(announced.cancel)
        await _until_stopped(packer, stop, watch.run())


async def _open(
    connections: Connections,
    config: Config,
    collections: Collection[CollectionConfig],
    options: PackOptions,
    metrics: PackMetrics,
) -> tuple[Packer, "_Watch"]:
    """Connect, check the topics, and return the packer and the watch over its topics."""
    admin = await connections.admin()
    topic_ids = await _declare(admin, config, collections)
    producer = LastingProducer(config.kafka.bootstrap, config.kafka.options)
    try:
        await connections.producer(producer)
    except NoIdempotenceError as error:
        raise no_idempotence(config.kafka) from error
    consumer = await connections.member(
        group_id=config.worker.pack_group,
        wait_ms=max(1, options.linger_ms // 2),
        min_bytes=FETCH_BYTES,
    )
    take_whole(consumer)
    packer = Packer(
        collections,
        topic_ids,
        consumer=consumer,
        producer=producer,
        options=options,
        metrics=metrics,
    )
    health = Health(packer.assigned_once, answered=time.monotonic())
    return packer, _Watch(admin, collections, topic_ids, health)


async def _declare(
    admin: AIOKafkaAdminClient, config: Config, collections: Collection[CollectionConfig]
) -> Mapping[str, bytes]:
    """Check topics and permissions, and return the ids of the source topics."""
    factor = clients.replication_factor(config.kafka.options, brokers=count_brokers(admin))
    ids: dict[str, bytes] = {}
    missing: list[str] = []
    for collection in collections:
        topics = [topic for topic in (collection.topics.source, collection.topics.frames) if topic]
        found = await declare_topics(admin, collection, replication_factor=factor, only=topics)
        identity = found[collection.topics.source].id
        ids[collection.topics.source] = b"" if identity is None else identity.bytes
        missing += missing_on_topics(collection, found, needed=PACKER)
    missing += await missing_on_group(admin, config.worker.pack_group)
    if missing:
        raise not_permitted(config.kafka, missing)
    return ids


@dataclass(frozen=True)
class _Watch:
    """Watches a packer's source topics for a change of the ids that they had at the start."""

    admin: AIOKafkaAdminClient
    collections: Collection[CollectionConfig]
    topic_ids: Mapping[str, bytes]
    health: Health

    async def run(self) -> None:
        """Check the topics periodically.

        Raises:
            TopicError: if a source topic has been replaced; a packer that is started again uses the
            new one.
        """
        missing: dict[str, float] = {}
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            try:
                found = await describe(self.admin, self.topic_ids)
            except KafkaError as error:
                log.debug("no topic ids: %r", error)
                continue
            self.health.answered = time.monotonic()
            for collection in self.collections:
                source = collection.topics.source
                if source not in found:
                    since = missing.setdefault(source, time.monotonic())
                    if time.monotonic() - since > MISSING_SECONDS:
                        raise TopicError(f"topic {source} has been deleted: start pack again")
                    continue
                missing.pop(source, None)
                identity = found[source].id
                if self.topic_ids[source] != (b"" if identity is None else identity.bytes):
                    raise TopicError(
                        f"topic {source} was deleted and created again: start pack again"
                    )


async def _until_stopped(
    packer: Packer, stop: asyncio.Event, watching: Coroutine[Any, Any, None]
) -> None:
    """Pack until the signal, or until something fails."""
    packing = asyncio.create_task(packer.run(stop))
    watch = asyncio.create_task(watching)
    told = asyncio.create_task(stop.wait())
    tasks = packing, watch, told
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if done == {told}:
            # While the broker is away, a commit may take this long.
            done, _ = await asyncio.wait([packing], timeout=END_SECONDS)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _announce(packer: Packer, announce: Callable[[], None]) -> None:
    await packer.assigned_once.wait()
    announce()
