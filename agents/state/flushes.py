"""What a flush sends, who won it, and what it added to the counters.

With its cells and head (`ldpstream.agents.state.partition`) a flush sends copies of late and
rejected messages, for operators to look at. How late reports came counts once its head has won.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal

import numpy as np

from ldpstream.agents.state.classification import LATE, OUTCOMES, Classified, Delays
from ldpstream.agents.state.context import Context
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
    """What a winning head added to the partition's counters, and how late these reports came."""

    counted: int
    late: int
    rejected: Mapping[str, int]
    lost_offsets: int
    delays: Delays = field(default_factory=Delays)


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
    for (place, reason), rows in _concerned(classified).items():
        if reason != "late" and not context.copy_rejected:
            continue
        offset, value = records[place]
        if value is not None and len(value) <= COPY_BYTES and sum(map(len, rows)) == total[place]:
            yield _copy(reason, partition, offset, value)
            continue
        for frame in _frames(context, classified, np.concatenate(rows)):
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
    by_copy: dict[tuple[int, str], list[range | Integers]] = {}
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
            by_copy.setdefault((place, OUTCOMES[outcome]), []).append(rows)
        elif good == count:
            by_copy.setdefault((place, "late"), []).append(rows)
        else:
            places = classified.good[rows.start : end]
            for reason, bad in classified.reasons(rows.start + np.flatnonzero(~places)):
                by_copy.setdefault((place, reason), []).append(bad)
            if outcome == LATE and good:
                by_copy.setdefault((place, "late"), []).append(rows.start + np.flatnonzero(places))
    return by_copy


def _frames(context: Context, classified: Classified, rows: Integers) -> Iterator[bytes]:
    """Yield frames of these reports, each at most 64 KiB."""
    batch = classified.batch
    run = np.searchsorted(np.cumsum(batch.count), rows, side="right")
    limit = (COPY_BYTES - HEAD_BYTES) // (RUN_BYTES + batch.payload.shape[1])
    for at in range(0, len(rows), limit):
        piece = slice(at, at + limit)
        times_ms = batch.time_ms[run[piece]]
        yield encode_frame(context.spec.fingerprint, times_ms, batch.payload[rows[piece]])
