"""All collections of one worker process: clients, readers, engines and publishers.

The pipeline does not depend on Faust: partitions come and go through `assigned` and `revoked`, and
what is read goes through channels. `ldpstream.agents.worker` connects the two.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from ldpstream.agents.broker.clients import max_batch_bytes
from ldpstream.agents.broker.connections import Connections
from ldpstream.agents.broker.health import BrokerWatch
from ldpstream.agents.broker.identity import TopicIdentity
from ldpstream.agents.broker.metadata import why_unread
from ldpstream.agents.broker.offsets import replayed
from ldpstream.agents.broker.patches.bounded_fetches import take_plain
from ldpstream.agents.broker.producer import LastingProducer
from ldpstream.agents.broker.refusals import BrokerUnavailableError, explain
from ldpstream.agents.config import CollectionConfig, Config
from ldpstream.agents.engine.changelog import ChangelogReader
from ldpstream.agents.engine.clock import WorkerClock, scaled_interval
from ldpstream.agents.engine.contexts import make_context, source_wait_ms
from ldpstream.agents.engine.engine import Engine
from ldpstream.agents.engine.flushing import Services
from ldpstream.agents.engine.intake import BatchQueue
from ldpstream.agents.engine.isolation import end_tasks, isolate_errors, run_isolated
from ldpstream.agents.engine.metrics import Metrics
from ldpstream.agents.engine.periodic_tasks import (
    CLOCK_SECONDS,
    Group,
    OffsetCommitter,
    ask_time,
    collect_tombstones,
    keep_checking_settings,
    keep_checking_topics,
    keep_in_group,
    keep_ticking,
    keep_to_clock,
)
from ldpstream.agents.engine.publisher import Publisher
from ldpstream.agents.engine.source import SourceReader
from ldpstream.agents.engine.windowed_table import WindowedTable
from ldpstream.agents.state.close_orders import ControlError, decode_control
from ldpstream.agents.state.loading import skew_limit_ms

_WAIT_MS: Final = 500
_MOST_WAIT_MS: Final = 2_000

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rank:
    """Engines of different collections, sharing readers of their sources and changelogs.

    States that share a source and a changelog have read them up to different offsets. So a
    collection's own engine and those of the specs that it accepts each need their own readers,
    while engines of different collections can share them. The first rank has every collection's own
    engine; each further rank has at most one accepted spec of every collection.
    """

    reader: SourceReader
    engines: tuple[Engine, ...]


def make_ranks(
    collections: Sequence[CollectionConfig],
    channels: Mapping[str, BatchQueue],
    services: Services,
) -> list[Rank]:
    """Return the engines of all collections.

    What is read from a collection goes through its channel, by name.
    """
    ranks, by_name = list[Rank](), dict[str, Engine]()
    for place in range(1 + max((len(c.accept) for c in collections), default=0)):
        configs = [config for c in collections for config in (c, *c.accept)[place : place + 1]]
        sources = topic_partitions({c.topics.source: c for c in configs})
        reader, engines = SourceReader(sources), list[Engine]()
        for config in configs:
            context = make_context(config, partitions=len(sources), accepted=place > 0)
            engine = Engine(config, context, reader, channels[config.name], services)
            engines.append(engine)
            if (over := by_name.setdefault(config.name, engine)) is not engine:
                over.accept((*over.accepted, engine))
        ranks.append(Rank(reader, tuple(engines)))
    return ranks


def topic_partitions(topics: Mapping[str, CollectionConfig]) -> list[TopicPartition]:
    """Return all partitions of topics, each with its collection."""
    return [TopicPartition(topic, p) for topic, c in topics.items() for p in range(c.partitions)]


class Pipeline:
    """The collections of one worker, by name in the configuration's order.

    `channels`, by collection, carry what is read.
    """

    def __init__(
        self, config: Config, *, group: Group, channels: Mapping[str, BatchQueue], metrics: Metrics
    ) -> None:
        self.config = config
        self.metrics = metrics
        self.assigned_once = asyncio.Event()
        self.failed = False
        self.broker_watch = BrokerWatch()
        self._group = group
        collections = [*config.collections.values()]
        grace_ms = min((c.window.grace_ms for c in collections), default=0)
        self.clock = WorkerClock(skew_limit_ms(grace_ms))
        kafka = config.kafka
        self._services = Services(
            LastingProducer(kafka.bootstrap, kafka.options, watch=self.clock),
            TopicIdentity(),
            metrics,
            self.clock,
            self.broker_watch,
        )
        self._ranks = make_ranks(collections, channels, self._services)
        self.collections: dict[str, Engine] = {e.config.name: e for e in self._ranks[0].engines}
        self._all = [e for engine in self.collections.values() for e in (engine, *engine.accepted)]
        self._progress = OffsetCommitter(group, [*self.collections.values()])
        self._by_control = {e.config.topics.control: e for e in self.collections.values()}
        self._connections = Connections(kafka)
        self._starting: asyncio.Task[None] | None = None
        self._stopped = False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def ready(self) -> bool:
        """Whether partitions are assigned, and every collection works or has a known problem."""
        settled = (e.settled or e.problems or e.notices for e in self._all)
        return self.assigned_once.is_set() and all(settled)

    @property
    def refused(self) -> bool:
        """Whether the broker refuses this worker in its group."""
        return bool(self._services.group.problem)

    def windows(self, name: str) -> WindowedTable:
        """Return the windowed table of a collection's own spec, read-only.

        Raises:
            KeyError: for a collection that is not configured, naming those that are.
        """
        if name not in self.collections:
            raise KeyError(f"expected one of {', '.join(self.collections)}, got {name}")
        engine = self.collections[name]
        return WindowedTable(engine.context, engine.replicas)

    # --- the group ------------------------------------------------------------------------------

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Take over exactly these partitions."""
        owned = frozenset(partitions)
        self._progress.assigned = owned
        sources = {engine.config.topics.source for engine in self._all}
        self._group.silence({p for p in owned if p.topic in sources})
        for engine in self._all:
            source = engine.config.topics.source
            with isolate_errors(engine.fail):
                engine.assign(p.partition for p in owned if p.topic == source)
        self.assigned_once.set()

    async def revoked(self) -> None:
        """Flush, then give up all partitions: the group is about to reassign them."""
        await asyncio.gather(*(run_isolated(e.revoke, e.fail) for e in self._all))

    # --- lifecycle ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect, check the topics, and start to read; call `stop` even if this fails.

        If `stop` comes meanwhile, it is cancelled; if that came before, it does nothing.
        """
        if self._stopped:
            return
        self._starting = asyncio.create_task(self._start())
        try:
            await self._starting
        except KafkaError as error:
            raise BrokerUnavailableError(await explain(error, self.config.kafka)) from error

    async def _start(self) -> None:
        config, connections, services = self.config, self._connections, self._services
        admin = await connections.admin()
        collections = [*config.collections.values()]
        await services.identity.open(admin, config.kafka, collections, group=config.group)
        await connections.producer(services.producer)
        # Before joining the group: nothing may be decided with a wrong clock.
        await ask_time(self._all[0], services.producer)
        keeping = partial(keep_to_clock, self.clock, self._all, self._group, services.producer)
        self._spawn(keeping, self._fail)
        control = await connections.reader(committed_only=True, wait_ms=_WAIT_MS)
        self._spawn(lambda: self._read_orders(control), self._report_unread_orders)
        for rank in self._ranks:
            many = sum(engine.config.partitions for engine in rank.engines)
            wait_ms = int(scaled_interval(_WAIT_MS, many, most=_MOST_WAIT_MS))
            changelog = await connections.reader(committed_only=False, wait_ms=wait_ms)
            source = await connections.reader(committed_only=True, wait_ms=source_wait_ms(many))
            self._run_rank(rank, changelog, take_plain(source))
            if rank is self._ranks[0]:
                self._spawn(partial(self._watch_broker, admin, changelog), self._fail)
        for engine in self._all:
            self._spawn(Publisher(engine, services).run, engine.fail)
        self._spawn(partial(keep_ticking, self._all, services.pace), self._fail)
        self._spawn(partial(keep_checking_topics, self._all), self._fail)
        self._spawn(partial(collect_tombstones, self._all, services.producer), self._fail)
        self._spawn(self._progress.run, self._fail)
        looking = partial(keep_checking_settings, admin, [*self.collections.values()])
        batch_bytes = max_batch_bytes(config.kafka.options)
        self._spawn(partial(looking, batch_bytes=batch_bytes), self._fail)
        joining = partial(keep_in_group, self._group, services.group, self.broker_watch)
        self._spawn(joining, self._fail)

    async def _watch_broker(self, admin: AIOKafkaAdminClient, changelog: AIOKafkaConsumer) -> None:
        """Watch the answers about the changelogs of collections that have not stopped."""

        def topics() -> set[str]:
            engines = self.collections.values()
            return {engine.config.topics.changelog for engine in engines if not engine.stopped}

        bootstrap, why = self.config.kafka.bootstrap, partial(why_unread, admin)
        await self.broker_watch.run(changelog, bootstrap, topics=topics, why=why)

    def _run_rank(self, rank: Rank, changelog: AIOKafkaConsumer, source: AIOKafkaConsumer) -> None:
        engines = {engine.config.topics.changelog: engine for engine in rank.engines}
        replicas = {
            TopicPartition(topic, replica.partition): replica
            for topic, engine in engines.items()
            for replica in engine.replicas
        }
        reader = ChangelogReader(
            changelog,
            replicas,
            on_read=lambda p: engines[p.topic].replica_read(p.partition),
            on_broken=lambda p, why: engines[p.topic].fail(
                f"its state in {p.topic}[{p.partition}] cannot be used: {why}"
            ),
        )
        rank.reader.start(source)
        self._spawn(reader.run, self._fail)
        self._spawn(rank.reader.run, self._fail)

    def _spawn(self, run: Callable[[], Awaitable[None]], failed: Callable[[str], None]) -> None:
        """Run a task until `stop`; call `failed` if it ends with an error."""
        self._tasks.append(asyncio.create_task(run_isolated(run, failed)))

    def _fail(self, problem: str) -> None:
        """Stop everything, because something that all collections depend on has failed."""
        self.failed = True
        for engine in self._all:
            engine.fail(problem)

    def _report_unread_orders(self, problem: str) -> None:
        # Counting continues: the next restart may be able to read the orders.
        for engine in self._all:
            engine.report_problem(f"orders to close panes are no longer read: {problem}")

    async def wait_for_clock(self) -> None:
        """Wait while this machine's clock is wrong."""
        while self.clock.wrong:  # noqa: ASYNC110 (only the broker's answers change it)
            await asyncio.sleep(CLOCK_SECONDS)

    async def stop(self) -> None:
        """Flush, commit progress, and close all clients; does nothing if not started."""
        self._stopped = True
        # A user's app may be stopped while it waits for the broker here.
        if self._starting is not None:
            await end_tasks([self._starting])
        await self.revoked()
        await self._progress.commit()
        await end_tasks(self._tasks)
        self._tasks.clear()
        await self._connections.close()

    async def _read_orders(self, consumer: AIOKafkaConsumer) -> None:
        """Pass on orders to close panes; count invalid ones, and log the first of each topic.

        Applying an order again has no effect.
        """
        bad: set[str] = set()
        async for record in replayed(consumer, self._by_control):
            engine = self._by_control[record.topic]
            try:
                control = decode_control(record.value or b"")
            except ControlError as error:
                self.metrics.refused_orders.labels(engine.config.name).inc()
                # Topics are read from the beginning at every start.
                log.log(
                    logging.DEBUG if record.topic in bad else logging.WARNING,
                    "topic %s, offset %d: not an order to close panes, skipped: %s; "
                    "ldpstream_refused_orders_total counts them",
                    *(record.topic, record.offset, error),
                )
                bad.add(record.topic)
                continue
            for state in (engine, *engine.accepted):
                with isolate_errors(state.fail):
                    state.apply_control(control)
