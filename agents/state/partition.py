"""The state machine of one partition of one collection, in its owner's memory.

Group membership is only a hint; the changelog decides who owns a partition. Records, the clock and
other partitions' replicas go in; what to write and to publish comes out. Nothing here reads a
clock, draws a random number or talks to a broker.

Rule 4: a partition has one flush at a time, and its changelog says who won.

1. Send the touched cells under the base's seq + 1, with the copies of late and rejected messages.
2. When all of them are acknowledged, send the head.
3. When the head is acknowledged, wait until our own replica shows a head of that seq.
4. If it is ours, continue from it; the group is told its next offset later, with all others. If it
   is another owner's, or any send failed, drop the partition and load it again.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from ldpstream.agents.state.batch import Arrivals, Record, read_batch
from ldpstream.agents.state.classification import Classified, Delays, classify, count
from ldpstream.agents.state.close_orders import Control
from ldpstream.agents.state.closing import (
    IdleClock,
    Publication,
    SeenHeads,
    UnbrokenProbes,
    expire,
    hand_over,
    store_finals,
)
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.encoding import encode_head, encode_key, state_prefix
from ldpstream.agents.state.flushes import Flush, Outcome, Settled, WaitingCopies, make_copies
from ldpstream.agents.state.loading import (
    ALONE,
    OtherHeads,
    bound_gap,
    decided_offsets,
    loadable,
    skip_deleted,
    starting_head,
)
from ldpstream.agents.state.owner_cells import OwnedCells
from ldpstream.agents.state.records import HEAD, Head, Key
from ldpstream.agents.state.releases import Releases
from ldpstream.agents.state.replica import DEAD_LIMIT, Replica
from ldpstream.agents.state.windows import NEVER, Gap


class Partition:
    """An owner's state of one partition: what it loaded, and what it has done since."""

    def __init__(self, context: Context, replica: Replica, head: Head, *, epoch: int) -> None:
        self.partition = replica.partition
        self.epoch = epoch
        self._context = context
        self._accept = frozenset(spec.fingerprint for spec in context.accept)
        self._replica = replica
        self._prefix = state_prefix(context)
        self.base = head  # the winning head that the next flush continues
        self.flight: Head | None = None  # the head of the flush in flight
        self.work = head  # the state in memory, as the next head
        self._changed = self._torn = False
        # What the last winning head added, None before the first.
        self.outcome: Outcome | None = None
        # How late the reports came that the next flush has counted, and the one in flight.
        self._delays = self._sent_delays = Delays()
        handed_over = head.gathered if replica.partition else NEVER
        self._cells = OwnedCells(context, epoch, head, replica, handed_over=handed_over)
        self._copies = WaitingCopies()
        self._witnessed: Sequence[int] = ()
        # The gap whose end depends on the arrival of the next message.
        self._open_gap: Gap | None = None
        self._decided = decided_offsets(head, ALONE)
        self._probes = UnbrokenProbes(context.gap_ms)
        self._clock = IdleClock(context.window, replica.partition)
        self._releases = Releases(context, self._cells)
        # The reports counted, and when it was first noticed that they are as many; at first those
        # that were loaded, which came any time before.
        self._counted, self._counted_ms = -1, 0
        self._loaded = head.n
        # The first window that has not been handed out for publishing.
        self._offered = head.published

    @classmethod
    def load(
        cls,
        context: Context,
        partition: int,
        replicas: Sequence[Replica],
        *,
        epoch: int,
        source: bytes = b"",
        other_heads: OtherHeads = ALONE,
    ) -> Self | None:
        """Load a partition from its replica; return None while it is not `loadable`.

        `epoch` is a new random integer in `1..2^64-1`. `source` is the id of the source topic,
        which the caller has compared with the one in the replica's head. `other_heads` are those of
        the collection's other states.
        """
        stored = loadable(context, partition, replicas, other_heads)
        if stored is None:
            return None
        self = cls(context, replicas[partition], stored, epoch=epoch)
        self.work = starting_head(context, stored, replicas, other_heads, source=source)
        self._changed = self.work.cutover != stored.cutover
        self._decided = decided_offsets(self.work, other_heads)
        return self

    @property
    def next(self) -> int:
        """The next source offset to ingest."""
        return self.work.next

    @property
    def full(self) -> bool:
        """Whether nothing more should be ingested before the next flush, because too much waits.

        A call of `ingest` may exceed these limits by what its messages need. If the changelog holds
        too many dead records, a flush does not help; their deletion does.
        """
        return self._replica.dead_records >= DEAD_LIMIT or self._copies.full or self._cells.full

    def ingest(
        self,
        records: Sequence[Record],
        *,
        now_ms: int,
        arrived: Arrivals | None = None,
    ) -> None:
        """Take in messages of the source, `(offset, value)`, offsets ascending from `next` on.

        `arrived` says when they arrived at the broker; None: now. The caller guarantees that no
        message between them is missing. No message raises an error: each report is counted, late or
        rejected. If anything else fails (memory runs out, say), the partition must be dropped.
        """
        if not records:
            return
        self._expect(records[0][0])
        context, arrived = self._context, arrived or Arrivals.at(now_ms)
        # 1. Read the frames, and classify each report.
        classified = self._classify(records, arrived)
        # 2. Copy late and rejected reports. An error from here on leaves a batch half counted.
        torn, self._torn = self._torn, True
        if not classified.all_counted:
            self._copies.add(make_copies(context, self.partition, records, classified))
        # 3. Count.
        work, gap, self._open_gap = self.work, self._open_gap, None
        if gap is not None:
            work = bound_gap(context, work, gap, arrived, now_ms=now_ms)
        work = count(self._cells, work, classified)
        self._delays += Delays.of(classified, window=context.window)
        self._witnessed = classified.witnessed
        # 4. Move the head in memory past these messages. Only a report that counts says that more
        # may come: what is refused or late could hold open windows for ever, and never fills them.
        counted = work.n > self.work.n
        if counted:
            self._probes.counted()
        self.work = replace(
            work,
            next=records[-1][0] + 1,
            closed=max(work.closed, context.window.closed(work.clock)),
            idle=work.idle and not counted,
        )
        self._changed, self._torn = True, torn

    def _expect(self, offset: int) -> None:
        if offset < self.work.next:
            raise ValueError("expected offsets of at least next")

    def _classify(self, records: Sequence[Record], arrived: Arrivals) -> Classified:
        values, decided_here = [value for _, value in records], self._decided.places(records)
        return classify(
            self._context,
            read_batch(self._context.spec, self._accept, values, decided=decided_here),
            self.work,
            arrived=arrived,
            partition=self.partition,
            known_tokens=self._cells.tokens,
            witnessed=self._witnessed,
        )

    def skip_to(self, offset: int, *, now_ms: int) -> int:
        """Continue at an offset, because the source's retention deleted everything before it.

        Returns how many are lost, not counting those that another state has decided.
        """
        self._expect(offset)
        before, context = self.work, self._context
        self.work, missing = skip_deleted(context, before, offset, self._decided, now_ms=now_ms)
        if missing:
            self._open_gap = self.work.gaps[-1]
        self._changed |= self.work is not before
        return missing

    def read_to(self, offset: int, *, end: int, asked_ms: int | None) -> None:
        """Note that a fetch covering all of the source below `offset` has been ingested.

        `end` is where the source ended at that time. `asked_ms` is when it was sent, on the clock
        of `clock`, or earlier; None if not known.
        """
        # Offsets without records, which would show as lag otherwise.
        if offset > self.work.next:
            self.work = replace(self.work, next=offset)
            self._changed = True
        if end > self.work.end:
            self.work = replace(self.work, end=end)
        # A leader whose log ends before what has been read lags behind: it proves nothing.
        self._probes.add_fetch(None if end < self.work.next else asked_ms)

    def interrupted(self) -> None:
        """Restart the idle time: the source is read in a new session, or not at all."""
        self._probes.broken()

    def _is_idle(self, idle_ms: int, now_ms: int) -> bool:
        # The largest end that any owner saw: a new leader may not know the log's length yet.
        return self.work.end <= self.work.next and self._probes.last_for(idle_ms, now_ms=now_ms)

    def explain_not_idle(self, *, now_ms: int) -> tuple[bool, str]:
        """Return why it is not idle, as text, and whether this is although no report counted.

        The text is empty if it is idle. `now_ms` is on the clock of `clock`.
        """
        idle_ms = self._context.window.idle_ms
        if self.work.idle:
            return False, ""
        unread, series = self.work.end - self.work.next, self._probes.series
        quiet_ms = now_ms - self._counted_ms
        if unread > 0:
            return True, f"{unread:,} of its messages are unread"
        if idle_ms is None:
            return False, "it waits for later reports, or for `ldpstream close`: idle is off"
        if quiet_ms < idle_ms:
            ago = f"{quiet_ms / 1000:,.0f} s ago"
            if self.work.n == self._loaded:
                return True, f"it was loaded {ago}, and no report has come since"
            return False, f"its last report, counted {ago}, is dated before their end and grace"
        if series is None or now_ms - series[1] > self._context.gap_ms:
            return True, "the broker has not confirmed for some seconds where its log ends"
        left_ms = max(0, idle_ms - now_ms + series[0])
        return True, f"read to its end, it is idle in {left_ms / 1000:,.0f} s"

    def clock(
        self,
        *,
        replicas: Sequence[Replica],
        controls: Sequence[Control],
        known_partitions: int,
        now_ms: int,
        heads_seen: SeenHeads | None = None,
    ) -> None:
        """Advance time: idle closing, `close`, finals and releases (partition 0), expiry.

        `replicas` are those of all partitions and `known_partitions` is the source's number of
        partitions according to the group's metadata. `now_ms` is from a monotonic clock.
        `heads_seen` is `SeenHeads.of` these replicas, for callers that have many partitions.
        """
        if self.work.n != self._counted:
            self._counted, self._counted_ms = self.work.n, now_ms
        replicas = replicas[:known_partitions]
        heads_seen = heads_seen or SeenHeads.of(replicas)
        heads = heads_seen.heads
        if len(heads) < known_partitions:
            return
        # 1. Time passes without reports: the partition is idle, or ordered to close panes.
        before, window = self.work, self._context.window
        idle = window.idle_ms is not None and self._is_idle(window.idle_ms, now_ms)
        self.work = self._clock.advance(before, heads_seen, controls, idle=idle, now_ms=now_ms)
        # 2. Partition 0 stores what all have closed; the others leave to it what it has stored.
        if self.partition == 0:
            self._decide(replicas, heads)
            if len(heads) >= self.work.partitions and self._context.minimum > 1:
                self._changed |= self._releases.release(replicas, self.work, now_ms=now_ms)
        else:
            # An owner that has not closed these panes itself is no longer the owner.
            handed_over = min(heads[0].gathered, self.base.closed)
            if handed_over > self.work.gathered:
                self.work = hand_over(self._cells, self.work, handed_over)
        # 3. A pane is kept until its retention is over and all its windows are published.
        first_kept = min(window.expired(self.work.clock), heads[0].published * window.hop_panes)
        if first_kept > self.work.expired:
            self.work = expire(self._cells, self.work, first_kept)
        # 4. Time alone is not worth a flush, unless a pane closes or the partition becomes idle.
        now, written = self.work, self.flight or self.base
        if now is not before:
            moved = replace(
                before, clock=now.clock, expired=now.expired, gathered=now.gathered, idle=now.idle
            )
            self._changed |= now != moved or (now.idle and not written.idle)

    def _decide(self, replicas: Sequence[Replica], heads: Sequence[Head]) -> None:
        self.work = store_finals(self._context, self._cells, self.work, replicas, heads)

    def flush(self) -> Flush | None:
        """Return what to send (steps 1 and 2); None if nothing has changed, or one is in flight."""
        if self._torn or self.flight is not None or not self._changed:
            return None
        self._changed = False
        epoch, seq = self.epoch, self.base.seq + 1
        cells, lineage = self._cells.flush(self.work.closed, self.base.lineage, seq)
        copies, self._copies = tuple(self._copies.queued), WaitingCopies()
        self._sent_delays, self._delays = self._delays, Delays()
        self.flight = replace(self.work, epoch=epoch, seq=seq, lineage=lineage)
        return Flush(
            copies=copies,
            cells=tuple(
                (encode_key(self._prefix, Key(name, epoch, seq)), value) for name, value in cells
            ),
            head=(encode_key(self._prefix, Key(HEAD, epoch, seq)), encode_head(self.flight)),
        )

    def settle(self) -> Settled:
        """Return who won (steps 3 and 4), by our own replica; after LOST, drop this object."""
        newest, before, flushed = self._replica.head, self.base, self.flight
        if self._torn:
            return Settled.LOST
        if newest is None or newest.seq <= before.seq:
            return Settled.WAITING
        if flushed is None or (newest.epoch, newest.seq) != (flushed.epoch, flushed.seq):
            return Settled.LOST
        self.base, self.flight = flushed, None
        rejected = Counter(flushed.rejected)
        rejected.subtract(before.rejected)
        self.outcome = Outcome(
            counted=flushed.n - before.n,
            late=flushed.late - before.late,
            rejected={reason: count for reason, count in rejected.items() if count},
            lost_offsets=flushed.lost - before.lost,
            delays=self._sent_delays,
        )
        return Settled.WON

    def publications(self) -> list[Publication]:
        """Return the finals that a winning head has stored and that are not marked published.

        Only partition 0 has any. Call `mark_published` when all of them have been sent.
        """
        self._offered = self.base.final
        if self._offered <= self.work.published:
            return []
        finals = self._cells.finals(self.work.published, self._offered)
        if not finals:
            self.mark_published()
        return [Publication(*self._context.window.span(number), final) for number, final in finals]

    def mark_published(self) -> None:
        """Let the next head record that the last result of `publications` has been published."""
        if self._offered > self.work.published:
            self._cells.forget_finals(self._offered)
            self.work = replace(self.work, published=self._offered)
            self._changed = True
