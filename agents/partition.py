"""The state machine of one partition of one collection, in its owner's memory.

Ownership is a hint; the changelog decides. Records, the clock and other partitions' tails go in;
what to write and to publish comes out. Nothing here reads a clock, draws a random number or talks
to a broker: the caller passes the time, draws the epoch and sends.

Rule 4, flush. Send the touched cells under the base's seq + 1, with the copies of late and rejected
messages; when all are acknowledged send the head; when it is acknowledged wait until the own tail
shows a head of that seq. Ours: commit its next offset and go on. Another's, or any failed send:
drop this object and load anew. One flush at a time.

Rule 6, load. Every load begins with a fresh random epoch, from the tail's state and at its head's
next offset: never from the committed offset, never from the memory of an earlier epoch.

Rule 8, second half. When the head that stores a final has won, the final is published; the head
after it says so. A takeover in between publishes again, with the same content. A pane expires after
the retention, and only once all windows that hold it are published. Partition 0's head says how
many partitions finals wait for; the owner of a new one waits until it reads itself included, and
starts with all panes of decided windows closed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self

from ldpstream.agents.batch import read_batch
from ldpstream.agents.clock import Control, IdleClock, control_clock
from ldpstream.agents.context import Context
from ldpstream.agents.copies import Copy, make_copies
from ldpstream.agents.finals import decide
from ldpstream.agents.judge import Judgement, judge
from ldpstream.agents.outcomes import Flush, Outcome, Publication, Settled
from ldpstream.agents.owned import OwnedCells
from ldpstream.agents.records import (
    HEAD,
    Head,
    Key,
    Name,
    encode_head,
    encode_key,
    state_prefix,
)
from ldpstream.agents.tail import Tail


class Partition:
    """What an owner holds of one partition: the state that it loaded and what it did since.

    `outcome` is what the last won head added, None before the first.
    """

    def __init__(
        self, context: Context, tail: Tail, head: Head, *, epoch: int, now_ms: int
    ) -> None:
        self.partition = tail.partition
        self.epoch = epoch
        self.outcome: Outcome | None = None
        self._context = context
        self._accept = frozenset(spec.fingerprint for spec in context.accept)
        self._prefix = state_prefix(context)
        self._tail = tail
        # The winning head that our next one continues, that next one in the making, and the one
        # in flight between the two.
        self._base = head
        self._work = head
        self._flight: Head | None = None
        self._changed = False
        self._cells = OwnedCells(context, epoch, head, tail.cells)
        self._copies: list[Copy] = []
        self._idle = IdleClock(context.window, now_ms=now_ms)
        self._offered = head.published

    @classmethod
    def load(
        cls,
        context: Context,
        partition: int,
        tails: Sequence[Tail],
        *,
        epoch: int,
        now_ms: int,
        source: bytes = b"",
    ) -> Self | None:
        """Load a partition from its tail; None where that cannot be yet.

        That is while its tail or partition 0's has not reached its log's end, and, of a new
        partition, while partition 0's head does not include it. `epoch` is a fresh random integer
        in `1..2^64-1`; `source` the id of the source topic, which the caller has compared with
        that in the tail's head.
        """
        first, tail = tails[0].head, tails[partition]
        if first is None or tail.head is None or not cls._included(partition, first):
            return None
        self = cls(context, tail, tail.head, epoch=epoch, now_ms=now_ms)
        self._start_closed(context.window.closing(first.final))
        self._work = replace(self._work, source=source or self._work.source)
        return self

    @staticmethod
    def _included(partition: int, first: Head) -> bool:
        return partition == 0 or partition < first.partitions

    def _start_closed(self, closed: int) -> None:
        """Close the panes of decided windows: a new partition must not count into them."""
        if closed > self._work.closed:
            window = self._context.window
            clock = max(self._work.clock, closed * window.pane_ms + window.grace_ms)
            self._work = replace(self._work, closed=closed, clock=clock)

    @property
    def next(self) -> int:
        """The next source offset to ingest."""
        return self._work.next

    @property
    def base(self) -> Head:
        """The winning head that the next flush continues."""
        return self._base

    @property
    def work(self) -> Head:
        """The state in memory: the next head in the making."""
        return self._work

    def ingest(self, records: Sequence[tuple[int, bytes | None]], *, now_ms: int) -> None:
        """Take in messages of the source, `(offset, value)`, offsets ascending from `next` on.

        The caller guarantees that no message between them is missing. Messages never raise: each
        report is counted, late or rejected.

        Raises:
            ValueError: where the first offset is below `next`.
        """
        if not records:
            return
        if records[0][0] < self._work.next:
            raise ValueError("expected offsets from next on")
        judgement = self._judge(records, now_ms)
        self._copies += make_copies(self._context, self.partition, records, judgement)
        work, n, late = self._work, 0, 0
        for pane, reports in judgement.counted():
            self._cells.count(pane, reports)
            n += len(reports)
        for pane, count in judgement.late().items():
            late += count
            # An expired pane has no totals any more: its late reports count in the head only.
            if pane >= work.expired:
                self._cells.late(pane, count)
        own = len(records) > judgement.batch.passed
        if own:
            self._idle.restart(now_ms=now_ms)
        self._work = replace(
            work,
            next=records[-1][0] + 1,
            clock=judgement.clock,
            closed=max(work.closed, self._context.window.closed(judgement.clock)),
            idle=work.idle and not own,
            n=work.n + n,
            late=work.late + late,
            rejected=_add(work.rejected, judgement.rejected()),
        )
        self._changed = True

    def _judge(self, records: Sequence[tuple[int, bytes | None]], now_ms: int) -> Judgement:
        batch = read_batch(self._context.spec, self._accept, [value for _, value in records])
        return judge(
            self._context, batch, clock=self._work.clock, closed=self._work.closed, now_ms=now_ms
        )

    def skip_to(self, offset: int) -> None:
        """Go on at an offset because the source's retention deleted all before: they are lost.

        Raises:
            ValueError: where it is below `next`.
        """
        lost = offset - self._work.next
        if lost < 0:
            raise ValueError("expected an offset from next on")
        if lost:
            self._work = replace(self._work, next=offset, lost=self._work.lost + lost)
            self._changed = True

    def pass_over(self, offset: int) -> None:
        """Go on at an offset because those before hold no records (transaction markers, say).

        Raises:
            ValueError: where it is below `next`.
        """
        if offset < self._work.next:
            raise ValueError("expected an offset from next on")
        self._work = replace(self._work, next=offset)

    def disturbed(self, *, now_ms: int) -> None:
        """Begin the idle time anew: after a fetch error, a seek, or a pause of the process."""
        self._idle.restart(now_ms=now_ms)

    def clock(
        self,
        *,
        tails: Sequence[Tail],
        end_offset: int | None,
        controls: Sequence[Control],
        known_partitions: int,
        now_ms: int,
    ) -> None:
        """Let time go on: idle closing, `close`, finals (partition 0 only) and expiry.

        `tails` are those of all partitions, `end_offset` is the source's (None while fetches fail)
        and `known_partitions` the source's number of partitions as the group's metadata says.
        """
        heads = [tail.head for tail in tails[:known_partitions] if tail.head is not None]
        if len(heads) < known_partitions:
            return
        before = self._work
        self._advance(heads, end_offset, controls, now_ms)
        if self.partition == 0:
            self._decide(heads, tails[:known_partitions])
        self._expire(heads[0].published)
        # A clock that closes nothing is no news, nor are empty panes that expire: an idle partition
        # writes a head only when a pane closes or something else changes.
        work = self._work
        self._changed |= work != replace(before, clock=work.clock, expired=work.expired)

    def _advance(
        self,
        heads: Sequence[Head],
        end_offset: int | None,
        controls: Sequence[Control],
        now_ms: int,
    ) -> None:
        work, window = self._work, self._context.window
        idle = self._idle.idle(following=work.next, end_offset=end_offset, now_ms=now_ms)
        clock = max(work.clock, control_clock(window, controls, self.partition, work.next))
        if idle:
            clock = self._idle.clock(self.partition, clock, heads, now_ms=now_ms)
        else:
            self._idle.busy()
        closed = max(work.closed, window.closed(clock))
        self._work = replace(work, idle=idle, clock=clock, closed=closed)

    def _decide(self, heads: Sequence[Head], tails: Sequence[Tail]) -> None:
        partitions = max(self._work.partitions, len(heads))
        self._work = replace(self._work, partitions=partitions)
        if len(heads) == partitions:
            decision = decide(self._context, tails, heads, self._work.final)
            for window, content in decision.contents:
                self._cells.final(window, content)
            published = self._work.published
            if published == self._work.final and not decision.contents:
                published = decision.final
            self._work = replace(self._work, final=decision.final, published=published)

    def _expire(self, published: int) -> None:
        work, window = self._work, self._context.window
        expired = min(window.expired(work.clock), window.first_pane(published))
        if expired > work.expired:
            gone = work.gone + self._cells.expire(expired)
            self._work = replace(work, expired=expired, gone=gone)

    def flush(self) -> Flush | None:
        """Return what to send; None where nothing is to be said, or a flush is in flight."""
        if self._flight is not None or not self._changed:
            return None
        seq = self._base.seq + 1
        cells = self._cells.flush(self._work.closed)
        lineage = self._cells.lineage(self._base.lineage, seq)
        head = replace(self._work, epoch=self.epoch, seq=seq, lineage=lineage)
        self._flight, self._changed = head, False
        copies, self._copies = tuple(self._copies), []
        return Flush(
            copies=copies,
            cells=tuple((self._key(name, seq), value) for name, value in cells),
            head=(self._key(HEAD, seq), encode_head(head)),
            next=head.next,
        )

    def _key(self, name: Name, seq: int) -> bytes:
        return encode_key(self._prefix, Key(name, self.epoch, seq))

    def settle(self) -> Settled:
        """Return who won, as the own tail shows it; after LOST this object is of no more use."""
        seen = self._tail.head
        if seen is None or seen.seq <= self._base.seq:
            return Settled.WAITING
        won = self._flight
        if won is None or (seen.epoch, seen.seq) != (won.epoch, won.seq):
            return Settled.LOST
        self.outcome = Outcome.between(self._base, won)
        self._base, self._flight = won, None
        return Settled.WON

    def publications(self) -> list[Publication]:
        """Return the finals that a winning head has stored and that are not marked published.

        Only partition 0 has any. Call `mark_published` when all of them have been sent.
        """
        self._offered = self._base.final
        finals = self._cells.finals(self._work.published, self._offered)
        if not finals:
            self.mark_published()
        spans = [(*self._context.window.span(window), content) for window, content in finals]
        return [Publication(start_ms, end_ms, content) for start_ms, end_ms, content in spans]

    def mark_published(self) -> None:
        """Let the next head say that what `publications` returned last has been published."""
        if self._offered > self._work.published:
            self._work = replace(self._work, published=self._offered)
            self._cells.forget_finals(self._offered)
            self._changed = True


def _add(counts: Mapping[str, int], more: Mapping[str, int]) -> Mapping[str, int]:
    return {key: counts.get(key, 0) + more.get(key, 0) for key in {**counts, **more}}
