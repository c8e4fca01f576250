"""Contiguity: every message of a held partition is ingested once, whatever the way to it loses.

A partition is read in sessions from its next offset on, and what is read lies in a bounded channel
until it is taken. Channels may be emptied, or hold something twice. So a batch counts only if it is
of the session under way and begins at the next offset or before it: what is known is left out, and
after a gap another session begins. So it does for what was delivered and is neither in the channel
nor taken.

While a partition is full, which it is until a flush has taken away what waits, its batches wait,
and so does its reader.
"""

import logging
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, Protocol

from aiokafka import TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.kafka.answers import steady_ms
from ldpstream.agents.partition.arrival import Arrivals
from ldpstream.agents.reading.contained import contained
from ldpstream.agents.reading.held import Held
from ldpstream.agents.reading.source import Batch, Outside, SourceReader

SHORT_SECONDS: Final = 10.0
_MISSED: Final = 2

log = logging.getLogger(__name__)


class Channel(Protocol):
    """What lies between a reader and whoever takes what it reads."""

    def offer(self, item: Any) -> None:
        """Put something into it, without waiting."""

    def empty(self) -> bool:
        """Return whether nothing lies in it."""


@dataclass(frozen=True)
class IntakeHooks:
    """What an intake tells, and its clocks."""

    fail: Callable[[str], None]
    """Called when the source cannot be the right one, and with errors that nobody expected."""
    took: Callable[[Held], None]
    """Called when something has been taken in that the next flush may say."""
    now_ms: Callable[[], int] = field(default=lambda: time.time_ns() // 1_000_000)
    steady_ms: Callable[[], int] = steady_ms
    """The clock of the reader."""
    seconds: Callable[[], float] = time.monotonic


class Intake:
    """Takes in what is read of the partitions of one collection that are `held`.

    `end_offsets` are the source's, as last seen, by partition.
    """

    def __init__(
        self,
        config: CollectionConfig,
        held: Mapping[int, Held],
        reader: SourceReader,
        channel: Channel,
        hooks: IntakeHooks,
    ) -> None:
        self.end_offsets: dict[int, int] = {}
        self._config = config
        self._held = held
        self._reader = reader
        self._channel = channel
        self._hooks = hooks

    def begin(self, held: Held) -> None:
        """Begin with a loaded partition."""
        self._read(held)

    def end(self, partition: int) -> None:
        """Stop reading a partition."""
        self._reader.end(self._source(partition))

    def look(self, held: Held) -> None:
        """Do what is due: go on with what waits, and read again what has been lost."""
        self._take_waiting(held)
        if self._lost(held, self._reader.given(self._source(held.partition))):
            self._read(held)

    def take(self, partition: int, item: Batch | Outside) -> None:
        """Take what was read of the source, or leave what is of no use any more."""
        with contained(self._hooks.fail):
            held = self._held.get(partition)
            if held is not None and item.session == held.session:
                self._in_turn(held, self._take, item)

    def _take_waiting(self, held: Held) -> None:
        while held.waiting and not held.state.full:
            take, item = held.waiting.popleft()
            take(held, item)

    def _in_turn(
        self, held: Held, take: Callable[[Held, Any], None], item: Batch | Outside
    ) -> None:
        if held.waiting or held.state.full:
            held.waiting.append((take, item))
        else:
            take(held, item)

    def _lost(self, held: Held, given: int) -> bool:
        """Return whether something was delivered that nobody will take."""
        away = given > len(held.waiting) and self._channel.empty()
        # What has just left the channel is taken at once, and not seen twice.
        held.missed = held.missed + 1 if away else 0
        return held.missed >= _MISSED

    def _take(self, held: Held, item: Batch | Outside) -> None:
        if item.session != held.session:
            return
        self._reader.taken(self._source(held.partition), item.session)
        if isinstance(item, Outside):
            self._outside(held, item)
            return
        self.end_offsets[held.partition] = item.end
        if item.end < item.start:
            self._short(held, item)
            return
        held.short_since = None
        if item.start > held.state.next:
            self._read(held)
            return
        self._ingest(held, item)

    def _ingest(self, held: Held, batch: Batch) -> None:
        state, following = held.state, held.state.next
        known = bisect_left(batch.records, following, key=itemgetter(0))
        if known < len(batch.records):
            fresh, now_ms = batch.rest(known), self._hooks.now_ms()
            state.ingest(fresh.records, now_ms=now_ms, arrived=self._arrived(fresh, now_ms))
        state.read_to(batch.stop, end=batch.end, asked_ms=batch.asked_ms)
        if state.next > following:
            self._hooks.took(held)

    def _arrived(self, batch: Batch, now_ms: int) -> Arrivals:
        """Return when the records of a batch arrived."""
        ago_ms = None if batch.since_ms is None else self._hooks.steady_ms() - batch.since_ms
        return batch.dates.arrivals(
            since_ms=None if ago_ms is None else now_ms - ago_ms,
            now_ms=now_ms,
        )

    def _outside(self, held: Held, outside: Outside) -> None:
        """Go on where the source now begins, or stop if it ends before the offset asked for."""
        following = held.state.next
        if min(outside.asked, following) >= outside.beginning:
            self._another(f"ends before offset {following}")
        else:
            self._skip(held, max(outside.beginning, following))

    def _skip(self, held: Held, beginning: int) -> None:
        """Go on at an offset because there is nothing before it any more."""
        lost = held.state.skip_to(beginning, now_ms=self._hooks.now_ms())
        if lost:
            log.error(
                "collection %s: the retention of %s[%d] deleted offsets %d to %d before they were "
                "read",
                self._config.name,
                self._config.topics.source,
                held.partition,
                beginning - lost,
                beginning - 1,
            )
        self._read(held)

    def _short(self, held: Held, batch: Batch) -> None:
        """Give a log that ends before our next offset some time: a new leader may not know yet."""
        now = self._hooks.seconds()
        held.short_since = held.short_since or now
        held.state.interrupted()
        if now - held.short_since > SHORT_SECONDS:
            self._another(f"ends at offset {batch.end}, before {batch.start}")

    def _another(self, how: str) -> None:
        self._hooks.fail(
            f"topic {self._config.topics.source} {how}, which its state includes: it was created "
            f"again; `ldpstream reset {self._config.name}` starts over with it"
        )

    def _read(self, held: Held) -> None:
        """Begin a session at the next offset."""
        held.state.interrupted()
        held.missed = 0
        held.session = self._reader.begin(self._source(held.partition), held.state.next)

    def _source(self, partition: int) -> TopicPartition:
        return TopicPartition(self._config.topics.source, partition)
