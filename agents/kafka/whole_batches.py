"""Take record batches whole from a consumer, without an object for every record.

aiokafka makes a `ConsumerRecord` of each record, which costs some seven times as much as
decompressing the batch, and offers nothing else. So the fetches of one consumer are wrapped while
they wait to be read. A batch then yields all its records as one `Run` or, if it holds only a few,
one by one. aiokafka still decides everything else about batches (checksums, aborted transactions,
control batches, positions).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.consumer.fetcher import FetchResult

from ldpstream.agents.kafka.unreadable import WrappedBatch, on_fetch

_APPENDED: Final = 1
"""Timestamp type of records whose timestamp the broker has set (LogAppendTime)."""
_FEW: Final = 8
"""With fewer records a batch is cheaper record by record."""

Fetched = Any
"""A record as a consumer or a batch returns it, whose classes have no types in common."""


@dataclass(frozen=True, slots=True)
class Run:
    """N >= 1 records of one partition, offsets ascending (a `range` if consecutive).

    `appended` says that the broker has set all timestamps, `times_ms`.
    """

    offsets: Sequence[int]
    values: Sequence[bytes | None]
    times_ms: Sequence[int]
    appended: bool

    @classmethod
    def of(cls, records: Sequence[Fetched]) -> "Run":
        """Return records, at least one, as a run."""
        first, last = records[0].offset, records[-1].offset
        consecutive = last - first == len(records) - 1
        offsets = range(first, last + 1) if consecutive else [r.offset for r in records]
        return cls(
            offsets,
            [record.value for record in records],
            [record.timestamp for record in records],
            all(record.timestamp_type == _APPENDED for record in records),
        )

    @property
    def offset(self) -> int:
        """The last offset: the fetch continues after it."""
        return self.offsets[-1]


def take_whole(consumer: AIOKafkaConsumer) -> None:
    """Have a started consumer return a `Run` for each batch, and single records of small ones.

    `max_records` of its `getmany` then counts these.
    """
    on_fetch(consumer, _take_whole)


def runs(found: Sequence[Run | Fetched]) -> Sequence[Run]:
    """Return what a consumer has found of a partition as runs."""
    made: list[Run] = []
    single: list[Fetched] = []
    for one in found:
        if isinstance(one, Run):
            if single:
                made.append(Run.of(single))
                single = []
            made.append(one)
        else:
            single.append(one)
    return [*made, Run.of(single)] if single else made


def _take_whole(result: FetchResult) -> None:
    fetched: Any = result
    records = fetched._partition_records  # noqa: SLF001 (what it unpacks)
    records._records = _Batches(records)  # noqa: SLF001 (its batches)
    records._consumer_record = _as_it_is  # noqa: SLF001 (it makes an object of each)


class _Batches:
    """The batches of a fetch, each of which yields one run."""

    def __init__(self, partition: Any) -> None:
        self._partition = partition
        self._batches = partition._records  # noqa: SLF001 (has its batches only here)

    def has_next(self) -> bool:
        return bool(self._batches.has_next())

    def next_batch(self) -> Any:
        batch = self._batches.next_batch()
        # Older formats have no such field.
        if getattr(batch, "last_offset_delta", _FEW) < _FEW:
            return batch
        return _Batch(batch, self._partition.next_fetch_offset)


class _Batch(WrappedBatch):
    """A batch whose records from an offset on are one run."""

    def __init__(self, batch: Any, start: int) -> None:
        super().__init__(batch)
        self._start = start

    def __iter__(self) -> Iterator[Run]:
        records: Iterable[Fetched] = self._batch
        found: list[Fetched] = []
        try:
            # Keeps the records before one that cannot be read.
            found.extend(records)
        finally:
            if found and found[0].offset < self._start:
                # A batch is fetched whole, wherever in it a fetch starts.
                found = [record for record in found if record.offset >= self._start]
            if found:
                yield Run.of(found)


def _as_it_is(_: TopicPartition, found: Run | Fetched) -> Run | Fetched:
    return found
