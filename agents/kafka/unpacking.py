"""Unpacking the record batches of a topic that strangers write to, within bounds.

A batch of some kilobytes may unpack to gigabytes, and aiokafka unpacks whatever it is given. So the
fetches of a consumer are wrapped where they wait to be read. A batch that does not unpack within
its bound cannot be read, as `ldpstream.agents.kafka.unreadable` has it: it is one message without
content, and reading goes on after it. A consumer returns at a time only so much as was unpacked
within its budget; what is left waits, packed.

All readers of a topic have to decide alike, so the bound follows from the configuration alone.
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

from ldpstream.agents.kafka.unreadable import on_fetch, pass_unreadable

BATCH_BYTES: Final = 4 << 20
"""What a batch may unpack to at least: clients make batches of 1 MiB at most by default."""
POLL_BYTES: Final = 16 << 20
_RECORD_BYTES: Final = 512
"""What a record costs as an object, whatever it holds."""
_VALUE_BYTES: Final = 64
"""What its value costs alone."""
_LEAST_BYTES: Final = 16
"""With more records than one in so many bytes of its bound a batch holds no reports."""

# Of a record batch: offsets of its fields in bytes, https://kafka.apache.org/documentation/#recordbatch
_HEAD_BYTES: Final = 61
_MAGIC: Final = 16
_NEWEST: Final = 2
_OLD_ATTRIBUTES: Final = 17
_ATTRIBUTES: Final = slice(21, 23)
_COUNT: Final = slice(57, 61)
_CODEC: Final = 7
_XERIAL: Final = bytes.fromhex("82534e41505059000000000100000001")


def batch_bytes(options: Mapping[str, Any]) -> int:
    """Return what a batch may unpack to, given the keys of `[kafka]`.

    Whoever lets clients send or fetch more in one piece lets batches unpack to as much.
    """
    larger = (options.get(name) for name in ("max_request_size", "max_partition_fetch_bytes"))
    return max(BATCH_BYTES, *(int(size) for size in larger if size is not None), 0)


def bound(consumer: AIOKafkaConsumer, *, most_bytes: int) -> None:
    """Let a started consumer unpack batches within bounds: of each `most_bytes`.

    Together, what it returns at a time is at most `POLL_BYTES` and one batch more. Only the first
    call counts.
    """
    fetcher: Any = consumer._fetcher  # noqa: SLF001 (not offered otherwise)
    if "fetched_records" in vars(fetcher):
        return
    unpacker = _Unpacker(most_bytes)
    on_fetch(consumer, partial(_bound_fetch, unpacker))
    fetched_records = fetcher.fetched_records

    async def within_budget(*arguments: Any, **options: Any) -> Any:
        for partition in unpacker.poll():
            # It had its turn: what waits of others comes first.
            if partition in fetcher._records:  # noqa: SLF001 (where fetches wait)
                fetcher._records.move_to_end(partition)  # noqa: SLF001 (where fetches wait)
        return await fetched_records(*arguments, **options)

    fetcher.fetched_records = within_budget


class BoundedConsumer(AIOKafkaConsumer):
    """A consumer that unpacks within bounds as soon as it has started."""

    def __init__(self, *topics: str, most_bytes: int, **options: Any) -> None:
        super().__init__(*topics, **options)  # type: ignore[no-untyped-call]  # (aiokafka has no types)
        self._most_bytes = most_bytes

    async def start(self) -> None:
        """Start as the consumer that it is."""
        await super().start()  # type: ignore[no-untyped-call]  # (aiokafka has no types)
        pass_unreadable(self)
        bound(self, most_bytes=self._most_bytes)


class UnreadableError(ValueError):
    """A batch that is not unpacked; the message says why."""


class _Unpacker:
    """Unpacks the batches of one consumer; `spent` is what they have cost since the last poll."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.spent = 0
        self.stopped: list[TopicPartition] = []
        # Every batch is unpacked into this one: what does not fit in is not unpacked any further.
        self._space = bytearray(0)

    def poll(self) -> list[TopicPartition]:
        """Begin with a new budget; returns the partitions that have something left."""
        stopped, self.stopped, self.spent = self.stopped, [], 0
        return stopped

    def unpack(self, data: memoryview) -> bytes:
        """Return a batch without its compression.

        Raises:
            UnreadableError: if it does not unpack within the bound, or not at all.
        """
        attributes = int.from_bytes(data[_ATTRIBUTES])
        self._space = self._space or bytearray(self.most_bytes)
        try:
            length = _unpack(attributes & _CODEC, data[_HEAD_BYTES:], self._space)
        except cramjam.DecompressionError as error:
            # It may have been all the work that a batch can be.
            self.spent += self.most_bytes
            raise UnreadableError(
                f"a batch that does not unpack to at most {self.most_bytes} bytes: {error}"
            ) from None
        self.spent += length
        head = bytearray(data[:_HEAD_BYTES])
        head[_ATTRIBUTES] = (attributes & ~_CODEC).to_bytes(2)
        return bytes(head) + memoryview(self._space)[:length]


def _unpack(codec: int, packed: memoryview, space: bytearray) -> int:
    """Unpack into `space` and return the length.

    Raises:
        cramjam.DecompressionError: if there is too little of it, or the data are not sound.
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
    """Unpack Snappy's blocks as Java writes them: each after its length, four bytes."""
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
    """The batches of a fetch, as aiokafka has them, and their bytes, which it does not show."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._records = MemoryRecords(data)
        self.has_next = self._records.has_next
        self.next_batch = self._records.next_batch
        self.size_in_bytes = self._records.size_in_bytes


# Of all consumers of the process, for which it changes nothing.
vars(fetcher_module)["MemoryRecords"] = _Kept


def _bound_fetch(unpacker: _Unpacker, result: FetchResult) -> None:
    bounded: Any = result
    records = bounded._partition_records  # noqa: SLF001 (what it unpacks)
    records._records = _Batches(records._records, unpacker)  # noqa: SLF001 (its batches)
    bounded.getall = partial(_get_all, unpacker, result)


def _get_all(unpacker: _Unpacker, result: Any, max_records: int | None = None) -> list[Any]:
    """Do what `FetchResult.getall` does, within the budget; what is left comes the next time."""
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
    """The batches of a fetch, each unpacked when its records are asked for."""

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


class _Batch:
    """A batch whose records are read within bounds; all else is the batch's own."""

    def __init__(self, batch: Any, data: memoryview, unpacker: _Unpacker) -> None:
        self._batch = batch
        self._data = data
        self._unpacker = unpacker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        # The one record of a control batch.
        return next(self._batch)

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
