"""Attach the pipeline to a Faust app, or run it in an app of its own.

Faust provides group membership, an agent for each collection, and the lifecycle. Its client does
not fetch the sources, which are read without a group. `attach` only adds to an app: the agents,
their topics, three signal handlers and a task. It declares no Faust table, and leaves no offset to
Faust.
"""

import asyncio
import gc
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, Final

import faust
from aiokafka import TopicPartition
from faust.types.auth import CredentialsT

from ldpstream.agents.broker.clients import tls_context
from ldpstream.agents.broker.connections import wait_for_broker
from ldpstream.agents.broker.patches.error_names import name_errors
from ldpstream.agents.broker.shards import Shards, publishing_addresses
from ldpstream.agents.broker.topics import TopicError
from ldpstream.agents.config import CollectionConfig, Config, Shard, client_options
from ldpstream.agents.config.collection import nominal_warnings
from ldpstream.agents.engine.engine import Engine
from ldpstream.agents.engine.gauges import track
from ldpstream.agents.engine.metrics import Metrics
from ldpstream.agents.engine.patches.batch_channel import BatchChannel, add_agent
from ldpstream.agents.engine.patches.consumer_group import FaustGroup
from ldpstream.agents.engine.patches.even_assignor import EvenAssignor
from ldpstream.agents.engine.patches.worker_app import WorkerApp
from ldpstream.agents.engine.pipeline import Pipeline
from ldpstream.agents.engine.process import (
    StoppedError,
    announce_ready,
    run_and_leave,
    set_up_logging,
    unless_stopped,
    until_signalled,
)
from ldpstream.agents.engine.source import Batch
from ldpstream.agents.web import check_serving, serve

__all__ = ["attach", "faust_settings", "run_worker", "work"]

_FAUST_PORT: Final = 6065
_READY_STEP_SECONDS: Final = 0.02
_STOP_SECONDS: Final = 6.0
# Longer than the default session and a few rebalances.
_JOIN_SECONDS: Final = 15.0
_ALL: Final = Shard()

log = logging.getLogger(__name__)


def attach(
    app: faust.App, config: Config, *, metrics: Metrics | None = None, http: bool = False
) -> Pipeline:
    """Attach the pipeline of a configuration to a Faust app that has not started yet.

    It starts and stops with the app, whose id is the consumer group. It does not touch the app's
    settings, topics, tables and web pages, nor the global registry of `prometheus_client`. With
    `http` it also serves the page, the API and the metrics while the app runs, as `[worker]` says;
    if the address is taken, the app ends. While this machine's clock is wrong, the app leaves its
    group, and other instances get the partitions of all its agents; the log says so. The log also
    names budgets that protect in name only. Once the app starts, broker errors that aiokafka does
    not know have their names in the whole process; they stay kinds of `UnknownError`.

    Raises:
        ValueError: if another agent of the app reads the source topic of a collection: it would
            receive nothing. Starting the app raises the same for an agent added later.
        HttpUnavailableError: with `http`, for an address that needs a token, and for an invalid
            token or certificate.
    """
    if http:
        check_serving(config.worker)
    # A user's app may subscribe before or after the pipeline has declared the topics.
    pipeline = _connect(app, config, metrics or Metrics(), declares=True)
    for warning in nominal_warnings(config.collections.values()):
        log.warning("%s", warning)

    async def start() -> None:
        _refuse_other_agents(app, config)
        # How a worker goes on after such an error depends on its code.
        name_errors()
        await pipeline.start()
        await _explain_waiting(app, pipeline)

    async def answer() -> None:
        async with serve(pipeline, config.worker) as url:
            log.info("page, API and metrics: %s", url)
            await asyncio.Event().wait()

    _refuse_other_agents(app, config)
    app.task(start)
    if http:
        app.task(answer)
    return pipeline


def run_worker(config: Config, *, shard: Shard = _ALL, verbose: bool = False) -> int:
    """Run a worker until SIGTERM or SIGINT, and return its exit code: 0, or 1 if it failed.

    It runs the collections of its shard, in that shard's group. Prints `ready URL` on standard
    output once it serves. May end the process (`run_and_leave`).
    """
    set_up_logging(verbose=verbose)
    name_errors()
    working = partial(work, config, shard=shard, announce=announce_ready)
    return run_and_leave(until_signalled(working, config.kafka, refused=(TopicError,)))


def _connect(app: faust.App, config: Config, metrics: Metrics, *, declares: bool) -> Pipeline:
    channels = {name: BatchChannel(app) for name in config.collections}
    sources = {collection.topics.source for collection in config.collections.values()}
    group = FaustGroup(app, sources)
    pipeline = Pipeline(config, group=group, channels=channels, metrics=metrics)
    track(pipeline, metrics)

    async def assigned(*arguments: Any, **_: object) -> None:
        partitions: Iterable[TopicPartition] = arguments[1]
        pipeline.assigned(partitions)

    async def revoked(*_: object, **__: object) -> None:
        await pipeline.revoked()

    async def shutdown(*_: object, **__: object) -> None:
        await pipeline.stop()

    app.on_partitions_assigned.connect(assigned)
    app.on_partitions_revoked.connect(revoked)
    app.on_before_shutdown.connect(shutdown)
    for name, collection in pipeline.collections.items():
        _subscribe(app, collection.config, declares=declares)
        _add_agent(app, collection, channels[name])
    return pipeline


def _subscribe(app: faust.App, collection: CollectionConfig, *, declares: bool) -> None:
    """Make the group share the partitions of a collection's topic, which no stream reads."""
    topic = app.topic(
        collection.topics.source,
        key_type=bytes,
        key_serializer="raw",
        value_type=bytes,
        value_serializer="raw",
        partitions=collection.partitions,
        retention=collection.retention_ms / 1000,
        # Declared by Faust if it does not exist when the group subscribes to it.
        internal=declares,
        # Offsets are committed once a commit record has won, not when a message has passed.
        acks=False,
    )
    app.topics.add(topic)


def _add_agent(app: faust.App, collection: Engine, channel: BatchChannel) -> None:
    """Add the agent that counts what is read of a collection's topic."""

    async def count_batches(batches: faust.StreamT[Batch]) -> None:
        async for batch in batches:
            collection.count(batch)
            # A batch takes some milliseconds: let others run in between.
            await asyncio.sleep(0)

    add_agent(app, channel, f"ldpstream.{collection.config.name}", count_batches)


def _refuse_other_agents(app: faust.App, config: Config) -> None:
    names = {c.topics.source: name for name, c in config.collections.items()}
    for agent in app.agents.values():
        channel: Any = agent.channel
        for topic in () if isinstance(channel, BatchChannel) else getattr(channel, "topics", ()):
            if topic in names:
                raise ValueError(
                    f"agent {agent.name} reads {topic}, the topic of collection "
                    f"{names[topic]}: only the collection's own agent can read it; use "
                    f"pipeline.windows({names[topic]!r}), or another topic"
                )


async def work(
    config: Config,
    stop: asyncio.Event,
    *,
    announce: Callable[[str], None],
    shard: Shard = _ALL,
) -> int:
    """Run a worker until `stop` is set, and return its exit code: 0, or 1 if it failed.

    `announce` is called with its URL once it serves.

    Raises:
        BrokerUnavailableError: if no broker answers, or it lacks a required feature.
        TopicError: if a topic contradicts the configuration.
        ClientOptionError: if `[kafka]` has a setting that no client knows.
        HttpUnavailableError: if `worker.http` cannot be served.
    """
    worker = config.worker
    # First, since it needs no broker.
    check_serving(worker)
    shards = None
    if worker.advertise is not None:
        shards = Shards(shard, worker.advertise, config.collections)
    config = config.of_shard(shard)
    app = WorkerApp(
        config.group,
        **faust_settings(config.kafka.bootstrap, config.kafka.options, instance=worker.instance),
        store="memory://",
        web_enabled=False,
        topic_disable_leader=True,
        stream_wait_empty=False,
        consumer_auto_offset_reset="earliest",
        PartitionAssignor=EvenAssignor,
    )
    app.partitions = Counter({c.topics.source: c.partitions for c in config.collections.values()})
    # Faust must not declare topics: without a broker that would end the worker, and the pipeline
    # has declared them by then.
    pipeline = _connect(app, config, Metrics(), declares=False)
    async with serve(pipeline, worker, shards=shards) as url:
        # HTTP comes first, so that /readyz says what the worker waits for.
        await unless_stopped(wait_for_broker(config.kafka, pipeline.broker_watch), stop)
        async with AsyncExitStack() as stack:
            if shards is not None:
                publishing = publishing_addresses(
                    config, shards, stop, ready=lambda: pipeline.ready
                )
                await unless_stopped(stack.enter_async_context(publishing), stop)
            if not config.collections:
                log.warning("no collection falls to shard %s: it only forwards requests", shard)
                announce(url)
                await stop.wait()
                return 0
            return await _run(app, pipeline, stop, partial(_announce, pipeline, url, announce))


async def _run(
    app: WorkerApp,
    pipeline: Pipeline,
    stop: asyncio.Event,
    announce: Callable[[], Coroutine[Any, Any, None]],
) -> int:
    """Run an app with its pipeline until `stop` is set, and return the exit code."""
    failed = False
    try:
        await unless_stopped(pipeline.start(), stop)
        # Before joining the group: while a member waits, nobody would serve its partitions.
        await unless_stopped(pipeline.wait_for_clock(), stop)
        # All objects so far are permanent, and the state is not loaded yet: exempt them from
        # garbage collection, which would block the event loop in vain.
        gc.freeze()
        explained = asyncio.create_task(_explain_waiting(app, pipeline))
        try:
            await unless_stopped(app.start(), stop)
            announced = asyncio.create_task(announce())
            with suppress(StoppedError):
                await unless_stopped(app.wait_until_stopped(), stop)
                failed = True
            announced.cancel()
        finally:
            explained.cancel()
            with suppress(TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    await app.stop()
    finally:
        await pipeline.stop()
    if failed:
        log.error("the worker failed: %s", app.describe_crash())
    return int(failed)


async def _explain_waiting(app: faust.App, pipeline: Pipeline) -> None:
    """Log once why the group assigns no partitions, if that takes longer than usual."""
    try:
        async with asyncio.timeout(_JOIN_SECONDS):
            await pipeline.assigned_once.wait()
    except TimeoutError:
        if pipeline.refused:
            return
        log.info(
            "waiting for partitions: the group %s keeps those of a member that has gone for up to "
            "%g s (session_timeout_ms)",
            app.conf.id,
            app.conf.broker_session_timeout,
        )


async def _announce(pipeline: Pipeline, url: str, announce: Callable[[str], None]) -> None:
    while not pipeline.ready:  # noqa: ASYNC110 (a look at several objects, and only at the start)
        await asyncio.sleep(_READY_STEP_SECONDS)
    announce(url)


def faust_settings(
    bootstrap: str, options: Mapping[str, Any], *, instance: str | None = None
) -> dict[str, Any]:
    """Return settings with which a `faust.App` connects to the same brokers in the same way.

    Faust's own page is served only on this machine, at port 6065, because 6066 is ldpstream's;
    Faust's options `--web-bind` and `--web-port` change that.

    `instance` is the app's name in its group, the same after a restart. With one, the session is
    longer, and its partitions wait for it.

    Raises:
        ClientOptionError: for an unknown option, or timeouts that contradict each other.
    """
    options = client_options.settled(options)
    times = client_options.group_times(options, static=instance is not None)
    settings: dict[str, Any] = {
        # Faust's own web server has no access rules, and listens on all addresses by default.
        "web_bind": "127.0.0.1",
        "web_port": _FAUST_PORT,
        "broker": [f"kafka://{host.strip()}" for host in bootstrap.split(",")],
        "broker_credentials": _credentials(options),
        "broker_session_timeout": times.session_ms / 1000,
        "broker_heartbeat_interval": times.heartbeat_ms / 1000,
        "broker_request_timeout": times.request_ms / 1000,
        "consumer_metadata_max_age_ms": client_options.METADATA_MS,
    }
    if instance is not None:
        settings["consumer_group_instance_id"] = instance
    for option, setting, scale in (
        ("max_poll_interval_ms", "broker_max_poll_interval", 1000),
        ("rebalance_timeout_ms", "broker_rebalance_timeout", 1000),
        ("max_partition_fetch_bytes", "consumer_max_fetch_size", 1),
        ("metadata_max_age_ms", "consumer_metadata_max_age_ms", 1),
        ("client_id", "broker_client_id", None),
    ):
        if option in options:
            value = options[option]
            settings[setting] = value if scale is None else value / scale
    return settings


def _credentials(options: Mapping[str, Any]) -> CredentialsT | None:
    kind, context = client_options.protocol(options), tls_context(options)
    if kind == "PLAINTEXT":
        return None
    if kind == "SSL":
        return faust.SSLCredentials(context)
    if client_options.mechanism(options) == "GSSAPI":
        return faust.GSSAPICredentials(
            kerberos_service_name=options.get("sasl_kerberos_service_name", "kafka"),
            kerberos_domain_name=options.get("sasl_kerberos_domain_name"),
            ssl_context=context,
            mechanism=client_options.mechanism(options),
        )
    return faust.SASLCredentials(
        username=options.get("sasl_plain_username"),
        password=options.get("sasl_plain_password"),
        ssl_context=context,
        mechanism=client_options.mechanism(options),
    )
