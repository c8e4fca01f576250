"""Record batches taken whole from a consumer: a packer needs no object for every record.

aiokafka makes a `ConsumerRecord` of each record, which costs some seven times what unpacking the
batch does, and offers nothing else. So the fetches of one consumer are wrapped where they wait to
be read: a batch then yields all its records as one `Run`, or, where it holds next to none, as they
come out of it. What aiokafka decides about batches
(checksums, aborted transactions, control batches, positions) it goes on deciding.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import aiokafka
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.consumer.fetcher import FetchResult

from ldpstream.agents.kafka.unreadable import on_fetch

KNOWN: Final = "0.14."
"""How the versions begin of which is known how they keep their fetches."""
_APPENDED: Final = 1
"""The type of a timestamp that the broker has set (LogAppendTime)."""
_FEW: Final = 8
"""With fewer records a batch costs less record by record than wrapped."""

log = logging.getLogger(__name__)


class Fetched(Protocol):
    """A record as a consumer or a batch returns it."""

    @property
    def offset(self) -> int:
        """Its offset."""

    @property
    def value(self) -> bytes | None:
        """Its value."""

    @property
    def timestamp(self) -> int:
        """Its timestamp, epoch ms; below 0 where it has none."""

    @property
    def timestamp_type(self) -> int:
        """Who has set it."""


@dataclass(frozen=True, slots=True)
class Run:
    """Records of one partition, offsets ascending: N >= 1 of each; a `range` where consecutive.

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
        """The last offset: a fetch goes on after it."""
        return self.offsets[-1]


def take_whole(consumer: AIOKafkaConsumer) -> None:
    """Let a started consumer return a `Run` for each batch, and the records of small ones.

    `max_records` of its `getmany` is then a number of these. The fetches of an aiokafka that is not
    known are left alone: an offset that it passed over otherwise would be taken for none.
    """
    if not aiokafka.__version__.startswith(KNOWN):
        log.warning(
            "aiokafka %s may keep its fetches otherwise than %sx: messages are read one by one, "
            "several times slower",
            *(aiokafka.__version__, KNOWN),
        )
        return
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
        # The format before this one has no such field.
        if getattr(batch, "last_offset_delta", _FEW) < _FEW:
            return batch
        return _Batch(batch, self._partition.next_fetch_offset)


class _Batch:
    """A batch of which the records from an offset on are one run; all else is the batch's own."""

    def __init__(self, batch: Any, start: int) -> None:
        self._batch = batch
        self._start = start

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        # The one record of a control batch.
        return next(self._batch)

    def __iter__(self) -> Iterator[Run]:
        records: Iterable[Fetched] = self._batch
        found: list[Fetched] = []
        try:
            # Keeps what comes before a record that cannot be read.
            found.extend(records)
        finally:
            if found and found[0].offset < self._start:
                # A batch is fetched whole, wherever in it a fetch begins.
                found = [record for record in found if record.offset >= self._start]
            if found:
                yield Run.of(found)


def _as_it_is(_: TopicPartition, found: Run | Fetched) -> Run | Fetched:
    return found
