"""Read what a consumer has fetched, replacing aiokafka's reader.

aiokafka decompresses whatever it gets, and makes an object of each record. If its parser cannot
read a batch, it raises an error at every fetch, and loses the records already parsed. Brokers
accept such batches, for example with a header's name that is not UTF-8. Here

- the unreadable part of a batch becomes one record without key and value, at the batch's last
  offset, so that a reader sees the same wherever in the batch it starts, and reading continues;
- a poll returns only as much as was decompressed within its budget; the rest waits, compressed;
- records may be taken as they are parsed: making aiokafka's object of each costs more than
  decompressing it;
- errors that say nothing about the batch itself (a wrong checksum, lack of memory) are raised by
  the next call, after everything before has been returned.

Everything else (checksums, aborted transactions, control batches, positions) is as in aiokafka.

Seen in aiokafka 0.14. `BoundedConsumer` installs it on itself when it starts.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final, cast

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, FetchError, FetchResult, PartitionRecords
from aiokafka.errors import CorruptRecordException
from aiokafka.protocol.fetch import FetchRequest

from ldpstream.agents.broker.unpacking import Unpacker

POLL_BYTES: Final = 16 << 20
_RECORD_BYTES: Final = 512
"""The cost of a record as an object, whatever it holds."""
_BACKOFF_SECONDS: Final = 0.5
# The length of a record batch, after its first offset; it counts what follows it.
_LENGTH: Final = slice(8, 12)

log = logging.getLogger(__name__)


class BoundedConsumer(AIOKafkaConsumer):
    """A consumer that reads its fetches as above, from its start."""

    def __init__(self, *topics: str, most_bytes: int, **options: Any) -> None:
        super().__init__(*topics, **options)  # type: ignore[no-untyped-call]  # (aiokafka has no types)
        self._most_bytes = most_bytes
        self.fetches: Fetches | None = None
        """What has been fetched, once it has started."""

    async def start(self) -> None:
        """Start the consumer and install the bounds."""
        await super().start()  # type: ignore[no-untyped-call]  # (aiokafka has no types)
        self.fetches = bound(self._client, self._fetcher, most_bytes=self._most_bytes)


def bound(client: Any, fetcher: Any, *, most_bytes: int) -> "Fetches":
    """Bound what a consumer reads of its fetches, as above: each batch to `most_bytes`.

    It must have fetched nothing yet. A poll returns at most `POLL_BYTES` and one batch.
    """
    fetches, fetched_records, send = Fetches(most_bytes), fetcher.fetched_records, client.send
    fetcher._records = fetches  # noqa: SLF001 (where fetches wait)

    async def send_and_keep(node_id: int, request: Any, **options: Any) -> Any:
        response = await send(node_id, request, **options)
        if isinstance(request, FetchRequest):
            fetches.keep(response)
        return response

    async def within_budget(*arguments: Any, **options: Any) -> Any:
        fetches.begin_poll()
        return await fetched_records(*arguments, **options)

    client.send, fetcher.fetched_records = send_and_keep, within_budget
    return fetches


def take_plain(consumer: AIOKafkaConsumer) -> AIOKafkaConsumer:
    """Make a started, bounded consumer return records as they are parsed, and return it.

    They do not say of which topic and partition they are.
    """
    assert isinstance(consumer, BoundedConsumer)
    assert consumer.fetches is not None
    consumer.fetches.plain = True
    return consumer


class Fetches(OrderedDict[TopicPartition, Any]):
    """A consumer's fetches that wait to be read, by partition.

    `plain` says that records are taken as they are parsed. `data` are the bytes of the last answer
    by partition, since aiokafka's parser does not show those of a batch.
    """

    def __init__(self, most_bytes: int) -> None:
        super().__init__()
        self.unpacker = Unpacker(most_bytes)
        self.plain = False
        self.data: dict[TopicPartition, bytes] = {}
        self._stopped: list[TopicPartition] = []
        self._warned: set[TopicPartition] = set()

    def __setitem__(self, partition: TopicPartition, result: Any) -> None:
        if isinstance(result, FetchResult):
            # An attribute of the object: the fetcher would not know a subclass of it.
            fetch: Any = result
            records = _Records(fetch._partition_records, self, self.data.pop(partition))  # noqa: SLF001 (what it reads)
            fetch._partition_records = records  # noqa: SLF001 (the same)
            fetch.getall = partial(self._get_all, partition, fetch, records)
        super().__setitem__(partition, result)

    def keep(self, response: Any) -> None:
        """Keep the bytes of an answer, which aiokafka parses before any other is returned to it."""
        self.data = {
            TopicPartition(topic, fields[0]): fields[-1]
            for topic, partitions in response.topics
            for fields in partitions
            if fields[-1]
        }

    def begin_poll(self) -> None:
        """Start a new budget; partitions that were read before come after the others."""
        for partition in self._stopped:
            if partition in self:
                self.move_to_end(partition)
        self._stopped.clear()
        self.unpacker.spent_bytes = 0

    def _get_all(
        self,
        partition: TopicPartition,
        result: Any,
        records: "_Records",
        max_records: int | None = None,
    ) -> list[Any]:
        """Like `FetchResult.getall`, but within the budget; the rest comes with the next poll."""
        unpacker, taken_records = self.unpacker, list[Any]()
        if not result.check_assignment(partition) or not result.has_more():
            return []
        if unpacker.spent_bytes >= POLL_BYTES:
            return []
        finished = False
        try:
            for record in records:
                taken_records.append(record)
                unpacker.spent_bytes += _RECORD_BYTES
                if len(taken_records) == max_records or unpacker.spent_bytes >= POLL_BYTES:
                    self._stopped.append(partition)
                    break
            else:
                finished = True
        except (CorruptRecordException, MemoryError) as failure:
            # Raised by the next call, since this one returns what was read from all partitions.
            self[partition] = FetchError(error=failure, backoff=_BACKOFF_SECONDS)
        result._update_position()  # noqa: SLF001 (as it does itself)
        if finished:
            result._partition_records = None  # noqa: SLF001 (as it does itself)
        return taken_records

    def passed(self, partition: TopicPartition, start: int, stop: int, failure: Exception) -> None:
        """Log once for each partition that its offsets `[start, stop)` cannot be read."""
        level = logging.DEBUG if partition in self._warned else logging.WARNING
        self._warned.add(partition)
        log.log(
            level,
            "topic %s[%d], offsets %d to %d: a batch that cannot be read counts as one message "
            "without content (%r); further ones are not logged",
            *(*partition, start, stop - 1, failure),
        )


class _Records(PartitionRecords):
    """The records of a fetch of one partition, replacing aiokafka's own iterator over them."""

    def __init__(self, records: PartitionRecords, fetches: Fetches, data: bytes) -> None:
        vars(self).update(vars(records))
        self._fetches = fetches
        self._data = memoryview(data)
        self._records_iterator: Iterator[Any] = self._unpack_records()

    def __iter__(self) -> Iterator[Any]:
        return self._records_iterator

    def _unpack_records(self) -> Iterator[Any]:
        """Yield all records; `next_fetch_offset` is the offset after the last one.

        Raises:
            CorruptRecordException: for a wrong checksum.
            MemoryError: for lack of memory.
        """
        data, at = self._data, 0
        plain, made = self._fetches.plain, cast("Any", self._consumer_record)
        while self._records.has_next():
            batch, start = self._records.next_batch(), at
            at += _LENGTH.stop + int.from_bytes(data[at:][_LENGTH])
            if self._check_crcs and not batch.validate_crc():
                raise CorruptRecordException("invalid checksum")
            try:
                for record in self._opened(batch, data[start:at]):
                    # A batch is always fetched whole, even if the fetch starts inside it.
                    if record.offset >= self.next_fetch_offset:
                        self.next_fetch_offset = record.offset + 1
                        yield record if plain else made(self._tp, record)
            except Exception as failure:  # parser and codecs share no class of errors
                if isinstance(failure, MemoryError):
                    raise
                first, self.next_fetch_offset = self.next_fetch_offset, batch.next_offset
                if first < batch.next_offset:
                    self._fetches.passed(self._tp, first, batch.next_offset, failure)
                    yield _empty(self._tp, batch)
            self.next_fetch_offset = batch.next_offset

    def _is_left_out(self, batch: Any) -> bool:
        """Return whether a batch is a marker, or part of an aborted transaction."""
        producer = batch.producer_id
        if self._isolation_level == READ_COMMITTED and producer is not None:
            self._consume_aborted_up_to(batch.base_offset)  # type: ignore[no-untyped-call]  # (aiokafka has no types)
            if batch.is_control_batch and self._contains_abort_marker(batch):  # type: ignore[no-untyped-call]  # (the same)
                self._aborted_producers.discard(producer)
            if batch.is_transactional and producer in self._aborted_producers:
                return True
        return bool(batch.is_control_batch)

    def _opened(self, batch: Any, data: memoryview) -> Iterable[Any]:
        """Return the records of a batch."""
        records: Iterable[Any] = (
            () if self._is_left_out(batch) else self._fetches.unpacker.unpack(batch, data)
        )
        return records


def _empty(partition: TopicPartition, batch: Any) -> "ConsumerRecord[None, None]":
    stamp, kind = getattr(batch, "max_timestamp", -1), getattr(batch, "timestamp_type", 0)
    last = batch.next_offset - 1
    return ConsumerRecord(*partition, last, stamp, kind, None, None, None, -1, -1, ())
