"""The bytes of cells' values, all little-endian; the first is the version of the format.

Counts use the smallest signed integer that holds them, and only the non-zero entries are stored
where that is shorter. A chunk's value starts with its sum, and a pane's totals contain the sum over
all its chunks: if they disagree, the state is torn.

`docs/internals/state-topic.md` has the rules; tests/vectors/state.json pins the bytes. Values that
only a collection with `minimum` has are in `ldpstream.agents.state.disclosure_groups`.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.state.records import RecordError

VERSION: Final = 1
VERSION_BYTE: Final = bytes((VERSION,))
_TYPES: Final = tuple(np.dtype(code) for code in ("<i1", "<i2", "<i4", "<i8"))
_LETTERS: Final = "bhiq"
_LIMITS: Final = (1 << 7, 1 << 15, 1 << 31, 1 << 63)
_SPARSE: Final = 0x10
_CHUNK: Final = struct.Struct("<BBIq")
_TOTALS: Final = struct.Struct("<Bqqq")
_INDEX: Final = np.dtype("<u2")
_LATE: Final = struct.Struct("<Bq")


class Totals(NamedTuple):
    """A pane's totals: `n` counted reports, `late` ones, and the `sum` of its statistic."""

    n: int = 0
    late: int = 0
    sum: int = 0


def encode_chunk(counts: NDArray[np.int64]) -> bytes:
    """Return the value of a chunk, int64 of shape `(length,)` with length up to 65,536."""
    low, high = int(counts.min()), int(counts.max())
    code = next(i for i, limit in enumerate(_LIMITS) if -limit <= low and high < limit)
    size = _TYPES[code].itemsize
    used = np.count_nonzero(counts)
    if used * (size + _INDEX.itemsize) < len(counts) * size:
        at = np.flatnonzero(counts)
        body = at.astype(_INDEX).tobytes() + counts[at].astype(_TYPES[code]).tobytes()
        code |= _SPARSE
    else:
        body = counts.astype(_TYPES[code]).tobytes()
    return _CHUNK.pack(VERSION, code, len(counts), int(counts.sum())) + body


def encode_few(counts: Mapping[int, int], length: int) -> bytes:
    """Return what `encode_chunk` does, for a chunk of this length given by its non-zero entries."""
    used = sorted((at, count) for at, count in counts.items() if count)
    places, numbers = zip(*used, strict=True) if used else ((), ())
    low, high = min(numbers, default=0), max(numbers, default=0)
    code = next(i for i, limit in enumerate(_LIMITS) if -limit <= low and high < limit)
    size = _TYPES[code].itemsize
    if len(used) * (size + _INDEX.itemsize) >= length * size:
        array = np.zeros(length, dtype=np.int64)
        array[list(places)] = numbers
        return encode_chunk(array)
    body = struct.pack(f"<{len(used)}H{len(used)}{_LETTERS[code]}", *places, *numbers)
    return _CHUNK.pack(VERSION, code | _SPARSE, length, sum(numbers)) + body


def chunk_sum(data: bytes) -> int:
    """Return the sum of a chunk without decoding it."""
    return unpack(_CHUNK, data, "chunk of counts", whole=False)[2]


def add_chunks(
    statistic: NDArray[np.int64], chunks: Iterable[tuple[int, bytes]], length: int
) -> None:
    """Add chunks of a statistic to it, int64 `(size,)`, in place: `(number, value)` each.

    All but the last chunk of a statistic have this length. After an error some have been added.
    """
    for number, data in chunks:
        target = statistic[number * length : (number + 1) * length]
        code, stated, total = unpack(_CHUNK, data, "chunk of counts", whole=False)
        kind = code & ~_SPARSE
        if stated != len(target) or kind >= len(_TYPES):
            raise RecordError(f"changelog chunk has {stated} counts, expected {len(target)}")
        try:
            if code & _SPARSE:
                used = (len(data) - _CHUNK.size) // (_INDEX.itemsize + _TYPES[kind].itemsize)
                at = np.frombuffer(data, _INDEX, used, _CHUNK.size)
                counts = np.zeros(len(target), dtype=np.int64)
                counts[at] = np.frombuffer(
                    data, _TYPES[kind], used, _CHUNK.size + used * _INDEX.itemsize
                )
            else:
                counts = np.frombuffer(data, _TYPES[kind], stated, _CHUNK.size).astype(np.int64)
        except (ValueError, IndexError) as error:
            raise RecordError("changelog chunk of counts has the wrong length") from error
        if int(counts.sum()) != total:
            raise RecordError("changelog chunk of counts does not add up to its own sum")
        target += counts


def decode_chunk(data: bytes, length: int) -> NDArray[np.int64]:
    """Return a chunk of this length as a writable int64 array."""
    counts = np.zeros(length, dtype=np.int64)
    add_chunks(counts, [(0, data)], length)
    return counts


def sum_chunks(values: Sequence[bytes], length: int) -> bytes:
    """Return the value of the sum of chunks of this length, given by their values."""
    if len(values) == 1:
        return values[0]
    total = np.zeros(length, dtype=np.int64)
    add_chunks(total, [(0, value) for value in values], length)
    return encode_chunk(total)


def encode_totals(totals: Totals) -> bytes:
    """Return the value of a pane's totals."""
    return _TOTALS.pack(VERSION, *totals)


def decode_totals(data: bytes) -> Totals:
    """Return a pane's totals."""
    return Totals(*unpack(_TOTALS, data, "pane total"))


def encode_late(late: int) -> bytes:
    """Return the value that says how many reports of a pane came late."""
    return _LATE.pack(VERSION, late)


def decode_late(data: bytes) -> int:
    """Return how many reports of a pane came late."""
    return unpack(_LATE, data, "late count")[0]


def encode_final(content: bytes) -> bytes:
    """Return the value of a final."""
    return VERSION_BYTE + content


def decode_final(data: bytes) -> bytes:
    """Return a final's content."""
    if data[:1] != VERSION_BYTE:
        raise other_version(data, "final")
    return data[1:]


def unpack(layout: struct.Struct, data: bytes, what: str, *, whole: bool = True) -> tuple[int, ...]:
    """Return the numbers of a value's layout, without the format version."""
    if data[:1] != VERSION_BYTE:
        raise other_version(data, what)
    if len(data) < layout.size or (whole and len(data) > layout.size):
        raise RecordError(f"changelog {what} has the wrong length")
    return layout.unpack_from(data)[1:]


def other_version(data: bytes, what: str) -> RecordError:
    """Return the error for a record that begins with another format version than the one read."""
    return RecordError(
        f"changelog {what} has format version {data[0] if data else 'none'}: this release reads "
        f"version {VERSION}; run the release that wrote it, or a later one"
    )
