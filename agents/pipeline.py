"""All collections of one worker process: clients, readers, engines and publishers together.

The pipeline knows nothing of Faust but three calls: partitions come (`assigned`), go (`revoked`),
and messages arrive (`Engine.deliver`). `ldpstream.agents.worker` connects them.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from functools import partial
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from ldpstream.agents import clients
from ldpstream.agents.changelog import ChangelogReader
from ldpstream.agents.clock import Control
from ldpstream.agents.config import CollectionConfig, Config
from ldpstream.agents.connections import Connections
from ldpstream.agents.context import Context
from ldpstream.agents.declare import declare_topics
from ldpstream.agents.document import final_content
from ldpstream.agents.engine import Engine, Hooks
from ldpstream.agents.health import watch_broker
from ldpstream.agents.identity import TopicIdentity
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.orders import ControlReader
from ldpstream.agents.permissions import missing_on_group, missing_on_topics
from ldpstream.agents.producing import LastingProducer, NoIdempotenceError
from ldpstream.agents.progress import Progress, Stream
from ldpstream.agents.publisher import Publisher
from ldpstream.agents.refusals import explain
from ldpstream.agents.source import SourceReader, Stretch
from ldpstream.agents.sweeper import sweep

_WAIT_MS: Final = 500
_SOURCE_WAIT_MS: Final = 250
_SMALL_STATISTIC: Final = 4096


log = logging.getLogger(__name__)


class BrokerUnavailableError(RuntimeError):
    """No broker can be worked with; the message says which one, why, and what to do."""


class Pipeline:
    """The collections of one worker; `collections` are by name, in the configuration's order."""

    def __init__(self, config: Config, *, stream: Stream, metrics: Metrics) -> None:
        self.config = config
        self.metrics = metrics
        self.assigned_once = asyncio.Event()
        self._stream = stream
        self._progress = Progress(stream, metrics, on_end=self._end)
        self._reader = SourceReader(
            (p for c in config.collections.values() for p in _partitions(c.topics.source, c)),
            on_stretch=self._stretch,
            on_outside=self._outside,
            on_error=_note,
        )
        self._identity = TopicIdentity()
        self._producer = LastingProducer(config.kafka.bootstrap, config.kafka.options)
        self.collections: dict[str, Engine] = {
            name: Engine(collection, _context(collection), self._reader, self._hooks(collection))
            for name, collection in config.collections.items()
        }
        self._by_source = {e.config.topics.source: e for e in self.collections.values()}
        self._by_changelog = {e.config.topics.changelog: e for e in self.collections.values()}
        self._by_control = {e.config.topics.control: e for e in self.collections.values()}
        self._connections = Connections(config.kafka)
        self._tasks: list[asyncio.Task[None]] = []
        self._releases: set[asyncio.Task[None]] = set()

    @property
    def ready(self) -> bool:
        """Whether the group has said what is ours, and every collection works or says why not."""
        engines = self.collections.values()
        return self.assigned_once.is_set() and all(e.settled or e.problems for e in engines)

    # --- the group ------------------------------------------------------------------------------

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Take over these partitions, and no others."""
        owned = list(partitions)
        for source, engine in self._by_source.items():
            engine.assign(p.partition for p in owned if p.topic == source)
        self.assigned_once.set()

    async def revoked(self) -> None:
        """Flush, then give up all partitions: the group is about to hand them out anew."""
        await asyncio.gather(*(engine.revoke() for engine in self.collections.values()))

    # --- lifecycle ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect, make sure of the topics, and begin to read.

        Raises:
            BrokerUnavailableError: if no broker answers, or it lacks what is needed.
            TopicError: if a topic contradicts the configuration.
            ClientOptionError: if `[kafka]` has a setting that no client knows.
        """
        kafka = self.config.kafka
        try:
            await self._start()
        except NoIdempotenceError as error:
            await self.stop()
            raise BrokerUnavailableError(
                f"the broker at {kafka.bootstrap} has no idempotent producer: set "
                "enable_idempotence = false under [kafka] if it is a development broker"
            ) from error
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
        factor = clients.replication_factor(
            kafka.options,
            brokers=len(admin._client.cluster.brokers()),  # noqa: SLF001 (not offered otherwise)
        )
        missing: list[str] = []
        for engine in self.collections.values():
            found = await declare_topics(admin, engine.config, replication_factor=factor)
            self._identity.remember(found)
            missing += missing_on_topics(engine.config, found)
        missing += await missing_on_group(admin, self.config.worker.id)
        if missing:
            raise BrokerUnavailableError(
                f"the broker at {kafka.bootstrap} does not permit it: {'; '.join(missing)}"
            )
        self._identity.start(admin)
        await connections.producer(self._producer)
        changelog = await connections.reader(committed_only=False, wait_ms=_WAIT_MS)
        control = await connections.reader(committed_only=True, wait_ms=_WAIT_MS)
        source = await connections.reader(committed_only=True, wait_ms=_SOURCE_WAIT_MS)
        self._reader.start(source)
        self._run_readers(changelog, control)
        for engine in self.collections.values():
            self._run_engine(engine)
        self._spawn(self._progress.run(), None)
        self._spawn(watch_broker(changelog, kafka.bootstrap), None)

    def _run_readers(self, changelog: AIOKafkaConsumer, control: AIOKafkaConsumer) -> None:
        tails = {
            TopicPartition(engine.config.topics.changelog, tail.partition): tail
            for engine in self.collections.values()
            for tail in engine.tails
        }
        reader = ChangelogReader(
            changelog, tails, on_read=self._tail_read, on_broken=self._broken, on_error=_note
        )
        orders = ControlReader(
            control,
            list(self._by_control),
            on_order=self._order,
            on_bad=_bad_order,
            on_error=_note,
        )
        for run in (reader.run(), orders.run(), self._reader.run()):
            self._spawn(run, None)

    def _run_engine(self, engine: Engine) -> None:
        topics, name = engine.config.topics, engine.config.name
        publisher = Publisher(
            engine,
            send=partial(self._send_keyed, topics.estimates),
            estimated=partial(self.metrics.estimated, name),
        )
        sweeping = sweep(engine, partial(self._send_keyed, topics.changelog))
        for run in (engine.run(), publisher.run(), sweeping, self._identity.watch(engine)):
            self._spawn(run, engine)

    def _spawn(self, run: Coroutine[Any, Any, None], engine: Engine | None) -> None:
        task = asyncio.create_task(run)
        task.add_done_callback(partial(self._ended, engine))
        self._tasks.append(task)

    def _ended(self, engine: Engine | None, task: "asyncio.Task[None]") -> None:
        """Stop what depended on a task that failed: it must not seem to go on."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.debug("a task of the pipeline failed", exc_info=error)
            for hurt in self.collections.values() if engine is None else [engine]:
                hurt.fail(f"internal error: {error!r}")

    async def stop(self) -> None:
        """Flush, say how far we came, and close all clients; harmless when not started."""
        await self.revoked()
        await self._progress.commit()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await self._connections.close()

    # --- what the readers found -----------------------------------------------------------------

    def _stretch(self, partition: TopicPartition, stretch: Stretch) -> None:
        self._by_source[partition.topic].stretch(partition.partition, stretch)

    def _outside(self, partition: TopicPartition, beginning: int) -> None:
        self._by_source[partition.topic].outside(partition.partition, beginning)

    def _end(self, partition: TopicPartition, end: int) -> None:
        engine = self._by_source.get(partition.topic)
        if engine is not None:
            engine.ends_at(partition.partition, end)

    def _tail_read(self, partition: TopicPartition) -> None:
        self._by_changelog[partition.topic].tail_read()

    def _broken(self, partition: TopicPartition, why: str) -> None:
        engine = self._by_changelog[partition.topic]
        engine.fail(f"its state in {partition.topic}[{partition.partition}] cannot be used: {why}")

    def _order(self, topic: str, control: Control) -> None:
        self._by_control[topic].order(control)

    # --- what the engines say -------------------------------------------------------------------

    def _hooks(self, collection: CollectionConfig) -> Hooks:
        return Hooks(
            send=self._producer.send,
            source_id=partial(self._identity.source_id, collection.topics),
            check_source=partial(self._identity.check, collection.name, collection.topics),
            won=partial(self._progress.won, collection),
            hold=partial(self._hold, collection.topics.source),
            release=partial(self._release, collection.topics.source),
        )

    def _hold(self, source: str, partition: int) -> None:
        self._stream.hold(TopicPartition(source, partition))

    def _release(self, source: str, partition: int, offset: int) -> None:
        release = self._stream.release(TopicPartition(source, partition), offset)
        task = asyncio.create_task(release)
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)

    async def _send_keyed(
        self, topic: str, key: bytes, value: bytes | None, partition: int | None = None
    ) -> None:
        await self._producer.send(topic, partition, key, value)


def _partitions(topic: str, collection: CollectionConfig) -> list[TopicPartition]:
    return [TopicPartition(topic, partition) for partition in range(collection.partitions)]


def _context(collection: CollectionConfig) -> Context:
    # Composing a final of a small statistic takes about a millisecond: a replay closes thousands.
    small = collection.spec.mechanism.statistic_size <= _SMALL_STATISTIC
    return Context(
        spec=collection.spec,
        window=collection.window,
        compose=final_content(collection),
        copy_rejected=collection.rejected == "copy",
        finals_a_step=128 if small else 16,
    )


def _note(error: KafkaError) -> None:
    log.debug("the broker refused or did not answer: %r", error)


def _bad_order(topic: str, offset: int, why: str) -> None:
    log.warning("topic %s, offset %d: not an order to close panes: %s", topic, offset, why)
