"""Run a packer: its clients, topics, metrics, health, and shutdown."""

import asyncio
import gc
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from aiohttp import web
from aiokafka.errors import KafkaError, UnknownTopicOrPartitionError

from ldpstream.agents.config import CollectionConfig, Config, WorkerConfig
from ldpstream.agents.http.connection import Bounds
from ldpstream.agents.http.listening import listening
from ldpstream.agents.http.probes import answer_health, answer_metrics, answer_readiness
from ldpstream.agents.http.requests import AnswerError
from ldpstream.agents.http.serve import worker_access
from ldpstream.agents.kafka.connections import Connections
from ldpstream.agents.kafka.declare import TopicError
from ldpstream.agents.kafka.fetches import take_whole
from ldpstream.agents.kafka.identity import SourceChangedError, TopicIdentity
from ldpstream.agents.kafka.permissions import PACKER
from ldpstream.agents.kafka.producing import LastingProducer
from ldpstream.agents.metrics.packing import PackMetrics
from ldpstream.agents.packing.assigned import PackOptions
from ldpstream.agents.packing.packer import Packer
from ldpstream.agents.process.running import (
    run_and_leave,
    set_up_logging,
    unless_stopped,
    until_signalled,
)

_FETCH_BYTES: Final = 64 << 10
"""The broker delays smaller answers for a while, which cost more than they are worth."""
_WATCH_SECONDS: Final = 2.0
END_SECONDS: Final = 8.0
"""How long a packer may take to send and commit when it is told to end."""
PATIENCE_SECONDS: Final = 10.0
"""A broker that has not answered for this long is away; it is asked every two seconds."""

log = logging.getLogger(__name__)


@dataclass
class PackerHealth:
    """Whether a packer works."""

    assigned: bool = False
    """Whether partitions have been assigned."""
    answered: float = field(default_factory=time.monotonic)
    """When the broker last listed its topics, on the monotonic clock; at first, now."""

    def reasons(self) -> list[str]:
        """Return why it does not pack; empty if it does."""
        found = [] if self.assigned else ["no partitions have been assigned yet"]
        if time.monotonic() - self.answered > PATIENCE_SECONDS:
            found.append("the broker does not answer")
        return found


@asynccontextmanager
async def serving_health(
    address: str, worker: WorkerConfig, *, metrics: PackMetrics, health: PackerHealth
) -> AsyncIterator[None]:
    """Serve /metrics, /healthz and /readyz during an `async with` block.

    The metrics are for the same readers as a worker's.

    Raises:
        HttpUnavailableError: if the address cannot be used, or others can reach it and there is no
            valid token.
    """
    access = worker_access(address, worker)

    async def exposition(request: web.Request) -> web.Response:
        try:
            access.check(request)
        except AnswerError as error:
            return web.json_response({"error": error.text}, status=error.status)
        return answer_metrics(request, metrics)

    async def readiness(_: web.Request) -> web.Response:
        return answer_readiness(health.reasons())

    app = web.Application()
    app.router.add_get("/metrics", exposition)
    app.router.add_get("/healthz", answer_health)
    app.router.add_get("/readyz", readiness)
    bounds = Bounds(connections=100, per_peer=50, trusted_proxies=access.trusted_proxies)
    async with listening(app, address=address, bounds=bounds, tls=None, setting="--http"):
        yield


def run_packer(
    config: Config, options: PackOptions, *, http: str | None, verbose: bool = False
) -> int:
    """Pack until SIGTERM or SIGINT, and return the exit code: 0, or 1 if it failed.

    Prints `ready` on standard output once partitions are assigned. `http` is an address for
    /metrics, or None. May end the process (`run_and_leave`).
    """
    set_up_logging(verbose=verbose)
    packing = partial(pack, config, options, http=http, announce=lambda: print("ready", flush=True))
    return run_and_leave(
        until_signalled(packing, config.kafka, refused=(TopicError, SourceChangedError))
    )


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
        TopicError: if a topic contradicts the configuration.
        SourceChangedError: if a source topic is created again.
        HttpUnavailableError: if `http` cannot be used, or needs a token.
        KafkaError: if the broker does not answer, or refuses.
    """
    collections, health, kafka = packed_collections(config), PackerHealth(), config.kafka
    by_source, group = {c.topics.source: c for c in collections}, config.worker.pack_group
    metrics, identity = PackMetrics([c.name for c in collections]), TopicIdentity()
    connections = Connections(kafka)

    def assigned() -> None:
        if not health.assigned:
            health.assigned = True
            announce()

    async def opened() -> Packer:
        admin = await connections.admin()
        await identity.open(admin, kafka, collections, group=group, needed=PACKER)
        producer = LastingProducer(kafka.bootstrap, kafka.options)
        await connections.producer(producer)
        wait_ms = max(1, options.linger_ms // 2)
        consumer = await connections.member(group_id=group, wait_ms=wait_ms, min_bytes=_FETCH_BYTES)
        take_whole(consumer)
        topic_ids = {source: identity.topic_id(source) for source in by_source}
        return Packer(
            by_source=by_source,
            consumer=consumer,
            producer=producer,
            topic_ids=topic_ids,
            options=options,
            metrics=metrics,
            on_assigned=assigned,
        )

    async with AsyncExitStack() as stack:
        stack.push_async_callback(connections.close)
        if http is not None:
            server = serving_health(http, config.worker, metrics=metrics, health=health)
            await stack.enter_async_context(server)
        packer = await unless_stopped(opened(), stop)
        health.answered = time.monotonic()
        # As in a worker, and packing makes garbage all the time.
        gc.freeze()
        await _until_stopped(packer, stop, _watch(identity, [*by_source], health))


async def _watch(identity: TopicIdentity, sources: Sequence[str], health: PackerHealth) -> None:
    """Check the topics periodically.

    Raises:
        SourceChangedError: if a source has been replaced; a packer that is started again uses the
        new one.
    """
    while True:
        await asyncio.sleep(_WATCH_SECONDS)
        try:
            await identity.check(sources, then="start pack again")
        except UnknownTopicOrPartitionError:
            pass  # The broker answers: the topic is only missing for a moment.
        except KafkaError as error:
            log.debug("no topic ids: %r", error)
            continue
        health.answered = time.monotonic()


async def _until_stopped(
    packer: Packer, stop: asyncio.Event, watching: Coroutine[Any, Any, None]
) -> None:
    """Pack until the signal, or until something fails."""
    packing, told = packer.run(stop), stop.wait()
    tasks = [asyncio.create_task(one) for one in (packing, watching, told)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if done == {tasks[-1]}:
            # While the broker is away, a commit may take this long.
            done, _ = await asyncio.wait(tasks[:1], timeout=END_SECONDS)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
