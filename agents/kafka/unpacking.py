"""Decompress the record batches of a topic that strangers write to, within bounds.

A batch of some kilobytes may decompress to gigabytes, and aiokafka decompresses whatever it is
given. So the fetches of a consumer are wrapped while they wait to be read:

- A batch that does not decompress within its bound is unreadable, as in
  `ldpstream.agents.kafka.unreadable`: it counts as one message without content, and reading
  continues after it.
- A poll returns only as much as was decompressed within its budget; the rest waits, compressed.

All readers of a topic must decide alike, so the bound depends only on the configuration.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import cramjam
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.consumer import fetcher as fetcher_module
from aiokafka.consumer.fetcher import FetchResult
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.memory_records import MemoryRecords

from ldpstream.agents.kafka.fetch_sessions import fetch_news
from ldpstream.agents.kafka.unreadable import WrappedBatch, on_fetch

BATCH_BYTES: Final = 4 << 20
"""The least bound on a decompressed batch: clients make batches of at most 1 MiB by default."""
POLL_BYTES: Final = 16 << 20
_RECORD_BYTES: Final = 512
"""The cost of a record as an object, whatever it holds."""
_VALUE_BYTES: Final = 64
"""The cost of its value alone."""
_LEAST_BYTES: Final = 16
"""A batch with more than one record per this many bytes of its bound holds no reports."""

# Of a record batch: offsets of its fields in bytes,
# https://kafka.apache.org/documentation/#recordbatch
_HEAD_BYTES: Final = 61
_MAGIC: Final = 16
_NEWEST: Final = 2
_OLD_ATTRIBUTES: Final = 17
_ATTRIBUTES: Final = slice(21, 23)
_COUNT: Final = slice(57, 61)
_CODEC: Final = 7
_XERIAL: Final = bytes.fromhex("82534e41505059000000000100000001")


def batch_bytes(options: Mapping[str, Any]) -> int:
    """Return the bound on a decompressed batch, given the keys of `[kafka]`.

    If clients may send or fetch larger pieces, the bound grows with them.
    """
    larger = (options.get(name) for name in ("max_request_size", "max_partition_fetch_bytes"))
    return max(BATCH_BYTES, *(int(size) for size in larger if size is not None), 0)


def bound(consumer: AIOKafkaConsumer, *, most_bytes: int) -> None:
    """Have a started consumer decompress each batch within `most_bytes`.

    A poll returns at most `POLL_BYTES` and one batch.
    """
    fetcher: Any = consumer._fetcher  # noqa: SLF001 (not offered otherwise)
    unpacker = _Unpacker(most_bytes)
    on_fetch(consumer, partial(_bound_fetch, unpacker))
    fetched_records = fetcher.fetched_records

    async def within_budget(*arguments: Any, **options: Any) -> Any:
        for partition in unpacker.poll():
            # It had its turn: waiting data of other partitions comes first.
            if partition in fetcher._records:  # noqa: SLF001 (where fetches wait)
                fetcher._records.move_to_end(partition)  # noqa: SLF001 (where fetches wait)
        return await fetched_records(*arguments, **options)

    fetcher.fetched_records = within_budget


class BoundedConsumer(AIOKafkaConsumer):
    """A consumer that decompresses within bounds, and fetches in sessions, from its start."""

    def __init__(self, *topics: str, most_bytes: int, **options: Any) -> None:
        super().__init__(*topics, **options)  # type: ignore[no-untyped-call]  # (aiokafka has no types)
        self._most_bytes = most_bytes

    async def start(self) -> None:
        """Start the consumer and install the bounds."""
        await super().start()  # type: ignore[no-untyped-call]  # (aiokafka has no types)
        fetch_news(self)
        bound(self, most_bytes=self._most_bytes)


class UnreadableError(ValueError):
    """A batch that is not decompressed; the message says why."""


class _Unpacker:
    """Decompresses the batches of one consumer; `spent` is their cost since the last poll."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.spent = 0
        self.stopped: list[TopicPartition] = []
        # Every batch is decompressed into this buffer: decompression stops when it is full.
        self._space = bytearray(0)

    def poll(self) -> list[TopicPartition]:
        """Start a new budget; return the partitions that have something left."""
        stopped, self.stopped, self.spent = self.stopped, [], 0
        return stopped

    def unpack(self, data: memoryview) -> bytes:
        """Return a batch without its compression.

        Raises:
            UnreadableError: if it does not decompress within the bound, or at all.
        """
        attributes = int.from_bytes(data[_ATTRIBUTES])
        self._space = self._space or bytearray(self.most_bytes)
        try:
            length = _unpack(attributes & _CODEC, data[_HEAD_BYTES:], self._space)
        except cramjam.DecompressionError as error:
            # A failure may have cost as much as the largest batch.
            self.spent += self.most_bytes
            raise UnreadableError(
                f"a batch that does not unpack to at most {self.most_bytes} bytes: {error}"
            ) from None
        self.spent += length
        head = bytearray(data[:_HEAD_BYTES])
        head[_ATTRIBUTES] = (attributes & ~_CODEC).to_bytes(2)
        return bytes(head) + memoryview(self._space)[:length]


def _unpack(codec: int, packed: memoryview, space: bytearray) -> int:
    """Decompress into `space` and return the length.

    Raises:
        cramjam.DecompressionError: if `space` is too small, or the data are corrupt.
    """
    if codec == DefaultRecordBatch.CODEC_GZIP:
        return int(cramjam.gzip.decompress_into(packed, space))
    if codec == DefaultRecordBatch.CODEC_LZ4:
        return int(cramjam.lz4.decompress_into(packed, space))
    if codec == DefaultRecordBatch.CODEC_ZSTD:
        return int(cramjam.zstd.decompress_into(packed, space))
    if codec != DefaultRecordBatch.CODEC_SNAPPY:
        raise cramjam.DecompressionError(f"codec {codec}")
    if packed[: len(_XERIAL)] != _XERIAL:
        return int(cramjam.snappy.decompress_raw_into(packed, space))
    return _unpack_blocks(packed[len(_XERIAL) :], memoryview(space))


def _unpack_blocks(packed: memoryview, space: memoryview) -> int:
    """Decompress Snappy's blocks as Java writes them: each after its length, four bytes."""
    at = length = 0
    while at < len(packed):
        size = int.from_bytes(packed[at : at + 4])
        block = packed[at + 4 : at + 4 + size]
        if not 0 < size == len(block):
            raise cramjam.DecompressionError("snappy: a block of no length")
        length += int(cramjam.snappy.decompress_raw_into(block, space[length:]))
        at += 4 + size
    return length


class _Kept:
    """The batches of a fetch, as in aiokafka, and their bytes, which aiokafka does not expose."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._records = MemoryRecords(data)
        self.has_next = self._records.has_next
        self.next_batch = self._records.next_batch
        self.size_in_bytes = self._records.size_in_bytes


# Replaced for all consumers of the process; nothing else changes for them.
vars(fetcher_module)["MemoryRecords"] = _Kept


def _bound_fetch(unpacker: _Unpacker, result: FetchResult) -> None:
    bounded: Any = result
    records = bounded._partition_records  # noqa: SLF001 (what it unpacks)
    records._records = _Batches(records._records, unpacker)  # noqa: SLF001 (its batches)
    bounded.getall = partial(_get_all, unpacker, result)


def _get_all(unpacker: _Unpacker, result: Any, max_records: int | None = None) -> list[Any]:
    """Like `FetchResult.getall`, but within the budget; the rest comes with the next poll."""
    partition, found = result._topic_partition, []  # noqa: SLF001 (as it does itself)
    if not result.check_assignment(partition) or not result.has_more():
        return []
    if unpacker.spent < POLL_BYTES:
        for record in result._partition_records:  # noqa: SLF001 (as it does itself)
            found.append(record)
            unpacker.spent += _RECORD_BYTES
            if len(found) == max_records or unpacker.spent >= POLL_BYTES:
                break
        else:
            result._update_position()  # noqa: SLF001 (as it does itself)
            result._partition_records = None  # noqa: SLF001 (as it does itself)
            return found
        result._update_position()  # noqa: SLF001 (as it does itself)
    if found:
        unpacker.stopped.append(partition)
    return found


class _Batches:
    """The batches of a fetch, each decompressed when its records are read."""

    def __init__(self, batches: _Kept, unpacker: _Unpacker) -> None:
        self._batches = batches
        self._unpacker = unpacker
        self._data = memoryview(batches.data)
        self._at = 0

    def has_next(self) -> bool:
        return bool(self._batches.has_next())

    def next_batch(self) -> Any:
        length = int.from_bytes(self._data[self._at + 8 : self._at + 12])
        data = self._data[self._at : self._at + 12 + length]
        self._at += 12 + length
        return _Batch(self._batches.next_batch(), data, self._unpacker)


class _Batch(WrappedBatch):
    """A batch whose records are read within bounds."""

    def __init__(self, batch: Any, data: memoryview, unpacker: _Unpacker) -> None:
        super().__init__(batch)
        self._data = data
        self._unpacker = unpacker

    def __iter__(self) -> Iterator[Any]:
        return iter(self._opened())

    def _opened(self) -> Any:
        """Return the batch without its compression.

        Raises:
            UnreadableError: if it is not to be read.
        """
        if self._data[_MAGIC] < _NEWEST:
            if self._data[_OLD_ATTRIBUTES] & _CODEC:
                raise UnreadableError("a compressed message of a format before Kafka 0.11")
            return self._batch
        count = int.from_bytes(self._data[_COUNT])
        if count * _LEAST_BYTES > self._unpacker.most_bytes:
            raise UnreadableError(f"a batch of {count} messages")
        self._unpacker.spent += count * _VALUE_BYTES
        if not self._batch.compression_type:
            return self._batch
        return DefaultRecordBatch(self._unpacker.unpack(self._data))
