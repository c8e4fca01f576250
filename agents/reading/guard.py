"""Contiguity: every message of a held partition is ingested once, whatever the stream delivers.

Messages below the next offset have been seen and are dropped. At a jump above it, after a silence,
or far behind, the partition is *watched*: read without a group from the next offset on, which tells
holes of the stream from offsets that do not exist, and is itself a way to get the messages, the
faster one. At the end of the log the watch rests while the stream flows.

Where there are many partitions all of them are watched all the time, and the stream is held: it
would ask the broker about each of them as often again, and hand over one message at a time.

While a partition is full, which it is until a flush has taken away what waits, nothing of it is
taken in, and nothing is lost: it is read again from the next offset on.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from aiokafka import TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.reading.held import Held
from ldpstream.agents.reading.pace import PARTITIONS
from ldpstream.agents.reading.source import Record, SourceReader, Stretch
from ldpstream.agents.state.arrival import Arrivals

QUIET_SECONDS: Final = 1.0
FRESH_SECONDS: Final = 3.0
SHORT_SECONDS: Final = 10.0
BACKLOG_RECORDS: Final = 2_000
"""How far behind a partition is taken over from the stream, which is many times slower."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StreamHooks:
    """How a guard steers the stream, and what it says when the source cannot be the right one."""

    hold: Callable[[int], None]
    """Lets nothing of a partition come by the stream for now."""
    release: Callable[[int, int], None]
    """Lets a partition come by the stream again, from an offset on."""
    fail: Callable[[str], None]
    now_ms: Callable[[], int] = field(default=lambda: time.time_ns() // 1_000_000)
    seconds: Callable[[], float] = time.monotonic


class Guard:
    """Watches over the partitions of one collection; `end_offsets` are the last ones seen."""

    def __init__(self, config: CollectionConfig, reader: SourceReader, hooks: StreamHooks) -> None:
        self.end_offsets: dict[int, int] = {}
        self._config = config
        self._reader = reader
        self._hooks = hooks
        self._fetched_ms: dict[int, int] = {}
        self._direct = config.partitions > PARTITIONS
        idle_ms = config.window.idle_ms
        # An idle time shorter than the usual silence has to be noticed in time.
        self._quiet_seconds = min(QUIET_SECONDS, (idle_ms or 1_000_000) / 2000)

    def begin(self, held: Held) -> None:
        """Begin with a loaded partition: whether the stream begins at its offset is not known."""
        held.wanted = held.state.next + 1
        if self._direct:
            self._hooks.hold(held.partition)
        self._watch(held)

    def rest(self, partition: int) -> None:
        """Stop watching a partition."""
        self._rest(partition)

    def look(self, held: Held) -> None:
        """Watch a partition that is silent or far behind."""
        if held.state.full:
            self._rest(held.partition)
            return
        far = self.end_offsets.get(held.partition, 0) - held.state.next > BACKLOG_RECORDS
        if (
            self._direct
            or far
            or held.wanted > held.state.next
            or self._hooks.seconds() - held.heard > self._quiet_seconds
        ):
            self._watch(held)

    def end_offset(self, held: Held) -> int | None:
        """Return the source's end offset if it is known for now; None also while it is not asked.

        A watched partition whose fetches are not answered is disturbed: it cannot be idle.
        """
        if not self._reader.watched(self._source(held.partition)):
            # A stream that flows is read to its end. It is news, unless it is all of other specs.
            flowing = self._hooks.seconds() - held.heard < self._quiet_seconds
            whole = flowing and held.wanted <= held.state.next
            return self.end_offsets.get(held.partition) if whole else None
        now_ms = self._hooks.now_ms()
        if now_ms - self._fetched_ms.get(held.partition, 0) < FRESH_SECONDS * 1000:
            return self.end_offsets.get(held.partition)
        held.state.disturbed(now_ms=now_ms)
        return None

    def ends_at(self, partition: int, end: int) -> None:
        """Note where the source ended when the stream last fetched."""
        self.end_offsets[partition] = max(end, self.end_offsets.get(partition, 0))

    def deliver(self, held: Held, records: Sequence[Record]) -> None:
        """Take messages from the stream, offsets ascending; any may be missing or repeated."""
        if self._direct:
            # A rebalance has let it flow again.
            self._hooks.hold(held.partition)
            return
        following = held.state.next
        # What a rebalance delivers again says nothing of where the log ends now.
        if records[-1][0] >= following:
            held.heard = self._hooks.seconds()
        if held.state.full:
            # Nothing is lost: it is read again from the next offset on.
            held.wanted = max(held.wanted, records[-1][0] + 1)
            return
        fresh = []
        for record in records:
            if record[0] == following:
                fresh.append(record)
                following += 1
            elif record[0] > following:
                held.wanted = record[0]
                break
        if fresh:
            held.state.ingest(fresh, now_ms=self._hooks.now_ms())
        if held.wanted > held.state.next:
            self._watch(held)
        elif held.state.next >= self.end_offsets.get(held.partition, 0):
            self._rest(held.partition)

    def notice(self, held: Held, offset: int) -> None:
        """Read a partition without a group as far as something came, whatever became of it."""
        if self._direct:
            self._hooks.hold(held.partition)
            return
        if offset >= held.state.next:
            held.heard = self._hooks.seconds()
            held.wanted = max(held.wanted, offset + 1)
            self._watch(held)

    def stretch(self, held: Held, stretch: Stretch) -> None:
        """Take a stretch that was read without a group."""
        self.end_offsets[held.partition] = stretch.end
        self._fetched_ms[held.partition] = stretch.fetched_ms
        state = held.state
        if stretch.end < stretch.start:
            self._short(held, stretch)
            return
        held.short_since = None
        if state.full:
            held.wanted = max(held.wanted, stretch.stop)
            self._rest(held.partition)
            return
        if stretch.start > state.next:
            self._reader.watch(self._source(held.partition), state.next)
            return
        fresh = [record for record in stretch.records if record[0] >= state.next]
        if fresh:
            state.ingest(
                fresh, now_ms=self._hooks.now_ms(), arrived=self._arrived(held, stretch, fresh)
            )
        held.ended = (stretch.stop, stretch.fetched_ms) if stretch.stop >= stretch.end else None
        if stretch.stop > state.next:
            state.pass_over(stretch.stop)
        self._hand_over(held, stretch)

    def _arrived(self, held: Held, stretch: Stretch, fresh: Sequence[Record]) -> Arrivals:
        """Return when the last records of a stretch arrived, those in `fresh`."""
        ended, records = held.ended, len(stretch.records)
        return stretch.dates.part(records - len(fresh), records).arrivals(
            since_ms=ended[1] if ended is not None and ended[0] == stretch.start else None,
            now_ms=self._hooks.now_ms(),
            precision_ms=self._config.spec.precision_ms,
        )

    def outside(self, held: Held, asked: int, beginning: int) -> None:
        """Go on where the source now begins, or stop if it ends before the offset asked for.

        That may be below the next offset: the stream has brought what has been deleted since.
        """
        following = held.state.next
        if min(asked, following) >= beginning:
            self._anew(f"ends before offset {following}")
        else:
            self._skip(held, max(beginning, following))

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
        held.state.disturbed(now_ms=self._hooks.now_ms())
        # It may be watched again already, at an offset that is gone.
        self._reader.rest(self._source(held.partition))
        self._watch(held)

    def _hand_over(self, held: Held, stretch: Stretch) -> None:
        """Hold the stream while far behind, and hand over to it at the end of the log."""
        if self._direct:
            return
        if not held.behind and stretch.end - held.state.next > BACKLOG_RECORDS:
            held.behind = True
            self._hooks.hold(held.partition)
        elif held.behind and stretch.stop >= stretch.end:
            held.behind = False
            held.heard = self._hooks.seconds()
            self._hooks.release(held.partition, held.state.next)
        flowing = self._hooks.seconds() - held.heard < self._quiet_seconds
        if flowing and held.state.next >= held.wanted and stretch.stop >= stretch.end:
            self._rest(held.partition)

    def _short(self, held: Held, stretch: Stretch) -> None:
        """Give a log that ends before our next offset some time: a new leader may not know yet."""
        now = self._hooks.seconds()
        held.short_since = held.short_since or now
        held.state.disturbed(now_ms=self._hooks.now_ms())
        if now - held.short_since > SHORT_SECONDS:
            self._anew(f"ends at offset {stretch.end}, before {stretch.start}")

    def _anew(self, how: str) -> None:
        self._hooks.fail(
            f"topic {self._config.topics.source} {how}, which its state includes: it was created "
            f"anew; `ldpstream reset {self._config.name}` begins anew with it"
        )

    def _watch(self, held: Held) -> None:
        source = self._source(held.partition)
        if not held.state.full and not self._reader.watched(source):
            self._reader.watch(source, held.state.next)

    def _rest(self, partition: int) -> None:
        self._reader.rest(self._source(partition))

    def _source(self, partition: int) -> TopicPartition:
        return TopicPartition(self._config.topics.source, partition)
