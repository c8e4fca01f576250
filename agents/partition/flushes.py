"""Rule 4: a partition has one flush at a time, and its changelog says who won.

1. Send the touched cells under the base's seq + 1, with the copies of late and rejected messages.
2. When all of them are acknowledged, send the head.
3. When the head is acknowledged, wait until our own replica shows a head of that seq.
4. If it is ours, continue from it; the group is told its next offset later, with all others. If it
   is another owner's, or any send failed, drop the partition and load it again.

What operators look at waits for the flush as well: the copies are sent with it, and the histograms
of how late reports came (`Delays`) count once its head has won.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, Literal

import numpy as np

from ldpstream.agents.partition.classify import LATE, OUTCOMES, Classified, Delays
from ldpstream.agents.partition.owned import OwnedCells
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.encoding import encode_head, encode_key, state_prefix
from ldpstream.agents.state.records import HEAD, Head, Key
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.wire.frame import HEAD_BYTES, RUN_BYTES, encode_frame

COPY_BYTES: Final = 65_536
"""The longest copy: a longer message is cut, or copied in several frames."""
COPIES_LIMIT: Final = 4_096
COPIES_BYTES: Final = 4 << 20


@dataclass(frozen=True)
class Copy:
    """A copy of a late or rejected message, for the topics where operators look for them.

    Its headers say why it was made and where the message came from: `reason` ("late", or the reason
    for rejection), `partition` and `offset` of the source, in decimal. The original's key and
    headers are not copied.
    """

    kind: Literal["late", "rejected"]
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


@dataclass
class WaitingCopies:
    """The copies that go out with the next flush, in order, and the size of all."""

    queued: list[Copy] = field(default_factory=list)
    size_bytes: int = 0

    @property
    def full(self) -> bool:
        """Whether no more copies should be added before the next flush."""
        return len(self.queued) >= COPIES_LIMIT or self.size_bytes >= COPIES_BYTES

    def add(self, copies: Iterable[Copy]) -> None:
        """Queue copies."""
        for copy in copies:
            self.queued.append(copy)
            self.size_bytes += len(copy.value)


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
        """Return what to send (steps 1 and 2) to make the state in memory durable.

        No flush may be in flight.
        """
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
        """Return who won (steps 3 and 4), given the head that our own replica shows."""
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


def make_copies(
    context: Context,
    partition: int,
    records: Sequence[tuple[int, bytes | None]],
    classified: Classified,
) -> Iterator[Copy]:
    """Yield the copies needed for a classified batch of `(offset, message)`.

    An unreadable message is cut at 64 KiB; of a readable one only the reports concerned are copied,
    as frames.
    """
    if context.copy_rejected:
        for place, reason in classified.batch.refused:
            offset, value = records[place]
            yield _copy(reason, partition, offset, (value or b"")[:COPY_BYTES])
    total = np.bincount(classified.batch.message, classified.batch.count, len(records)).astype(int)
    for (place, reason), parts in _concerned(classified).items():
        if reason != "late" and not context.copy_rejected:
            continue
        offset, value = records[place]
        if value is not None and len(value) <= COPY_BYTES and sum(map(len, parts)) == total[place]:
            yield _copy(reason, partition, offset, value)
            continue
        for frame in _frames(context, classified, np.concatenate(parts)):
            yield _copy(reason, partition, offset, frame)


def _copy(reason: str, partition: int, offset: int, value: bytes) -> Copy:
    headers = (
        ("reason", reason.encode()),
        ("partition", str(partition).encode()),
        ("offset", str(offset).encode()),
    )
    return Copy("late" if reason == "late" else "rejected", value, headers)


def _concerned(classified: Classified) -> dict[tuple[int, str], list[range | Integers]]:
    """Return the rows of the reports to copy, in parts, by message and reason."""
    batch, good_count = classified.batch, classified.good_count
    runs = np.flatnonzero((classified.outcome >= LATE) | (good_count < batch.count))
    ends = np.cumsum(batch.count)[runs]
    found: dict[tuple[int, str], list[range | Integers]] = {}
    for place, outcome, good, count, end in zip(
        batch.message[runs].tolist(),
        classified.outcome[runs].tolist(),
        good_count[runs].tolist(),
        batch.count[runs].tolist(),
        ends.tolist(),
        strict=True,
    ):
        rows = range(end - count, end)
        if outcome > LATE:
            found.setdefault((place, OUTCOMES[outcome]), []).append(rows)
        elif good == count:
            found.setdefault((place, "late"), []).append(rows)
        else:
            taken = classified.good[rows.start : end]
            for reason, bad in classified.reasons(rows.start + np.flatnonzero(~taken)):
                found.setdefault((place, reason), []).append(bad)
            if outcome == LATE and good:
                found.setdefault((place, "late"), []).append(rows.start + np.flatnonzero(taken))
    return found


def _frames(context: Context, classified: Classified, rows: Integers) -> Iterator[bytes]:
    """Yield frames of these reports, each at most 64 KiB."""
    batch = classified.batch
    run = np.searchsorted(np.cumsum(batch.count), rows, side="right")
    limit = (COPY_BYTES - HEAD_BYTES) // (RUN_BYTES + batch.payload.shape[1])
    for at in range(0, len(rows), limit):
        part = slice(at, at + limit)
        times_ms = batch.time_ms[run[part]]
        yield encode_frame(context.spec.fingerprint, times_ms, batch.payload[rows[part]])
