"""Decompress the record batches of a topic that untrusted clients write to, within a bound.

A batch of some kilobytes may decompress to gigabytes, and aiokafka decompresses whatever it gets.
Here, a batch that exceeds the bound when decompressed is unreadable. All readers of a topic must
decide alike, so the bound depends only on the configuration.
"""

from collections.abc import Mapping
from typing import Any, Final

import cramjam
from aiokafka.record.default_records import DefaultRecordBatch

BATCH_BYTES: Final = 4 << 20
"""The least bound on a decompressed batch: clients make batches of at most 1 MiB by default."""
_VALUE_BYTES: Final = 64
"""The cost of a record's value as an object, whatever it holds."""
_LEAST_BYTES: Final = 16
"""A batch with more than one record per this many bytes of its bound holds no reports."""

# Byte offsets of a record batch's fields,
# https://kafka.apache.org/documentation/#recordbatch
_HEAD_BYTES: Final = 61
_OLD_ATTRIBUTES: Final = 17
_ATTRIBUTES: Final = 22
_COUNT: Final = slice(57, 61)
_XERIAL: Final = bytes.fromhex("82534e41505059000000000100000001")


class UnreadableError(ValueError):
    """A batch that is not decompressed; the message says why."""


def batch_bytes(options: Mapping[str, Any]) -> int:
    """Return the bound on a decompressed batch, given the keys of `[kafka]`.

    If clients may send or fetch larger pieces, the bound grows with them.
    """
    larger = (options.get(name) for name in ("max_request_size", "max_partition_fetch_bytes"))
    return max(BATCH_BYTES, *(int(size) for size in larger if size is not None), 0)


class Unpacker:
    """Decompresses the batches of one consumer; `spent_bytes` is what they have cost so far."""

    def __init__(self, most_bytes: int) -> None:
        self.spent_bytes = 0
        self._most_bytes = most_bytes
        # Every batch is decompressed into this buffer: decompression stops when it is full.
        self._space = bytearray(0)

    def unpack(self, batch: Any, data: memoryview) -> Any:
        """Return a batch decompressed, given the batch and its bytes."""
        if not isinstance(batch, DefaultRecordBatch):
            if data[_OLD_ATTRIBUTES] & DefaultRecordBatch.CODEC_MASK:
                raise UnreadableError("a compressed message of a format before Kafka 0.11")
            return batch
        count = int.from_bytes(data[_COUNT])
        if count * _LEAST_BYTES > self._most_bytes:
            raise UnreadableError(f"a batch of {count} messages")
        self.spent_bytes += count * _VALUE_BYTES
        if not batch.compression_type:
            return batch
        self._space = self._space or bytearray(self._most_bytes)
        try:
            length = _unpack(batch.compression_type, data[_HEAD_BYTES:], self._space)
        except cramjam.DecompressionError as error:
            # A failure may have cost as much as the largest batch.
            self.spent_bytes += self._most_bytes
            raise UnreadableError(
                f"a batch that does not unpack to at most {self._most_bytes} bytes: {error}"
            ) from None
        self.spent_bytes += length
        head = bytearray(data[:_HEAD_BYTES])
        head[_ATTRIBUTES] &= ~DefaultRecordBatch.CODEC_MASK
        return DefaultRecordBatch(bytes(head) + memoryview(self._space)[:length])


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
