"""Pack the messages of source topics, many into one, partition for partition.

If devices send single reports at a high rate, reading them one by one costs far more than counting
them. A packer reads them once, in its own consumer group, and writes them together with their
offsets; workers then read whole arrays. It decides nothing: any number of packers may crash,
overlap or resume late, because source offsets show what is new (see
`ldpstream.agents.reading.packed_intake`).
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import (
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.kafka.polls import Answers, Run, runs, steady_ms
from ldpstream.agents.kafka.producing import LastingProducer
from ldpstream.agents.kafka.refusals import Complaints
from ldpstream.agents.metrics.packing import PackMetrics
from ldpstream.agents.packing.assigned import AssignedPartition, PackOptions, halves
from ldpstream.agents.state.packed import Packed, encode_packed

_RECORDS_A_STEP: Final = 20_000
_FIRST_BATCHES: Final = 16
"""How many batches the first step takes; later, as many as hold about _RECORDS_A_STEP."""
COMMIT_SECONDS: Final = 1.0
LEAVE_SECONDS: Final = 3.0
RETRY_SECONDS: Final = 1.0
_WAIT_SECONDS: Final = 0.5
_LOOK_SECONDS: Final = 0.05

log = logging.getLogger(__name__)


@dataclass(eq=False, kw_only=True)
class Packer(ConsumerRebalanceListener):
    """Packs all topics of one process, with a consumer and a producer that the caller starts.

    `topic_ids` are the ids of the source topics, 16 bytes, or empty if the broker has no ids. They
    must be looked up before the consumer reads: what is read from a topic created again is then
    marked with the old id, and refused by workers.
    """

    by_source: Mapping[str, CollectionConfig]
    """The collections by their source topics."""
    consumer: AIOKafkaConsumer
    producer: LastingProducer
    topic_ids: Mapping[str, bytes]
    options: PackOptions
    metrics: PackMetrics
    on_assigned: Callable[[], None]
    """Called whenever partitions have been assigned."""
    _shares: dict[TopicPartition, AssignedPartition] = field(default_factory=dict)
    _committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    _commit_due: float = 0.0
    _batches: int = _FIRST_BATCHES
    _failure: BaseException | None = None
    _complaints: Complaints = field(default_factory=Complaints)

    # --- the group ------------------------------------------------------------------------------

    async def on_partitions_revoked(self, _revoked: Collection[TopicPartition]) -> None:
        """Send and commit what was read, for a few seconds at most; then forget it."""
        await self._drain(LEAVE_SECONDS)
        self._forget()

    async def on_partitions_assigned(self, _assigned: Collection[TopicPartition]) -> None:
        """Start over, because others may have read further since."""
        self._forget()
        self.on_assigned()

    def _forget(self) -> None:
        for share in self._shares.values():
            share.given_up = True
            self.metrics.lag(*share.named, None)
        self._shares, self._committed = {}, {}

    # --- reading --------------------------------------------------------------------------------

    async def run(self, stop: asyncio.Event) -> None:
        """Pack until `stop` is set; then send and commit what was read.

        Raises:
            KafkaError: if the broker does not let us read.
            BaseException: an unexpected error while sending.
        """
        self.consumer.subscribe(list(self.by_source), listener=self)
        while not stop.is_set():
            if self._failure is not None:
                raise self._failure
            try:
                await self._step()
            except OffsetOutOfRangeError as error:
                for source in error.args[0].keys() & self._shares.keys():
                    self._shares[source].astray = True
            except (NoOffsetForPartitionError, IllegalStateError, KafkaTimeoutError) as error:
                # The partition was sought or lost meanwhile, or has no leader.
                log.debug("again: %r", error)
        await self._drain(LEAVE_SECONDS)

    async def _step(self) -> None:
        await self._take_over()
        await self._to_beginnings()
        open_ = [s for s in self._shares.values() if not (s.full or s.astray)]
        if not open_:
            await self._wait()
        else:
            found = await self.consumer.getmany(
                *(share.source for share in open_),
                timeout_ms=self._patience_ms(),
                max_records=self._batches,
            )
            taken = {source: runs(fetched) for source, fetched in found.items()}
            for share in open_:
                # After a rebalance during the fetch, the next owner begins at the committed offset.
                if not share.given_up:
                    await self._add(share, taken.get(share.source, ()))
            records = sum(len(run.offsets) for some in taken.values() for run in some)
            if records:
                # The next step takes as many batches as had _RECORDS_A_STEP records in this one.
                batches = sum(map(len, found.values()))
                self._batches = max(1, _RECORDS_A_STEP * batches // records)
        now = time.monotonic()
        for share in self._shares.values():
            if share.due(now):
                self._launch(share)
        if now > self._commit_due:
            await self._commit()

    async def _take_over(self) -> None:
        """Continue new partitions at the offsets that the group has committed as packed."""
        for source in sorted(self.consumer.assignment() - self._shares.keys()):
            if source.partition < self.by_source[source.topic].partitions:
                await self._begin(source, await self.consumer.committed(source))

    async def _begin(self, source: TopicPartition, offset: int | None) -> None:
        """Read a partition from an offset on; None for its beginning."""
        if offset is None:
            # `seek_to_beginning` would wait for ever if a rebalance came in between.
            offset = (await self.consumer.beginning_offsets([source]))[source]
        self.consumer.seek(source, offset)
        answers = Answers(self.consumer.last_poll_timestamp(source), steady_ms(), offset)
        self._shares[source] = AssignedPartition(
            self.by_source[source.topic], source, self.options, answers, offset
        )

    async def _wait(self) -> None:
        """Wait until there is something to read, or a partition is assigned."""
        if self._flights:
            await asyncio.wait(
                self._flights, timeout=_WAIT_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        else:
            await asyncio.sleep(_LOOK_SECONDS)

    def _patience_ms(self) -> int:
        """How long a fetch may take, so that a started message is sent in time."""
        waiting = any(share.runs for share in self._shares.values())
        wait_ms = int(_WAIT_SECONDS * 1000)
        return max(1, min(self.options.linger_ms // 4, wait_ms)) if waiting else wait_ms

    async def _add(self, share: AssignedPartition, taken: Sequence[Run]) -> None:
        now_ms = steady_ms()
        share.answers.look(self.consumer.last_poll_timestamp(share.source), now_ms)
        stop = await self.consumer.position(share.source)
        end = self.consumer.highwater(share.source)
        share.read(
            taken,
            stop=stop,
            end=stop + 1 if end is None else end,
            steady_ms=now_ms,
            now_ms=time.time_ns() // 1_000_000,
        )

    async def _to_beginnings(self) -> None:
        """Reset partitions whose position no longer exists to their beginnings.

        What was read before may no longer be in the source, so workers must find it first.
        """
        for share in list(self._shares.values()):
            if share.astray and not (share.runs or share.flight or share.given_up):
                log.warning(
                    "topic %s[%d]: our position no longer exists; continuing at its beginning",
                    *share.source,
                )
                await self._begin(share.source, None)

    # --- writing --------------------------------------------------------------------------------

    def _launch(self, share: AssignedPartition) -> None:
        end, held = self.consumer.highwater(share.source) or 0, share.records
        cut = list(share.cut(end=end))
        left_out = held - sum(len(packed.records) for packed in cut)
        self.metrics.left_out(share.collection.name, left_out)
        share.flight = asyncio.create_task(self._fly(share, cut, share.packed_to, end))
        share.flight.add_done_callback(self._flown)

    async def _fly(
        self, share: AssignedPartition, cut: Sequence[Packed], stop: int, end: int
    ) -> None:
        """Send packed messages one by one; once acknowledged, their offsets may be committed."""
        left = list(reversed(cut))
        try:
            while left and not share.given_up:
                left += reversed(await self._send(share, left.pop()))
            if not share.given_up:
                share.acknowledged = stop
                self.metrics.lag(*share.named, max(0, end - stop))
        finally:
            share.flight = None

    async def _send(self, share: AssignedPartition, packed: Packed) -> Sequence[Packed]:
        """Send one message until it is acknowledged; return what to send instead, if too large."""
        (name, partition), frames = share.named, share.collection.topics.frames
        assert frames is not None
        topic_id = self.topic_ids[share.source.topic]
        value = encode_packed(packed, partition=partition, topic_id=topic_id)
        while not share.given_up:
            try:
                await self.producer.send(frames, partition, None, value)
            except MessageSizeTooLargeError:
                parts = halves(packed)
                self.metrics.left_out(name, 0 if parts else 1)
                return parts
            except KafkaError as error:
                self.metrics.failed(name)
                self._complaints.note(share.source, error, f"topic {frames}[{partition}]")
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self.metrics.packed(name, len(packed.records), len(value))
                break
        self._complaints.over(share.source)
        return ()

    def _flown(self, flight: "asyncio.Task[None]") -> None:
        """End the packer after an unexpected error while sending: its records were not sent."""
        if not flight.cancelled():
            self._failure = self._failure or flight.exception()

    async def _drain(self, seconds: float) -> None:
        """Send what is buffered, and commit what has been acknowledged."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for share in self._shares.values():
                if share.flight is None and share.runs:
                    self._launch(share)
            if not self._flights:
                break
            left_seconds = max(0.0, deadline - time.monotonic())
            await asyncio.wait(self._flights, timeout=left_seconds)
        await self._commit()

    @property
    def _flights(self) -> "list[asyncio.Task[None]]":
        return [share.flight for share in self._shares.values() if share.flight is not None]

    async def _commit(self) -> None:
        self._commit_due = time.monotonic() + COMMIT_SECONDS
        shares = self._shares.items()
        acknowledged = {at: s.acknowledged for at, s in shares if s.acknowledged is not None}
        new = dict(acknowledged.items() - self._committed.items())
        try:
            if new:
                await self.consumer.commit(new)
                self._committed = acknowledged
        except (KafkaError, IllegalStateError) as error:
            # Records without a commit are packed again by the next owner.
            log.debug("no commit: %r", error)
