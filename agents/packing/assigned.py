"""A partition that a packer reads, with what it has read and not packed yet.

Records are joined all at once, looking only at their lengths and offsets.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from aiokafka import TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.kafka.polls import Answers, Run
from ldpstream.agents.state.packed import MAX_MESSAGES, MAX_SPAN, Packed, PackedRecords
from ldpstream.mechanisms.base.arrays import Integers


@dataclass(frozen=True)
class PackOptions:
    """How long a record may wait for others, and how large a packed message may be."""

    linger_ms: int = 100
    limit_bytes: int = 512 << 10


@dataclass
class AssignedPartition:
    """A source partition assigned to this packer, with what has been read from it."""

    collection: CollectionConfig
    source: TopicPartition
    options: PackOptions
    answers: Answers
    packed_to: int
    """Everything below this offset is packed; at first, the offset where reading begins."""
    runs: list[Run] = field(default_factory=list)
    """What has been read and not packed yet."""
    arrived: list[Integers] = field(default_factory=list)
    """When the records in `runs` arrived."""
    records: int = 0
    held_bytes: int = 0
    began: float = 0.0
    """When the first record in `runs` arrived."""
    acknowledged: int | None = None
    flight: "asyncio.Task[None] | None" = None
    given_up: bool = False
    astray: bool = False
    """Whether the position no longer exists in the source."""

    @property
    def named(self) -> tuple[str, int]:
        """The collection's name, and the partition's number."""
        return self.collection.name, self.source.partition

    @property
    def full(self) -> bool:
        """Whether a full message waits, by bytes or by number of records."""
        return self.held_bytes >= self.options.limit_bytes or self.records >= MAX_MESSAGES

    def due(self, now: float) -> bool:
        """Return whether to send what waits: it is late, full, or must be sent before others."""
        waited = (now - self.began) * 1000 >= self.options.linger_ms / 2
        soon = waited or self.astray or self.full
        return self.flight is None and bool(self.runs) and soon

    def read(
        self, taken: Sequence[Run], *, stop: int, end: int, steady_ms: int, now_ms: int
    ) -> None:
        """Keep what was read, with the arrival times that a worker reading the source would find.

        Call it even if nothing was found: the log was read up to `stop`, and ends at `end`.
        `steady_ms` is on the clock of `answers`.
        """
        dates = self.answers.read(stop, end=end, found=taken)
        if not taken:
            return
        if not self.runs:
            self.began = time.monotonic()
        arrived = dates.arrivals(now_ms=now_ms, ahead_ms=now_ms - steady_ms)
        clock_ms = np.asarray(arrived.clock_ms, np.int64)
        self.arrived.append(np.broadcast_to(clock_ms, len(dates.times_ms)))
        self.runs += taken
        self.records += len(dates.times_ms)
        for run in taken:
            self.held_bytes += sum(map(len, filter(None, run.values)))

    def cut(self, *, end: int) -> Iterator[Packed]:
        """Yield all that waits in messages of limited size; the source ends at `end`.

        A larger record is left out: it lies in no `[after, next)`, so workers read it from the
        source.
        """
        records = join(self.runs, np.concatenate(self.arrived))
        self.records, self.held_bytes, self.runs, self.arrived = 0, 0, [], []
        for part in cut(records, self.options.limit_bytes):
            first, last = int(part.offsets[0]), int(part.offsets[-1])
            after = self.packed_to if last - self.packed_to <= MAX_SPAN else first
            self.packed_to = last + 1
            if len(part.data) <= self.options.limit_bytes:
                yield Packed(after, last + 1, max(end, last + 1), part)


def halves(packed: Packed) -> tuple[Packed, ...]:
    """Return the two halves of a message that is too large; empty if it holds one record."""
    n = len(packed.records)
    if n == 1:
        return ()
    first, second = packed.records[: n // 2], packed.records[n // 2 :]
    middle = int(second.offsets[0])
    return (
        Packed(packed.after, middle, packed.end, first),
        Packed(middle, packed.next, packed.end, second),
    )


def join(runs: Sequence[Run], arrived: Integers) -> PackedRecords:
    """Return records in the form in which they are packed."""
    values = list(chain.from_iterable(run.values for run in runs))
    present = [value for value in values if value is not None]
    sizes = set(map(len, present))
    if len(sizes) == 1 and len(present) == len(values):
        (length,) = sizes
        lengths = np.broadcast_to(np.int64(length), (len(values),))
    else:
        length = None
        lengths = np.array([-1 if v is None else len(v) for v in values], dtype=np.int64)
    numbers = [
        np.arange(part[0], part[-1] + 1) if isinstance(part, range) else np.array(part)
        for part in (run.offsets for run in runs)
    ]
    return PackedRecords(
        np.concatenate(numbers, dtype=np.int64),
        lengths,
        np.frombuffer(b"".join(present), np.uint8),
        length,
        arrived,
        all(run.appended for run in runs),
    )


def cut(records: PackedRecords, limit_bytes: int) -> Iterator[PackedRecords]:
    """Yield parts of at most `limit_bytes`, or one record, each spanning less than 2^32 offsets."""
    offsets, ends, start = records.offsets, np.cumsum(np.maximum(records.lengths, 0)), 0
    while start < len(records):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + limit_bytes, side="right"))
        far = int(np.searchsorted(offsets, offsets[start] + MAX_SPAN, side="right"))
        stop = min(max(stop, start + 1), start + MAX_MESSAGES, far)
        yield records[start:stop]
        start = stop
