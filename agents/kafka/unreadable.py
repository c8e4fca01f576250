"""Continue after an unreadable record batch, so that one batch cannot stop a consumer for good.

A broker accepts batches that our clients cannot parse: with a header's name that is not UTF-8, say.
aiokafka raises the parser's error, again at every fetch, and loses the records already parsed from
that fetch. So the fetches of a consumer are wrapped while they wait to be read. The unreadable part
of a batch becomes one record without key and value, at the batch's last offset, so that a reader
sees the same wherever in the batch it starts.

Errors that say nothing about the batch itself (a wrong checksum, lack of memory) are raised by the
next call instead, after everything before has been returned.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.consumer.fetcher import FetchError, FetchResult, PartitionRecords
from aiokafka.errors import CorruptRecordException, UnsupportedCodecError

_BACKOFF_SECONDS: Final = 0.5

log = logging.getLogger(__name__)


def pass_unreadable(consumer: AIOKafkaConsumer) -> None:
    """Have a started consumer continue after unreadable batches."""
    fetcher: Any = consumer._fetcher  # noqa: SLF001 (not offered otherwise)
    if isinstance(fetcher._records, ReadableResults):  # noqa: SLF001 (where fetches wait)
        return
    waiting, fetcher._records = fetcher._records, ReadableResults()  # noqa: SLF001 (where fetches wait)
    for partition, result in waiting.items():
        fetcher._records[partition] = result  # noqa: SLF001 (the same)


def on_fetch(consumer: AIOKafkaConsumer, change: Callable[[FetchResult], None]) -> None:
    """Have a started consumer pass each fetch of a partition to `change` before it is read.

    Several callbacks are called in the order in which they were added.
    """
    fetcher: Any = consumer._fetcher  # noqa: SLF001 (not offered otherwise)
    if not isinstance(fetcher._records, ReadableResults):  # noqa: SLF001 (where fetches wait)
        pass_unreadable(consumer)
    fetcher._records.changes.append(change)  # noqa: SLF001 (where fetches wait)


class ReadableResults(OrderedDict[TopicPartition, Any]):
    """The fetches of a consumer that wait to be read, by partition."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[Callable[[FetchResult], None]] = []
        self._failed: dict[TopicPartition, Exception] = {}
        self._warned: set[TopicPartition] = set()

    def __setitem__(self, partition: TopicPartition, result: Any) -> None:
        if isinstance(result, FetchResult):
            for change in self.changes:
                change(result)
            records = result._partition_records  # noqa: SLF001 (what it unpacks)
            result._partition_records = _Readable(records, partition, self)  # noqa: SLF001 (the same)
        super().__setitem__(partition, result)

    def __delitem__(self, partition: TopicPartition) -> None:
        failure = self._failed.pop(partition, None)
        if failure is None:
            super().__delitem__(partition)
        else:
            # Raised by the next call: this one returns what has been read of all partitions.
            self[partition] = FetchError(error=failure, backoff=_BACKOFF_SECONDS)

    def pop(self, partition: TopicPartition, *default: Any) -> Any:
        """Remove a fetch, and forget that it failed."""
        self._failed.pop(partition, None)
        return super().pop(partition, *default)

    def fail(self, partition: TopicPartition, failure: Exception) -> None:
        """Have the next call raise a fetch's error, once the fetch is removed."""
        self._failed[partition] = failure

    def passed(self, partition: TopicPartition, start: int, stop: int, failure: Exception) -> None:
        """Log once for each partition that its offsets `[start, stop)` cannot be read."""
        said = logging.DEBUG if partition in self._warned else logging.WARNING
        self._warned.add(partition)
        log.log(
            said,
            "topic %s[%d], offsets %d to %d: a batch that cannot be read counts as one message "
            "without content (%r); further ones are not logged",
            *(*partition, start, stop - 1, failure),
        )


class _Readable:
    """The records of a fetch, replacing aiokafka's own iterator over them."""

    def __init__(
        self, records: PartitionRecords, partition: TopicPartition, results: ReadableResults
    ) -> None:
        self._records: Any = records
        self._partition = partition
        self._results = results
        self._batches = _Batches(records)
        self._records._records = self._batches  # noqa: SLF001 (the same)
        self._unpacked = self._records._unpack_records()  # noqa: SLF001 (what it iterates over)

    @property
    def next_fetch_offset(self) -> int:
        """The offset after the records read so far."""
        return int(self._records.next_fetch_offset)

    def __iter__(self) -> "_Readable":
        return self

    def __next__(self) -> Any:
        while True:
            try:
                return next(self._unpacked)
            except StopIteration:
                raise
            except (MemoryError, UnsupportedCodecError) as failure:
                self._results.fail(self._partition, failure)
                raise StopIteration from failure
            except Exception as failure:  # parser and codecs have errors of their own
                batch = self._batches.current
                if batch is None:
                    self._results.fail(self._partition, failure)
                    raise StopIteration from failure
                if self._pass(batch.next_offset, failure):
                    return _empty(self._partition, batch)

    def _pass(self, stop: int, failure: Exception) -> bool:
        """Continue at the next batch; return whether part of this one has not been read."""
        start = self.next_fetch_offset
        self._unpacked = self._records._unpack_records()  # noqa: SLF001 (from the next batch on)
        if start >= stop:
            return False
        self._records.next_fetch_offset = stop
        self._results.passed(self._partition, start, stop, failure)
        return True


def _empty(partition: TopicPartition, batch: Any) -> "ConsumerRecord[None, None]":
    stamp, kind = getattr(batch, "max_timestamp", -1), getattr(batch, "timestamp_type", 0)
    last = batch.next_offset - 1
    return ConsumerRecord(*partition, last, stamp, kind, None, None, None, -1, -1, ())


class _Batches:
    """The batches of a fetch; `current` is the one being read, if its checksum is right."""

    def __init__(self, records: Any) -> None:
        self.current: Any = None
        self._batches = records._records  # noqa: SLF001 (has its batches only here)
        self._check = records._check_crcs  # noqa: SLF001 (as the consumer is configured)
        records._check_crcs = False  # noqa: SLF001 (checked here, once)

    def has_next(self) -> bool:
        return bool(self._batches.has_next())

    def next_batch(self) -> Any:
        self.current = None
        batch = self._batches.next_batch()
        if self._check and not batch.validate_crc():
            raise CorruptRecordException("invalid checksum")
        self.current = batch
        return batch


class WrappedBatch:
    """A batch of which only the reading of records is changed; the rest is delegated to it."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __getattr__(self, name: str) -> Any:
        """Return what the batch has."""
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        """Return the one record of a control batch."""
        return next(self._batch)
