"""One collection in one worker: its owned partitions, from delivered messages to won heads.

Everything that decides is in `ldpstream.agents.partition`, which does no I/O; here is what carries
its records to the broker and back. Faust says which partitions are ours and delivers their
messages, but nothing relies on it to deliver them all, once, or in time: messages below the next
offset are dropped, and at a jump, or after a silence, the partition is read without a group from
the next offset on (`ldpstream.agents.source`) until the doubt is over.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from ldpstream.agents.clock import Control
from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.context import Context
from ldpstream.agents.copies import Copy
from ldpstream.agents.partition import Flush, Outcome, Partition, Settled
from ldpstream.agents.source import Record, SourceReader, Stretch
from ldpstream.agents.tail import Tail

TICK_SECONDS: Final = 0.1
FLUSH_SECONDS: Final = 0.25
QUIET_SECONDS: Final = 1.0
FRESH_SECONDS: Final = 3.0
STALL_SECONDS: Final = 3.0
REVOKE_SECONDS: Final = 3.0
SHORT_SECONDS: Final = 10.0

Send = Callable[
    [str, int | None, bytes | None, bytes, Sequence[tuple[str, bytes]]], Awaitable[None]
]
"""Sends `(topic, partition, key, value, headers)`; returns when it has been acknowledged."""

log = logging.getLogger(__name__)


class SourceChangedError(RuntimeError):
    """The source topic is not the one that the state was counted from."""


@dataclass
class Held:
    """A partition that this worker owns and has loaded, and what the shell knows about it."""

    state: Partition
    heard: float
    """When the stream last delivered anything of it, on the monotonic clock."""
    flushed: float = 0.0
    """When its last flush began."""
    flight: "asyncio.Task[None] | None" = None
    wanted: int = 0
    """Read without a group at least up to here."""
    short_since: float | None = None
    """Since when the source has ended before its next offset."""


@dataclass(frozen=True)
class Hooks:
    """What an engine needs of its surroundings."""

    send: Send
    check_source: Callable[[], Awaitable[None]]
    """Raises SourceChangedError, or KafkaError if the broker cannot tell."""
    won: Callable[[int, int, Outcome, float], None]
    """Called with partition, next offset, what was added, and how long the flush took."""
    now_ms: Callable[[], int] = field(default=lambda: time.time_ns() // 1_000_000)


class Engine:
    """A collection as one worker runs it."""

    def __init__(
        self, config: CollectionConfig, context: Context, reader: SourceReader, hooks: Hooks
    ) -> None:
        self.config = config
        self.context = context
        self.tails = [Tail(context, partition) for partition in range(config.partitions)]
        self.owned: frozenset[int] = frozenset()
        self.end_offsets: dict[int, int] = {}
        self._problems: list[str] = []
        self._reader = reader
        self._hooks = hooks
        self._controls: list[Control] = []
        self._held: dict[int, Held] = {}
        self._fetched_ms: dict[int, int] = {}
        self._read = asyncio.Event()
        self._last_tick = time.monotonic()
        idle_ms = config.window.idle_ms
        self._quiet_seconds = min(QUIET_SECONDS, (idle_ms or 1_000_000) / 2000)

    # --- what others see ------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether every tail has been at its log's end and nothing is wrong."""
        return not self._problems and all(tail.head is not None for tail in self.tails)

    @property
    def settled(self) -> bool:
        """Whether every owned partition has been loaded."""
        return self.ready and self.owned <= self._held.keys()

    @property
    def problems(self) -> Sequence[str]:
        """What keeps the collection from working, one sentence each."""
        return tuple(self._problems)

    @property
    def first(self) -> Partition | None:
        """Partition 0's state if this worker holds it: then it publishes."""
        held = self._held.get(0)
        return None if held is None else held.state

    @property
    def held(self) -> frozenset[int]:
        """The partitions that this worker owns and has loaded."""
        return frozenset(self._held)

    # --- what happens to it ---------------------------------------------------------------------

    def assign(self, partitions: Iterable[int]) -> None:
        """Take over partitions; they are loaded at the next tick, from their tails."""
        self.owned = frozenset(partitions)
        excess = [p for p in self.owned if p >= len(self.tails)]
        if excess:
            self.fail(
                f"topic {self.config.topics.source} has more partitions than "
                f"collection.{self.config.name}.partitions = {self.config.partitions}: "
                "raise it and restart all workers"
            )

    async def revoke(self) -> None:
        """Flush what can be flushed in a few seconds, then forget all partitions."""
        deadline = time.monotonic() + REVOKE_SECONDS
        await self._drain(deadline)
        self.owned = frozenset()
        for partition in list(self._held):
            self._drop(partition)

    def fail(self, problem: str) -> None:
        """Stop this collection for good: something is wrong that only an operator can mend."""
        if problem not in self._problems:
            self._problems.append(problem)
            log.error("collection %s stops: %s", self.config.name, problem)
        for partition in list(self._held):
            self._drop(partition)

    def order(self, control: Control) -> None:
        """Take an operator's order to close panes."""
        self._controls.append(control)

    def tail_read(self) -> None:
        """Note that a tail has been evaluated."""
        self._read.set()

    def deliver(self, partition: int, records: Sequence[Record]) -> None:
        """Take messages from the stream, offsets ascending; any may be missing or repeated."""
        held = self._held.get(partition)
        if held is None:
            return
        held.heard = time.monotonic()
        following = held.state.next
        fresh = []
        for record in records:
            if record[0] == following:
                fresh.append(record)
                following += 1
            elif record[0] > following:
                # A hole, or a jump of the stream: only a reader without a group can tell.
                held.wanted = record[0]
                break
        if fresh:
            held.state.ingest(fresh, now_ms=self._hooks.now_ms())
        if held.wanted > held.state.next:
            self._watch(partition, held)
        elif self._reader.watched(self._source(partition)):
            self._reader.rest(self._source(partition))

    def ends_at(self, partition: int, end: int) -> None:
        """Note where the source ended when the stream last fetched."""
        self.end_offsets[partition] = max(end, self.end_offsets.get(partition, 0))

    def stretch(self, partition: int, stretch: Stretch) -> None:
        """Take a stretch that was read without a group."""
        held = self._held.get(partition)
        if held is None:
            self._reader.rest(self._source(partition))
            return
        self.end_offsets[partition] = stretch.end
        self._fetched_ms[partition] = stretch.fetched_ms
        state = held.state
        if stretch.end < stretch.start:
            self._short(held, stretch)
            return
        held.short_since = None
        if stretch.start > state.next:
            self._reader.watch(self._source(partition), state.next)
            return
        fresh = [record for record in stretch.records if record[0] >= state.next]
        if fresh:
            state.ingest(fresh, now_ms=self._hooks.now_ms())
        if stretch.stop > state.next:
            state.pass_over(stretch.stop)
        flowing = time.monotonic() - held.heard < self._quiet_seconds
        if flowing and state.next >= held.wanted:
            self._reader.rest(self._source(partition))

    def _short(self, held: Held, stretch: Stretch) -> None:
        """Give a log that ends before our next offset some time: a new leader may not know yet."""
        now = time.monotonic()
        held.short_since = held.short_since or now
        held.state.disturbed(now_ms=self._hooks.now_ms())
        if now - held.short_since > SHORT_SECONDS:
            self._anew(f"ends at offset {stretch.end}, before {stretch.start}")

    def outside(self, partition: int, beginning: int) -> None:
        """Go on where the source now begins, or stop if it ends before our next offset."""
        held = self._held.get(partition)
        if held is None:
            return
        following = held.state.next
        if following >= beginning:
            self._anew(f"ends before offset {following}")
            return
        log.error(
            "collection %s: the retention of %s[%d] deleted offsets %d to %d before they were read",
            *(self.config.name, self.config.topics.source, partition, following, beginning - 1),
        )
        held.state.skip_to(beginning)
        held.state.disturbed(now_ms=self._hooks.now_ms())
        self._watch(partition, held)

    def _anew(self, how: str) -> None:
        self.fail(
            f"topic {self.config.topics.source} {how}, which its state includes: it was created "
            f"anew; `ldpstream reset {self.config.name}` begins anew with it"
        )

    # --- what it does by itself -----------------------------------------------------------------

    async def run(self) -> None:
        """Load, watch, let time go on and flush, until cancelled."""
        while True:
            self.tick()
            await asyncio.sleep(TICK_SECONDS)

    def tick(self) -> None:
        """Do what is due, without waiting for anything."""
        now = time.monotonic()
        stalled = now - self._last_tick > STALL_SECONDS
        self._last_tick = now
        if self._problems:
            return
        self._load()
        for partition, held in list(self._held.items()):
            if stalled:
                held.state.disturbed(now_ms=self._hooks.now_ms())
            if held.flight is None and held.state.settle() is Settled.LOST:
                self._lose(partition)
                continue
            if now - held.heard > self._quiet_seconds:
                self._watch(partition, held)
            self._clock(partition, held)
            self._flush(partition, held)

    def _load(self) -> None:
        for partition in self.owned - self._held.keys():
            state = Partition.load(
                self.context,
                partition,
                self.tails,
                epoch=secrets.randbelow((1 << 64) - 1) + 1,
                now_ms=self._hooks.now_ms(),
            )
            if state is not None:
                # Watched from the start: whether the stream begins at our offset is not known.
                self._held[partition] = held = Held(state, heard=time.monotonic())
                held.wanted = state.next + 1
                self._watch(partition, held)

    def _watch(self, partition: int, held: Held) -> None:
        source = self._source(partition)
        if not self._reader.watched(source):
            self._reader.watch(source, held.state.next)

    def _clock(self, partition: int, held: Held) -> None:
        now_ms = self._hooks.now_ms()
        end_offset = None
        if self._reader.watched(self._source(partition)):
            if now_ms - self._fetched_ms.get(partition, 0) < FRESH_SECONDS * 1000:
                end_offset = self.end_offsets.get(partition)
            else:
                held.state.disturbed(now_ms=now_ms)
        held.state.clock(
            tails=self.tails,
            end_offset=end_offset,
            controls=self._controls,
            known_partitions=self.config.partitions,
            now_ms=now_ms,
        )

    def _flush(self, partition: int, held: Held) -> None:
        now = time.monotonic()
        if held.flight is not None or now - held.flushed < FLUSH_SECONDS:
            return
        flush = held.state.flush()
        if flush is not None:
            held.flushed = now
            held.flight = asyncio.create_task(self._fly(partition, held, flush))

    async def _fly(self, partition: int, held: Held, flush: Flush) -> None:
        """Carry one flush to the broker and wait for its outcome."""
        try:
            if await self._sent(partition, flush):
                while (outcome := held.state.settle()) is Settled.WAITING:
                    self._read.clear()
                    await self._read.wait()
                if outcome is Settled.WON:
                    self._won(partition, held, flush)
                    return
            if self._held.get(partition) is held:
                self._lose(partition)
        finally:
            held.flight = None

    def _won(self, partition: int, held: Held, flush: Flush) -> None:
        assert held.state.outcome is not None
        seconds = time.monotonic() - held.flushed
        self._hooks.won(partition, flush.next, held.state.outcome, seconds)

    async def _sent(self, partition: int, flush: Flush) -> bool:
        """Send a flush in its order; False if any of it may not have arrived."""
        changelog = self.config.topics.changelog
        send = self._hooks.send
        try:
            await asyncio.gather(
                *(send(changelog, partition, key, value, ()) for key, value in flush.cells),
                *(self._copy(copy) for copy in flush.copies),
                # Before the head, after the last message: all of them were of the known topic.
                self._hooks.check_source(),
            )
            await send(changelog, partition, *flush.head, ())
        except SourceChangedError as error:
            self.fail(str(error))
            return False
        except KafkaError as error:
            log.debug("flush of %s[%d] failed: %r", self.config.name, partition, error)
            return False
        return True

    def _copy(self, copy: Copy) -> Awaitable[None]:
        topics = self.config.topics
        topic = topics.late if copy.kind == "late" else topics.rejected
        return self._hooks.send(topic, None, None, copy.value, copy.headers)

    async def _drain(self, deadline: float) -> None:
        """Flush until nothing is left to say, or time is up."""
        while not self._problems and time.monotonic() < deadline:
            for partition, held in list(self._held.items()):
                held.flushed = 0.0
                self._flush(partition, held)
            flights = [held.flight for held in self._held.values() if held.flight is not None]
            if not flights:
                return
            await asyncio.wait(flights, timeout=max(0.0, deadline - time.monotonic()))

    def _lose(self, partition: int) -> None:
        """Forget a partition that another owner has written to, or whose flush failed."""
        log.debug("collection %s: partition %d is loaded anew", self.config.name, partition)
        self._drop(partition)

    def _drop(self, partition: int) -> None:
        held = self._held.pop(partition)
        if held.flight is not None and held.flight is not asyncio.current_task():
            held.flight.cancel()
        self._reader.rest(self._source(partition))

    def _source(self, partition: int) -> TopicPartition:
        return TopicPartition(self.config.topics.source, partition)
