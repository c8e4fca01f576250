"""Periodic work for all engines of a worker, one task for each kind.

The more partitions there are, the less often it runs.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Final, Protocol

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from aiokafka.structs import OffsetAndMetadata

from ldpstream.agents.broker.groups import commit_metadata
from ldpstream.agents.broker.health import BrokerWatch, GroupWatch
from ldpstream.agents.broker.producer import LastingProducer
from ldpstream.agents.broker.refusals import describe_refused_member
from ldpstream.agents.broker.topic_settings import wrong_settings
from ldpstream.agents.engine.clock import WorkerClock, scaled_interval
from ldpstream.agents.engine.engine import Engine
from ldpstream.agents.engine.flushing import FlushPace
from ldpstream.agents.engine.isolation import isolate_errors, run_isolated
from ldpstream.agents.state.encoding import encode_key, state_prefix
from ldpstream.agents.state.records import HEAD, Key
from ldpstream.agents.state.replica import DEAD_LIMIT

TICK_SECONDS: Final = 0.1
_MOST_TICK_SECONDS: Final = 0.5
_WATCH_SECONDS: Final = 2.0
_MOST_WATCH_SECONDS: Final = 10.0
_SETTINGS_SECONDS: Final = 30.0
_COMMIT_SECONDS: Final = 1.0
_MOST_COMMIT_SECONDS: Final = 5.0
CLOCK_SECONDS: Final = 0.25
_JOIN_SECONDS: Final = 1.0
_JOIN_AGAIN_SECONDS: Final = 5.0
_PASSING_LOOKS: Final = 15
_ASK_SECONDS: Final = 10.0
_ASK_SOON_SECONDS: Final = 1.0
_SWEEP_SECONDS: Final = 5.0
_MOST_SWEEP_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 0.2
_RECORDS_A_ROUND: Final = 20_000
_MANY_RECORDS: Final = DEAD_LIMIT // 4
"""With this many dead records in one partition, they are deleted at once."""

log = logging.getLogger(__name__)


class Group(Protocol):
    """The consumer group, as a pipeline uses it."""

    @property
    def id(self) -> str:
        """The name of the group."""

    @property
    def session_ms(self) -> int:
        """How long a silent member keeps its partitions."""

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> bool:
        """Commit how far partitions have been counted; return False if that failed."""

    def silence(self, partitions: AbstractSet[TopicPartition]) -> None:
        """Keep Faust's own client from fetching partitions that have just been assigned."""

    async def refusal(self) -> KafkaError | None:
        """Return why the broker refuses this member; its client then tries again."""

    async def leave(self) -> bool:
        """Leave the group for now, with everything read in it; return False if that failed."""

    async def come_back(self) -> bool:
        """Rejoin the group after `leave`; return False if that failed."""


async def keep_ticking(engines: Sequence[Engine], pace: FlushPace) -> None:
    """Load partitions, advance time and flush, until cancelled."""
    while True:
        deciding = False
        with pace.round(time.monotonic()):
            for engine in engines:
                with isolate_errors(engine.fail):
                    deciding |= engine.tick()
                await asyncio.sleep(0)
        partitions = sum(len(engine.loaded_partitions) for engine in engines)
        pause = scaled_interval(TICK_SECONDS, partitions, most=_MOST_TICK_SECONDS)
        await asyncio.sleep(0 if deciding else pause)


async def keep_checking_topics(engines: Sequence[Engine]) -> None:
    """Check at intervals that topics are still the same, until cancelled.

    A flush checks those that it needs. This is for collections without flushes.
    """
    many = sum(engine.config.partitions for engine in engines)
    every_seconds = scaled_interval(_WATCH_SECONDS, many, most=_MOST_WATCH_SECONDS)
    while True:
        await asyncio.sleep(every_seconds)
        # Concurrent checks share an answer.
        await asyncio.gather(*(engine.check_topics() for engine in engines if not engine.stopped))


async def keep_checking_settings(
    admin: AIOKafkaAdminClient, engines: Sequence[Engine], *, batch_bytes: int
) -> None:
    """Report settings of topics by which something is lost or stops, until cancelled."""
    while True:
        for engine in engines:
            with isolate_errors(engine.fail):
                topics = engine.config.topics.names()
                problems = await wrong_settings(
                    admin, engine.config, topics, batch_bytes=batch_bytes
                )
                engine.report_settings(problems)
        await asyncio.sleep(_SETTINGS_SECONDS)


async def ask_time(engine: Engine, producer: LastingProducer) -> None:
    """Make the broker timestamp a record: the deletion of a key that no owner ever writes."""
    key = encode_key(state_prefix(engine.context), Key(HEAD, 0, 0))
    await producer.send_records(engine.config.topics.changelog, 0, [(key, None)])


async def keep_to_clock(
    clock: WorkerClock, engines: Sequence[Engine], group: Group, producer: LastingProducer
) -> None:
    """Leave the group while the clock is wrong, and rejoin afterwards, until cancelled."""
    away = False
    while True:
        wrong = clock.wrong
        if wrong and not away:
            await asyncio.gather(*(run_isolated(e.unload, e.fail) for e in engines))
            away = await group.leave()
        elif away and not wrong:
            away = not await group.come_back()
        await asyncio.sleep(CLOCK_SECONDS)
        clock.now_ms()
        if clock.due(_ASK_SOON_SECONDS if wrong or clock.stepped else _ASK_SECONDS):
            with suppress(KafkaError):
                await ask_time(engines[0], producer)


async def keep_in_group(group: Group, watch: GroupWatch, broker: BrokerWatch) -> None:
    """Make a refused member of the group try again, and report why it is, until cancelled.

    What may pass by itself is reported once the broker has answered for a while and still refuses.
    Looks are counted, not seconds: a process that was suspended has not seen that time pass.
    """
    refused: KafkaError | None = None
    looks = 0
    while True:
        final = refused is not None and not refused.retriable
        await asyncio.sleep(_JOIN_AGAIN_SECONDS if final else _JOIN_SECONDS)
        refused = await group.refusal()
        looks = 0 if refused is None or broker.overdue or broker.silent else looks + 1
        passing = refused is not None and refused.retriable and looks < _PASSING_LOOKS
        if refused is None or passing:
            watch.update("")
        else:
            watch.update(describe_refused_member(refused, group.id, session_ms=group.session_ms))


class OffsetCommitter:
    """Commits to the group, every second, up to where assigned partitions are decided.

    This is only for tools that watch the group: a lost commit causes nothing but an apparent lag.
    Each names the changelog, so that `ldpstream check` of another deployment can tell of it.
    """

    def __init__(self, group: Group, engines: Sequence[Engine]) -> None:
        self.assigned: AbstractSet[TopicPartition] = frozenset()
        self._group = group
        self._engines = engines
        self._committed: Mapping[TopicPartition, OffsetAndMetadata] = {}

    async def commit(self) -> None:
        """Commit what has been decided since the last commit, or could not be committed then."""
        decided: dict[TopicPartition, OffsetAndMetadata] = {}
        for engine in self._engines:
            with isolate_errors(engine.fail):
                decided |= self._decided_offsets(engine)
        new = dict(decided.items() - self._committed.items())
        if new and await self._group.commit(new):
            self._committed = decided

    def _decided_offsets(self, engine: Engine) -> dict[TopicPartition, OffsetAndMetadata]:
        if not engine.settled:  # An unloaded partition may belong to another topic of this name.
            return {}
        topics = engine.config.topics
        return {
            partition: OffsetAndMetadata(replica.head.next, commit_metadata(topics.changelog))
            for replica in engine.replicas
            if (partition := TopicPartition(topics.source, replica.partition)) in self.assigned
            and replica.head is not None
        }

    async def run(self) -> None:
        """Commit until cancelled."""
        while True:
            many = len(self.assigned)
            await asyncio.sleep(scaled_interval(_COMMIT_SECONDS, many, most=_MOST_COMMIT_SECONDS))
            await self.commit()


async def collect_tombstones(engines: Sequence[Engine], producer: LastingProducer) -> None:
    """Delete dead records from the changelogs, until cancelled.

    Each engine has its turn every few seconds, less often if it has many partitions, but at once if
    one of them has much to delete. Correctness never depends on this: deleting a dead record twice,
    late or never does no harm. But each takes memory in every worker until it is deleted, so a
    partition with very many of them stops ingesting, and is swept at once.
    """
    sweeps = [_Sweep(engine, producer) for engine in engines]
    async with asyncio.TaskGroup() as group:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            for sweep in sweeps:
                if sweep.due():
                    sweep.running = group.create_task(run_isolated(sweep.run, sweep.engine.fail))


class _Sweep:
    """Sweeps the partitions of one engine."""

    def __init__(self, engine: Engine, producer: LastingProducer) -> None:
        self.engine = engine
        self._producer = producer
        self.running: asyncio.Task[None] | None = None
        self._swept = time.monotonic()
        # Deletions sent, but perhaps not read back yet, by partition.
        self._sent: dict[int, set[bytes]] = {}

    def due(self) -> bool:
        """Return whether it is time for a sweep, or one partition has much to delete."""
        if self.running is not None and not self.running.done():
            return False
        engine = self.engine
        every_seconds = scaled_interval(
            _SWEEP_SECONDS, len(engine.loaded_partitions), most=_MOST_SWEEP_SECONDS
        )
        return time.monotonic() - self._swept >= every_seconds or any(
            engine.replicas[partition].dead_records >= _MANY_RECORDS
            for partition in engine.loaded_partitions
        )

    async def run(self) -> None:
        """Delete what is dead, up to a number of records."""
        engine, changelog = self.engine, self.engine.config.topics.changelog
        dirty = [p for p in engine.loaded_partitions if engine.replicas[p].dead_records]
        # A key that was sent and is still dead has not been read back yet.
        sent = {p: engine.replicas[p].still_dead(self._sent.get(p, set())) for p in dirty}
        self._sent = sent
        # A partition with very many dead records must not take the others' share.
        share = _RECORDS_A_ROUND // max(1, len(dirty)) + 1
        due = {p: engine.replicas[p].dead(share, but=sent[p]) for p in dirty}
        try:
            await asyncio.gather(
                *(
                    self._producer.send_records(changelog, partition, [(key, None) for key in keys])
                    for partition, keys in due.items()
                    if keys
                )
            )
        except KafkaError as error:
            log.debug("sweeping %s failed: %r", engine.config.name, error)
        else:
            for partition, keys in due.items():
                sent[partition].update(keys)
        self._swept = time.monotonic()
