"""All collections of one worker process: clients, readers, engines and publishers.

The pipeline knows nothing of Faust: partitions are given (`assigned`) and taken (`revoked`), and
what is read goes through channels. `ldpstream.agents.worker` connects them.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from ldpstream.agents.config import Config
from ldpstream.agents.kafka import clients
from ldpstream.agents.kafka.awaited import wait_for_broker
from ldpstream.agents.kafka.connections import Connections
from ldpstream.agents.kafka.declare import declare_topics
from ldpstream.agents.kafka.metadata import count_brokers
from ldpstream.agents.kafka.permissions import missing_on_group, missing_on_topics
from ldpstream.agents.kafka.producing import LastingProducer, NoIdempotenceError
from ldpstream.agents.kafka.refusals import (
    BrokerUnavailableError,
    explain,
    no_idempotence,
    not_permitted,
)
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.partition.clock import Control
from ldpstream.agents.pipeline.clock_watch import STEP_SECONDS, ClockWatch
from ldpstream.agents.pipeline.contexts import source_wait_ms
from ldpstream.agents.pipeline.engine import Engine
from ldpstream.agents.pipeline.identity import TopicIdentity
from ldpstream.agents.pipeline.progress import Group, Progress
from ldpstream.agents.pipeline.publisher import Publisher
from ldpstream.agents.pipeline.ranks import Rank, make_ranks, topic_partitions
from ldpstream.agents.pipeline.services import Services
from ldpstream.agents.pipeline.tasks import Tasks
from ldpstream.agents.pipeline.tombstones import collect_tombstones
from ldpstream.agents.pipeline.windowed import WindowedTable
from ldpstream.agents.reading.changelog import ChangelogReader
from ldpstream.agents.reading.contained import contained
from ldpstream.agents.reading.intake import Channel
from ldpstream.agents.reading.interval import scaled_interval
from ldpstream.agents.reading.orders import ControlReader
from ldpstream.agents.reading.packed_intake import PackedIntake
from ldpstream.agents.reading.source import Batch, Outside, SourceReader
from ldpstream.agents.served.clock import WorkerClock
from ldpstream.agents.served.health import BrokerWatch, note_error
from ldpstream.agents.state.skew import skew_limit_ms
from ldpstream.agents.stores.choice import Stores

_WAIT_MS: Final = 500
_MOST_WAIT_MS: Final = 2_000

log = logging.getLogger(__name__)


class Pipeline:
    """The collections of one worker, by name in the configuration's order.

    `channels`, by collection, carry what is read as `(take, partition, item)`, in order. The
    receiver must call `take(partition, item)`.
    """

    def __init__(
        self, config: Config, *, group: Group, channels: Mapping[str, Channel], metrics: Metrics
    ) -> None:
        self.config = config
        self.metrics = metrics
        self.assigned_once = asyncio.Event()
        self._group = group
        self._progress = Progress(group, metrics)
        self._frames = SourceReader(
            (
                p
                for c in config.collections.values()
                if c.topics.frames is not None
                for p in topic_partitions(c.topics.frames, c)
            ),
            deliver=self._deliver_frames,
            on_error=note_error,
        )
        self._identity = TopicIdentity()
        grace_ms = min((c.window.grace_ms for c in config.collections.values()), default=0)
        self.clock = WorkerClock(skew_limit_ms(grace_ms))
        self._producer = LastingProducer(
            config.kafka.bootstrap, config.kafka.options, watch=self.clock
        )
        self._channels = channels
        self._services = Services(
            self._producer, self._identity, self._progress, metrics, self.clock
        )
        self._ranks = make_ranks(
            [*config.collections.values()], self._frames, channels, self._services
        )
        self.collections: dict[str, Engine] = {e.config.name: e for e in self._ranks[0].engines}
        self._all = [e for own in self.collections.values() for e in (own, *own.accepted)]
        self._by_frames = {e.config.topics.frames: e for e in self.collections.values()}
        shared = [(e.config.topics, (e, *e.accepted)) for e in self.collections.values()]
        self._by_control = {topics.control: engines for topics, engines in shared}
        self._connections = Connections(config.kafka)
        self._stores = Stores(config.worker)
        self._tasks = Tasks()
        self._bad_orders: set[str] = set()
        self.failed = False
        self.broker_watch = BrokerWatch()

    @property
    def ready(self) -> bool:
        """Whether partitions are assigned, and every collection works or has a known problem."""
        return self.assigned_once.is_set() and all(e.settled or e.problems for e in self._all)

    def windows(self, name: str) -> WindowedTable:
        """Return the windowed table of a collection's own spec, read-only.

        Raises:
            KeyError: for a collection that is not configured.
        """
        engine = self.collections[name]
        return WindowedTable(engine.context, engine.replicas)

    # --- the group ------------------------------------------------------------------------------

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Take over exactly these partitions."""
        owned = frozenset(partitions)
        self._progress.assigned(owned)
        sources = {engine.config.topics.source for engine in self._all}
        self._group.silence({p for p in owned if p.topic in sources})
        for engine in self._all:
            source = engine.config.topics.source
            with contained(engine.fail):
                engine.assign(p.partition for p in owned if p.topic == source)
        self.assigned_once.set()

    async def revoked(self) -> None:
        """Flush, then give up all partitions: the group is about to reassign them."""
        await asyncio.gather(*map(_revoke, self._all))

    # --- lifecycle ------------------------------------------------------------------------------

    async def wait_for_broker(self) -> None:
        """Wait until a broker answers; meanwhile `broker_watch` reports that it waits.

        Raises:
            ClientOptionError: if `[kafka]` has a setting that no client knows.
        """

        def wait() -> None:
            self.broker_watch.silent = True

        await wait_for_broker(self.config.kafka, on_wait=wait)
        self.broker_watch.silent = False

    async def start(self) -> None:
        """Connect, check the topics, and start to read.

        Raises:
            BrokerUnavailableError: if no broker answers, or it lacks a required feature.
            TopicError: if a topic contradicts the configuration.
            ClientOptionError: if `[kafka]` has a setting that no client knows.
            StoreError: if the store under `[worker]` cannot be opened.
        """
        kafka = self.config.kafka
        try:
            await self._start()
        except NoIdempotenceError as error:
            await self.stop()
            raise no_idempotence(kafka) from error
        except KafkaError as error:
            await self.stop()
            raise BrokerUnavailableError(await explain(error, kafka)) from error
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        kafka = self.config.kafka
        connections = self._connections
        admin = await connections.admin()
        factor = clients.replication_factor(kafka.options, brokers=count_brokers(admin))
        missing: list[str] = []
        for engine in self.collections.values():
            found = await declare_topics(admin, engine.config, replication_factor=factor)
            self._identity.remember(found)
            missing += missing_on_topics(engine.config, found)
        missing += await missing_on_group(admin, self.config.worker.id)
        if missing:
            raise not_permitted(kafka, missing)
        self._identity.start(admin)
        await connections.producer(self._producer)
        # Before joining the group: nothing may be decided with a wrong clock.
        watch = ClockWatch(self.clock, self._all, self._group, self._producer)
        await watch.ask()
        self._spawn(watch.run())
        control = await connections.reader(committed_only=True, wait_ms=_WAIT_MS)
        if any(topic is not None for topic in self._by_frames):
            self._frames.start(await connections.reader(committed_only=True, wait_ms=_WAIT_MS))
            self._spawn(self._frames.run())
        for rank in self._ranks:
            many = sum(engine.config.partitions for engine in rank.engines)
            wait_ms = int(scaled_interval(_WAIT_MS, many, most=_MOST_WAIT_MS))
            changelog = await connections.reader(committed_only=False, wait_ms=wait_ms)
            source = await connections.reader(committed_only=True, wait_ms=source_wait_ms(many))
            self._run_rank(rank, changelog, source)
            if rank is self._ranks[0]:
                self._spawn(self.broker_watch.run(changelog, kafka.bootstrap))
        orders = ControlReader(
            control,
            list(self._by_control),
            on_order=self._order,
            on_bad=self._bad_order,
            on_error=note_error,
        )
        self._tasks.spawn(orders.run(), self._orders_ended)
        for engine in self._all:
            self._run_engine(engine)
        self._spawn(self._progress.run())

    def _run_rank(self, rank: Rank, changelog: AIOKafkaConsumer, source: AIOKafkaConsumer) -> None:
        resumed = self._stores.open(rank.engines, self._identity.topic_id, others=self._all)
        by_changelog = {engine.config.topics.changelog: engine for engine in rank.engines}
        reader = ChangelogReader(
            changelog,
            {
                TopicPartition(topic, replica.partition): replica
                for topic, engine in by_changelog.items()
                for replica in engine.replicas
            },
            resumed=resumed,
            on_read=lambda partition: by_changelog[partition.topic].replica_read(
                partition.partition
            ),
            on_broken=lambda partition, why: by_changelog[partition.topic].fail(
                f"its state in {partition.topic}[{partition.partition}] cannot be used: {why}"
            ),
            on_error=note_error,
        )
        rank.reader.start(source)
        for run in (reader.run(), rank.reader.run()):
            self._spawn(run)

    def _run_engine(self, engine: Engine) -> None:
        publisher = Publisher(engine, self._services)
        sweeping = collect_tombstones(engine, self._producer)
        for run in (engine.run(), publisher.run(), sweeping, engine.watch_source()):
            self._tasks.spawn(run, engine.fail)

    def _spawn(self, run: Coroutine[Any, Any, None]) -> None:
        """Run a task that all collections depend on."""
        self._tasks.spawn(run, self._fail)

    def _fail(self, problem: str) -> None:
        self.failed = True
        for engine in self._all:
            engine.fail(problem)

    def _orders_ended(self, problem: str) -> None:
        # Counting continues: the next restart may be able to read the orders.
        for engine in self._all:
            engine.note(f"orders to close panes are no longer read: {problem}")

    async def clock_agrees(self) -> None:
        """Wait while this machine's clock is wrong."""
        while self.clock.wrong:  # noqa: ASYNC110 (only the broker's answers change it)
            await asyncio.sleep(STEP_SECONDS)

    async def stop(self) -> None:
        """Flush, commit progress, and close all clients; does nothing if not started."""
        await self.revoked()
        await self._progress.commit()
        await self._tasks.stop()
        await self._connections.close()
        self._stores.close()

    # --- callbacks of the readers ----------------------------------------------------------------

    def _deliver_frames(self, partition: TopicPartition, item: Batch | Outside) -> None:
        engine = self._by_frames[partition.topic]
        assert isinstance(engine.intake, PackedIntake)
        take = engine.intake.take_frames
        self._channels[engine.config.name].offer((take, partition.partition, item))

    def _order(self, topic: str, control: Control) -> None:
        for engine in self._by_control[topic]:
            with contained(engine.fail):
                engine.order(control)

    def _bad_order(self, topic: str, offset: int, why: str) -> None:
        """Count an invalid order; log one for each topic, since topics are read at every start."""
        first = topic not in self._bad_orders
        self._bad_orders.add(topic)
        self.metrics.refused_order(self._by_control[topic][0].config.name)
        log.log(
            logging.WARNING if first else logging.DEBUG,
            "topic %s, offset %d: not an order to close panes, skipped: %s; "
            "ldpstream_refused_orders_total counts them",
            *(topic, offset, why),
        )


async def _revoke(engine: Engine) -> None:
    with contained(engine.fail):
        await engine.revoke()
