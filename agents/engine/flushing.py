"""Write flushes to the changelog, and wait until the replica shows whether each has won."""

import asyncio
import logging
import math
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from aiokafka.errors import KafkaError

from ldpstream.agents.broker.health import BrokerWatch, GroupWatch
from ldpstream.agents.broker.identity import TopicIdentity
from ldpstream.agents.broker.producer import LastingProducer
from ldpstream.agents.broker.refusals import Complaints
from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.engine.clock import PARTITIONS, WorkerClock
from ldpstream.agents.engine.intake import OwnedPartition, Owner
from ldpstream.agents.engine.isolation import run_isolated
from ldpstream.agents.engine.metrics import Metrics
from ldpstream.agents.state.flushes import Copy, Flush, Settled

FLUSH_SECONDS: Final = 0.25

log = logging.getLogger(__name__)


class FlushPace:
    """Bounds how often a worker flushes: each flush costs about the same, however little it holds.

    Up to `PARTITIONS` flushes in `FLUSH_SECONDS` start as soon as they are due. With more,
    partitions flush together in rounds, so that they share requests to the broker and all get their
    turn; the larger a round was, the later the next one begins.
    """

    def __init__(self) -> None:
        self._free = -math.inf
        self._crowded = False
        self._round = False

    @contextmanager
    def round(self, now: float) -> Iterator[None]:
        """Visit all partitions in a block: each may flush, unless it is too early for a round."""
        self._crowded = self._crowded and now < self._free
        self._round = not self._crowded
        try:
            yield
        finally:
            self._round = False

    @property
    def open(self) -> bool:
        """Whether a partition that is due may flush now."""
        return self._round or not self._crowded

    def started(self, now: float) -> None:
        """Count a flush that has started."""
        self._free = max(self._free, now) + FLUSH_SECONDS / PARTITIONS
        self._crowded |= self._free - now > FLUSH_SECONDS


@dataclass(frozen=True)
class Services:
    """The objects that all engines of a worker share."""

    producer: LastingProducer
    identity: TopicIdentity
    metrics: Metrics
    clock: WorkerClock
    broker: BrokerWatch = field(default_factory=BrokerWatch)
    group: GroupWatch = field(default_factory=GroupWatch)
    pace: FlushPace = field(default_factory=FlushPace)


@dataclass(eq=False)
class InFlightFlushes:
    """The flushes of one collection, at most one in flight for each partition.

    A partition flushes at most every `FLUSH_SECONDS`, or as often as estimates are published if
    that is more often; all together by the pace of `services`.
    """

    title: str
    config: CollectionConfig
    services: Services
    owner: Owner
    complaints: Complaints = field(default_factory=Complaints)

    @property
    def _every_seconds(self) -> float:
        return min(FLUSH_SECONDS, self.config.publish_every_seconds)

    def start(self, partition: OwnedPartition) -> None:
        """Flush a partition that is due or full, if it has something new and no flush in flight."""
        due = (
            time.monotonic() - partition.flushed >= self._every_seconds and self.services.pace.open
        )
        if due or partition.state.full:
            self._start(partition)

    def _start(self, partition: OwnedPartition) -> None:
        if partition.flight is not None or partition.leaving:
            return
        flush = partition.state.flush()
        if flush is not None:
            partition.flushed = time.monotonic()
            self.services.pace.started(partition.flushed)
            # Any other error than the broker's stops the collection, which must not seem alive.
            flying = run_isolated(partial(self._run_flush, partition, flush), self.owner.fail)
            partition.flight = asyncio.create_task(flying)

    def schedule(self, partition: OwnedPartition) -> None:
        """Schedule a flush of a partition with something new for when it is due."""
        wait = partition.flushed + self._every_seconds - time.monotonic()
        if wait <= 0 or partition.state.full:
            self.start(partition)
        elif partition.timer is None:
            partition.timer = asyncio.get_running_loop().call_later(wait, self._due, partition)

    def _due(self, partition: OwnedPartition) -> None:
        partition.timer = None
        self.start(partition)

    async def drain(self, partitions: Collection[OwnedPartition], seconds: float) -> None:
        """Flush what has been ingested by now, within this many seconds.

        What arrives meanwhile is left to the next owner. Otherwise, with a steady stream, this
        would never end, and the last flush would be cut off between its copies and its head.
        `partitions` may shrink meanwhile.
        """
        flushing = [
            asyncio.create_task(self._flush_all(partition, partitions)) for partition in partitions
        ]
        if flushing:
            _, late = await asyncio.wait(flushing, timeout=seconds)
            for flush in late:
                flush.cancel()

    async def _flush_all(
        self, partition: OwnedPartition, partitions: Collection[OwnedPartition]
    ) -> None:
        if partition.flight is not None:
            # The flush in flight started before the newest data arrived.
            await asyncio.wait([partition.flight])
        if any(other is partition for other in partitions):
            self._start(partition)
            partition.leaving = True
        if partition.flight is not None:
            await asyncio.wait([partition.flight])

    async def _run_flush(self, partition: OwnedPartition, flush: Flush) -> None:
        """Send one flush to the broker and wait for its outcome."""
        try:
            await self.write_flush(partition.number, flush)
            while (settled := partition.state.settle()) is Settled.WAITING:
                partition.read.clear()
                await partition.read.wait()
            if settled is Settled.WON:
                assert partition.state.outcome is not None
                seconds = time.monotonic() - partition.flushed
                self.owner.on_flush_committed(partition.state.outcome, seconds)
                self.complaints.clear(partition.number)
            else:
                self.owner.on_ownership_loss(partition)
        except KafkaError as error:
            what = f"partition {partition.number}"
            log.debug("collection %s: %s: flush failed: %r", self.title, what, error)
            self.complaints.report_error(partition.number, error, what)
            self.owner.on_ownership_loss(partition, refused=True)
        finally:
            partition.flight = None

    async def write_flush(self, partition: int, flush: Flush) -> None:
        """Write a flush.

        1. Send copies and cells, and wait for all acknowledgements.
        2. Check that the source is still the topic that was counted from.
        3. Send the head.

        If cells and head fit into one batch, they are sent as one, which is stored whole or not at
        all. After an error, what was sent may still be stored.
        """
        changelog, cells = self.config.topics.changelog, flush.cells
        producer = self.services.producer
        await asyncio.gather(
            *(self._copies(partition, kind, flush.copies) for kind in ("late", "rejected")),
            # After the last message and before the head: all were from the known topic.
            self.check_source(),
        )
        whole = (*cells, flush.head)
        if not await producer.send_whole(changelog, partition, whole):
            await producer.send_records(changelog, partition, cells)
            await self.check_source()
            await producer.send_records(changelog, partition, (flush.head,))

    async def check_source(self) -> None:
        """Check that source and changelog are still the topics that were counted from."""
        name, topics = self.config.name, self.config.topics
        then = f"`ldpstream reset {name}` starts over with it"
        await self.services.identity.check((topics.source, topics.changelog), then=then)

    async def _copies(self, partition: int, kind: str, copies: Sequence[Copy]) -> None:
        chosen = [(copy.value, copy.headers) for copy in copies if copy.kind == kind]
        if chosen:
            topics = self.config.topics
            topic = topics.late if kind == "late" else topics.rejected
            await self.services.producer.send_all(topic, partition, chosen)
