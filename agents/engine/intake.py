"""Ingest every message of an owned partition once, even if the channel loses or repeats batches.

A partition is read in sessions from its next offset on. What a session has read waits in it, and
its first batch is also sent through a channel to the collection's agent, which counts it. The
channel may lose a batch or deliver it twice: a lost one is sent again, and one that is no longer
the first of its session is ignored. Known messages are skipped, and a gap starts a new session.

A partition is full until a flush has written what it holds. Until then its batches wait, and its
reader pauses.
"""

import asyncio
import logging
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Final, Protocol

from aiokafka import TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.engine.clock import WorkerClock
from ldpstream.agents.engine.isolation import isolate_errors
from ldpstream.agents.engine.source import Batch, Outside, Session, SourceReader
from ldpstream.agents.state.flushes import Outcome
from ldpstream.agents.state.partition import Partition

SHORT_SECONDS: Final = 10.0

log = logging.getLogger(__name__)


@dataclass
class OwnedPartition:
    """A loaded partition. Times are on the monotonic clock, in seconds."""

    state: Partition
    session: Session | None = None
    """The session in which the source is read."""
    flushed: float = 0.0
    """When its last flush began."""
    flight: "asyncio.Task[None] | None" = None
    """The flush in flight."""
    timer: asyncio.TimerHandle | None = None
    """The scheduled next flush."""
    leaving: bool = False
    """Whether it is being dropped: no flush or reading begins any more."""
    read: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when its replica has been evaluated."""

    @property
    def number(self) -> int:
        """Its number in the topic."""
        return self.state.partition


class Owner(Protocol):
    """Owns partitions, and reacts to what happens to them: an engine."""

    def fail(self, problem: str) -> None:
        """Stop for good: only an operator can fix this problem."""

    def schedule_flush(self, partition: OwnedPartition) -> None:
        """Schedule a flush of what has been ingested for when it is due."""

    def on_flush_committed(self, outcome: Outcome, seconds: float) -> None:
        """Record a flush that won, what it added, and how many seconds it took."""

    def on_ownership_loss(self, partition: OwnedPartition, *, refused: bool = False) -> None:
        """Drop a partition that another owner has written to, or whose flush was refused."""


class BatchQueue(Protocol):
    """Carries batches from a reader to the agent that counts them, in order."""

    def send_batch(self, batch: Batch) -> None:
        """Append a batch, without waiting."""

    def empty(self) -> bool:
        """Return whether it holds no batch."""


@dataclass(eq=False)
class Intake:
    """Ingests what is read from one collection's owned partitions."""

    config: CollectionConfig
    reader: SourceReader
    channel: BatchQueue
    owner: Owner
    clock: WorkerClock
    end_offsets: dict[int, int] = field(default_factory=dict)
    """The source's end offsets last seen, by partition."""
    _partitions: dict[int, OwnedPartition] = field(default_factory=dict, init=False)
    """The partitions that are read."""

    def begin(self, partition: OwnedPartition) -> None:
        """Start reading for a loaded partition."""
        self._partitions[partition.number] = partition
        self._read(partition)

    def end(self, partition: OwnedPartition) -> None:
        """Stop reading the source of a partition."""
        if self._partitions.get(partition.number) is partition:
            del self._partitions[partition.number]
        partition.state.interrupted()
        if partition.session is not None:
            partition.session.end()
            partition.session = None

    def resume_reading(self, partition: OwnedPartition) -> None:
        """Send what waits if the partition was full or a batch was lost; at every tick."""
        if partition.session is not None:
            partition.session.next(resend=self.channel.empty())

    def count(self, batch: Batch) -> bool:
        """Count a batch from the channel; return False if no session of this intake waits for it.

        Then it has come twice, or its partition is no longer read in the session that sent it.
        """
        partition = self._partitions.get(batch.partition)
        session = None if partition is None else partition.session
        if partition is None or session is None:
            return False
        if not session.waiting or session.waiting[0] is not batch:
            return False
        self._take_first(partition, session)
        return True

    def _take_first(self, partition: OwnedPartition, session: Session) -> None:
        """Handle the item that has waited longest in a session, if the partition has room."""
        session.called = False
        with isolate_errors(self.owner.fail):
            if session.waiting and not partition.state.full:
                self._take(partition, session, session.take())
                session.next()

    def _take(self, partition: OwnedPartition, session: Session, item: Batch | Outside) -> None:
        if isinstance(item, Outside):
            self._outside(partition, item)
            return
        self.end_offsets[partition.number] = item.end
        short_seconds = session.short_for(item, self.clock.seconds())
        if short_seconds > SHORT_SECONDS:
            self._report_new_topic(f"ends at offset {item.end}, before {item.start}")
        elif short_seconds >= 0:
            partition.state.interrupted()
        elif item.start > partition.state.next:
            self._read(partition)
        else:
            self._ingest(partition, item)

    def _ingest(self, partition: OwnedPartition, batch: Batch) -> None:
        state, following = partition.state, partition.state.next
        first_new = bisect_left(batch.records, following, key=itemgetter(0))
        if first_new < len(batch.records):
            fresh, now_ms = batch.rest(first_new), self.clock.now_ms()
            arrived = fresh.dates.arrivals(now_ms=now_ms, ahead_ms=now_ms - self.clock.steady_ms())
            state.ingest(fresh.records, now_ms=now_ms, arrived=arrived)
        state.read_to(batch.stop, end=batch.end, asked_ms=batch.asked_ms)
        if state.next > following:
            self.owner.schedule_flush(partition)

    def _outside(self, partition: OwnedPartition, outside: Outside) -> None:
        """Continue where the source now begins, or stop if it ends before the requested offset."""
        following = partition.state.next
        if min(outside.position, following) >= outside.beginning:
            self._report_new_topic(f"ends before offset {following}")
        else:
            self._skip(partition, max(outside.beginning, following))

    def _skip(self, partition: OwnedPartition, beginning: int) -> None:
        """Continue at an offset, because nothing before it is left."""
        missing = partition.state.skip_to(beginning, now_ms=self.clock.now_ms())
        if missing:
            log.error(
                "collection %s: the retention of %s[%d] deleted offsets %d to %d before they were "
                "read",
                *(self.config.name, self.config.topics.source, partition.number),
                *(beginning - missing, beginning - 1),
            )
        self._read(partition)

    def _report_new_topic(self, how: str) -> None:
        self.owner.fail(
            f"topic {self.config.topics.source} {how}, which its state includes: it was created "
            f"again; `ldpstream reset {self.config.name}` starts over with it"
        )

    def _read(self, partition: OwnedPartition) -> None:
        """Start a session at the next offset."""
        partition.state.interrupted()
        source = TopicPartition(self.config.topics.source, partition.number)
        partition.session = self.reader.begin(
            source, partition.state.next, partial(self._send, partition)
        )

    def _send(self, partition: OwnedPartition, session: Session) -> None:
        """Send the first batch of a session to the agent."""
        first = session.waiting[0]
        if isinstance(first, Batch) and first.records:
            self.channel.send_batch(first)
        else:
            # Nothing is counted, so the agent has no work: with thousands of idle partitions, each
            # is still probed every second or two.
            self._take_first(partition, session)
