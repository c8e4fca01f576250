"""Contiguity: every message of a held partition is ingested once, whatever is lost on the way.

A partition is read in sessions from its next offset on, and what is read passes through a bounded
channel, which may be emptied or may deliver an item twice. So a batch counts only if it belongs to
the current session and begins at the next offset or before it: known messages are skipped, and a
gap starts a new session. So does a slice that was delivered but is neither in the channel nor
taken.

A partition is full until a flush has written what waits. Until then its batches wait, and its
reader pauses.
"""

import logging
from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Final, Protocol

from aiokafka import TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.partition.arrival import Arrivals
from ldpstream.agents.reading.contained import contained
from ldpstream.agents.reading.owned_partition import OwnedPartition, Owner
from ldpstream.agents.reading.source import Batch, Outside, Session, SourceReader
from ldpstream.agents.served.clock import Clock

SHORT_SECONDS: Final = 10.0
_MISSED: Final = 2

log = logging.getLogger(__name__)


class Channel(Protocol):
    """The queue between a reader and the consumer of what it reads, who must call each item."""

    def offer(self, item: Callable[[], None]) -> None:
        """Append an item, without waiting."""

    def empty(self) -> bool:
        """Return whether it holds no item."""


class Intake:
    """Takes in what is read of one collection's held partitions.

    `end_offsets` are the source's end offsets last seen, by partition.
    """

    def __init__(
        self,
        config: CollectionConfig,
        reader: SourceReader,
        channel: Channel,
        owner: Owner,
        clock: Clock,
    ) -> None:
        self.end_offsets: dict[int, int] = {}
        self._config = config
        self._reader = reader
        self._channel = channel
        self._owner = owner
        self._clock = clock

    def begin(self, held: OwnedPartition) -> None:
        """Start reading for a loaded partition."""
        self._read(held)

    def end(self, held: OwnedPartition) -> None:
        """Stop reading the source of a partition."""
        held.state.interrupted()
        if held.session is not None:
            held.session.end()
            held.session = None

    def look(self, held: OwnedPartition) -> None:
        """Continue with waiting batches, and read lost ones again; call it at every tick."""
        self._take_waiting(held)
        if not held.leaving and self._lost(held, held.session):
            self._read(held)

    def take(self, held: OwnedPartition, item: Batch | Outside) -> None:
        """Take what was read; items of ended sessions are dropped."""
        with contained(self._owner.fail):
            if held.waiting or held.state.full:
                held.waiting.append(item)
            else:
                self._take(held, item)

    def _take_waiting(self, held: OwnedPartition) -> None:
        while held.waiting and not held.state.full:
            self._take(held, held.waiting.popleft())

    def _lost(self, held: OwnedPartition, *sessions: Session | None) -> bool:
        """Return whether an item delivered in these sessions will never be taken."""
        given = sum(session.given for session in sessions if session is not None)
        away = given > len(held.waiting) and self._channel.empty()
        # What has just left the channel is taken before the next check, so it is not missed twice.
        held.missed = held.missed + 1 if away else 0
        return held.missed >= _MISSED

    def _take(self, held: OwnedPartition, item: Batch | Outside) -> None:
        if held.session is None or item.session is not held.session:
            return
        held.session.taken()
        if isinstance(item, Outside):
            self._outside(held, item)
        else:
            self.end_offsets[held.partition] = item.end
            short_seconds = held.session.short_for(item, self._clock.seconds())
            if short_seconds > SHORT_SECONDS:
                self._another(f"ends at offset {item.end}, before {item.start}")
            elif short_seconds >= 0:
                held.state.interrupted()
            elif item.start > held.state.next:
                self._read(held)
            else:
                self._ingest(held, item)

    def _ingest(self, held: OwnedPartition, batch: Batch) -> None:
        state, following = held.state, held.state.next
        known = bisect_left(batch.records, following, key=itemgetter(0))
        if known < len(batch.records):
            fresh, now_ms = batch.rest(known), self._clock.now_ms()
            state.ingest(fresh.records, now_ms=now_ms, arrived=self._arrived(fresh, now_ms))
        state.read_to(batch.stop, end=batch.end, asked_ms=batch.asked_ms)
        if state.next > following:
            self._owner.took(held)

    def _arrived(self, batch: Batch, now_ms: int) -> Arrivals:
        """Return when the records of a batch arrived."""
        ahead_ms, since_ms = now_ms - self._clock.steady_ms(), batch.since_ms
        return batch.dates.arrivals(
            since_ms=None if since_ms is None else since_ms + ahead_ms, now_ms=now_ms
        )

    def _outside(self, held: OwnedPartition, outside: Outside) -> None:
        """Continue where the source now begins, or stop if it ends before the requested offset."""
        following = held.state.next
        if min(outside.asked, following) >= outside.beginning:
            self._another(f"ends before offset {following}")
        else:
            self._skip(held, max(outside.beginning, following))

    def _skip(self, held: OwnedPartition, beginning: int) -> None:
        """Continue at an offset, because nothing before it is left."""
        lost = held.state.skip_to(beginning, now_ms=self._clock.now_ms())
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

    def _another(self, how: str) -> None:
        self._owner.fail(
            f"topic {self._config.topics.source} {how}, which its state includes: it was created "
            f"again; `ldpstream reset {self._config.name}` starts over with it"
        )

    def _read(self, held: OwnedPartition) -> None:
        """Start a session at the next offset."""
        held.state.interrupted()
        held.missed = 0
        source = TopicPartition(self._config.topics.source, held.partition)
        held.session = self._reader.begin(source, held.state.next, partial(self._offer, held))

    def _offer(self, held: OwnedPartition, item: Batch | Outside) -> None:
        self._channel.offer(partial(self.take, held, item))
