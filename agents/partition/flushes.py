"""Rule 4: a partition has one flush at a time, and its changelog says who won.

1. Send the touched cells under the base's seq + 1, with the copies of late and rejected messages.
2. When all of them are acknowledged, send the head.
3. When the head is acknowledged, wait until our own replica shows a head of that seq.
4. If it is ours, continue from it; the group is told its next offset later, with all others. If it
   is another owner's, or any send failed, drop the partition and load it again.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from ldpstream.agents.partition.copies import Copy
from ldpstream.agents.partition.delays import Delays
from ldpstream.agents.partition.owned import OwnedCells
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.records import (
    HEAD,
    Head,
    Key,
    encode_head,
    encode_key,
    state_prefix,
)


@dataclass(frozen=True)
class Flush:
    """What to send: copies and cells at once, then the head when all of them are acknowledged.

    `cells` and `head` are `(key, value)` of the changelog.
    """

    copies: tuple[Copy, ...]
    cells: tuple[tuple[bytes, bytes], ...]
    head: tuple[bytes, bytes]


class Settled(Enum):
    """Who won the flush in flight: not known yet, this owner, or another one."""

    WAITING = "waiting"
    WON = "won"
    LOST = "lost"


@dataclass(frozen=True)
class Outcome:
    """What a winning head added to the partition's counters, and how late these reports came.

    `switched` is the format to which it moved a state, None if it did not.
    """

    counted: int
    late: int
    rejected: Mapping[str, int]
    lost_offsets: int
    delays: Delays = field(default_factory=Delays)
    switched: int | None = None


class Flushes:
    """The flushes of one owner, all in its epoch.

    `base` is the winning head that the next flush continues; `flight` the head of the flush in
    flight, None if there is none; `outcome` what the last winning head added, None before the
    first. `delays` are those of the reports that the next flush has counted.
    """

    def __init__(self, context: Context, epoch: int, base: Head) -> None:
        self.epoch = epoch
        self.base = base
        self.flight: Head | None = None
        self.outcome: Outcome | None = None
        self._prefix = state_prefix(context)
        self.delays = self._sent = Delays()

    def start(self, work: Head, cells: OwnedCells, copies: tuple[Copy, ...]) -> Flush:
        """Return what to send to make the state in memory durable; no flush may be in flight."""
        epoch, seq = self.epoch, self.base.seq + 1
        touched, lineage = cells.flush(work.closed, self.base.lineage, seq)
        self._sent, self.delays = self.delays, Delays()
        self.flight = replace(work, epoch=epoch, seq=seq, lineage=lineage)
        return Flush(
            copies=copies,
            cells=tuple(
                (encode_key(self._prefix, Key(name, epoch, seq)), value) for name, value in touched
            ),
            head=(encode_key(self._prefix, Key(HEAD, epoch, seq)), encode_head(self.flight)),
        )

    def settle(self, seen: Head | None) -> Settled:
        """Return who won, given the head that our own replica shows."""
        if seen is None or seen.seq <= self.base.seq:
            return Settled.WAITING
        won = self.flight
        if won is None or (seen.epoch, seen.seq) != (won.epoch, won.seq):
            return Settled.LOST
        before, self.base, self.flight = self.base, won, None
        rejected = Counter(won.rejected)
        rejected.subtract(before.rejected)
        self.outcome = Outcome(
            counted=won.n - before.n,
            late=won.late - before.late,
            rejected={reason: count for reason, count in rejected.items() if count},
            lost_offsets=won.lost - before.lost,
            delays=self._sent,
            switched=won.format if before.seq and won.format > before.format else None,
        )
        return Settled.WON
