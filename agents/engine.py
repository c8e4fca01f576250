"""One collection in one worker: its owned partitions, from delivered messages to won heads.

Everything that decides is in `ldpstream.agents.partition`, which does no I/O; here is what loads
it, lets time go on, and carries its flushes to the broker and back. Faust says which partitions are
ours and delivers their messages; `ldpstream.agents.guard` sees to it that none is left out.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from aiokafka.errors import KafkaError

from ldpstream.agents.clock import Control
from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.context import Context
from ldpstream.agents.flight import Carrier, Send, SourceChangedError
from ldpstream.agents.guard import Guard, StreamHooks
from ldpstream.agents.held import Held
from ldpstream.agents.outcomes import Flush, Outcome, Settled
from ldpstream.agents.partition import Partition
from ldpstream.agents.source import Record, SourceReader, Stretch
from ldpstream.agents.tail import Tail

TICK_SECONDS: Final = 0.1
FLUSH_SECONDS: Final = 0.25
STALL_SECONDS: Final = 3.0
REVOKE_SECONDS: Final = 3.0
RETRY_SECONDS: Final = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Hooks:
    """What an engine needs of its surroundings; see `Carrier` and `StreamHooks`."""

    send: Send
    source_id: Callable[[], bytes]
    """Returns the id of the source topic; empty where the broker has none."""
    check_source: Callable[[], Awaitable[None]]
    won: Callable[[int, int, Outcome, float], None]
    """Called with partition, next offset, what was added, and how long the flush took."""
    hold: Callable[[int], None]
    release: Callable[[int, int], None]
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
        self._problems: list[str] = []
        self._hooks = hooks
        self._carrier = Carrier(config.topics, hooks.send, hooks.check_source)
        stream = StreamHooks(hooks.hold, hooks.release, self.fail, hooks.now_ms)
        self._guard = Guard(config, reader, stream)
        self._controls: list[Control] = []
        self._held: dict[int, Held] = {}
        self._not_before: dict[int, float] = {}
        self._complaint = ""
        self._read = asyncio.Event()
        self._last_tick = time.monotonic()

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
    def end_offsets(self) -> Mapping[int, int]:
        """The source's end offsets last seen, by partition."""
        return self._guard.end_offsets

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
        if any(partition >= len(self.tails) for partition in self.owned):
            self.fail(
                f"topic {self.config.topics.source} has more partitions than "
                f"collection.{self.config.name}.partitions = {self.config.partitions}: "
                "raise it and restart all workers"
            )

    async def revoke(self) -> None:
        """Flush what can be flushed in a few seconds, then forget all partitions."""
        await self._drain(time.monotonic() + REVOKE_SECONDS)
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

    def ends_at(self, partition: int, end: int) -> None:
        """Note where the source ended when the stream last fetched."""
        self._guard.ends_at(partition, end)

    def deliver(self, partition: int, records: Sequence[Record]) -> None:
        """Take messages from the stream, offsets ascending; any may be missing or repeated."""
        held = self._held.get(partition)
        if held is not None:
            self._guard.deliver(held, records)

    def notice(self, partition: int, offset: int) -> None:
        """Take the news that something came at an offset, which may never be committed."""
        held = self._held.get(partition)
        if held is not None:
            self._guard.notice(held, offset)

    def stretch(self, partition: int, stretch: Stretch) -> None:
        """Take a stretch that was read without a group."""
        held = self._held.get(partition)
        if held is None:
            self._guard.rest(partition)
        else:
            self._guard.stretch(held, stretch)

    def outside(self, partition: int, beginning: int) -> None:
        """Take the news that the next offset is not in the source, which begins at `beginning`."""
        held = self._held.get(partition)
        if held is not None:
            self._guard.outside(held, beginning)

    # --- what it does by itself -----------------------------------------------------------------

    async def run(self) -> None:
        """Load, watch, let time go on and flush, until cancelled."""
        while True:
            self.tick()
            await asyncio.sleep(TICK_SECONDS)

    def tick(self) -> None:
        """Do what is due, without waiting for anything."""
        now = time.monotonic()
        stalled, self._last_tick = now - self._last_tick > STALL_SECONDS, now
        if self._problems:
            return
        self._load()
        for partition, held in list(self._held.items()):
            if stalled:
                held.state.disturbed(now_ms=self._hooks.now_ms())
            if held.flight is None and held.state.settle() is Settled.LOST:
                self._lose(partition)
                continue
            self._guard.look(held)
            held.state.clock(
                tails=self.tails,
                end_offset=self._guard.end_offset(held),
                controls=self._controls,
                known_partitions=self.config.partitions,
                now_ms=self._hooks.now_ms(),
            )
            self._flush(held)

    def _load(self) -> None:
        source = self._hooks.source_id()
        for partition in self.owned - self._held.keys():
            if time.monotonic() < self._not_before.get(partition, 0.0):
                continue
            state = Partition.load(
                self.context,
                partition,
                self.tails,
                epoch=secrets.randbelow((1 << 64) - 1) + 1,
                now_ms=self._hooks.now_ms(),
                source=source,
            )
            if state is None:
                continue
            if state.base.source not in {b"", state.work.source}:
                self.fail(
                    f"topic {self.config.topics.source} is another one than its state was counted "
                    f"from: it was created anew; `ldpstream reset {self.config.name}` begins anew "
                    "with it"
                )
                return
            held = self._held[partition] = Held(state, heard=time.monotonic())
            self._guard.begin(held)

    def _flush(self, held: Held) -> None:
        now = time.monotonic()
        if held.flight is not None or now - held.flushed < FLUSH_SECONDS:
            return
        flush = held.state.flush()
        if flush is not None:
            held.flushed = now
            held.flight = asyncio.create_task(self._fly(held, flush))

    async def _fly(self, held: Held, flush: Flush) -> None:
        """Carry one flush to the broker and wait for its outcome."""
        partition = held.partition
        try:
            error = await self._carrier.carry(partition, flush)
            if error is not None:
                self._complain(partition, error)
            else:
                while (outcome := held.state.settle()) is Settled.WAITING:
                    self._read.clear()
                    await self._read.wait()
                if outcome is Settled.WON:
                    assert held.state.outcome is not None
                    seconds = time.monotonic() - held.flushed
                    self._hooks.won(partition, flush.next, held.state.outcome, seconds)
                    self._complaint = ""
                    return
            if self._held.get(partition) is held:
                self._lose(partition)
        except SourceChangedError as error:
            self.fail(str(error))
        finally:
            held.flight = None

    def _complain(self, partition: int, error: KafkaError) -> None:
        """Pause before the partition is tried again; say once what does not pass by itself."""
        self._not_before[partition] = time.monotonic() + RETRY_SECONDS
        if not error.retriable and repr(error) != self._complaint:
            self._complaint = repr(error)
            log.warning(
                "collection %s: partition %d cannot be written and is tried again: %r",
                *(self.config.name, partition, error),
            )

    async def _drain(self, deadline: float) -> None:
        """Flush until nothing is left to say, or time is up."""
        while not self._problems and time.monotonic() < deadline:
            for held in self._held.values():
                held.flushed = 0.0
                self._flush(held)
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
        self._guard.rest(partition)
