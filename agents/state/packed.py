"""Encode and decode packed messages: many messages of a source partition, byte for byte, in one.

Little-endian: `u8 version = 0x81`, `u8 flags`, `u16 source partition`, `u32 n`, the number of
messages, 1 to 2^20, the source topic's id (16 bytes, zeros if the broker has none), `i64 after`,
`i64 next`, `i64 end`, `u32 first`, `u32 length`; then, each only where a flag says so:

- not `CONSECUTIVE`: n x u32, the offsets less `after`, ascending. Else `first` is the least one.
- not `UNIFORM`: n x i32, the lengths, -1 for a message without a value. Else `length` is that of
  all. A field without a use is 0.
- `DATED`: `i64`, the earliest arrival, epoch ms from 1970 to 9999, and n x u32, the arrivals less
  that one, `2^32 - 1` also for later ones. `APPENDED`, only with it: the broker set these times.

The messages follow, one after the other, to the end.

The message covers the source's offsets `[after, next)` in full: an offset in this range that it
does not contain does not exist. A reader therefore knows which messages it has already seen and
what is missing, even if packers crash or overlap (docs/pack.md).
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.base.times import LATEST_MS

VERSION: Final = 0x81
"""Differs from every version of a frame, so that the two cannot be confused."""
CONSECUTIVE: Final = 1
UNIFORM: Final = 2
DATED: Final = 4
APPENDED: Final = 8
_FLAGS: Final = CONSECUTIVE | UNIFORM | DATED | APPENDED
HEAD: Final = struct.Struct("<BBHI16sqqqII")
REASONS: Final = ("undecodable", "topic", "partition", "offsets")
"""Why a packed message is refused, in the order of the checks."""

_OFFSET: Final = np.dtype("<u4")
_LENGTH: Final = np.dtype("<i4")
_SINCE: Final = struct.Struct("<q")
_LATER: Final = np.dtype("<u4")
_MOST_LATER: Final = 0xFFFFFFFF
MAX_SPAN: Final = 0xFFFFFFFF
MAX_MESSAGES: Final = 1 << 20
"""Bounds the arrays that a reader allocates: any number of empty messages would fit."""
Record = tuple[int, bytes | None]


class PackedError(ValueError):
    """A packed message that cannot be used; `reason` is one of REASONS."""

    def __init__(self, reason: str, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason


@dataclass(frozen=True, eq=False)
class PackedRecords(Sequence[Record]):
    """N messages as `(offset, value)`, offsets ascending; the tuples are made on access only.

    - `offsets` int64 `(N,)`; `lengths` int64 `(N,)`, -1 for a message without a value; `data`
      uint8, all values concatenated. `length` is the common length, None if lengths differ.
    - `arrived` int64 `(N,)`: when each reached the broker, epoch ms, as far as the packer knew and
      never later than that; None if not stated. `appended`: the broker itself set these times.
    """

    offsets: Integers
    lengths: Integers
    data: NDArray[np.uint8]
    length: int | None
    arrived: Integers | None = None
    appended: bool = False

    @cached_property
    def _ends(self) -> Integers:
        return np.cumsum(np.maximum(self.lengths, 0))

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.offsets)

    @overload
    def __getitem__(self, place: int) -> Record: ...

    @overload
    def __getitem__(self, place: slice) -> "PackedRecords": ...

    def __getitem__(self, place: int | slice) -> "Record | PackedRecords":
        """Return a message, or the messages of a slice without a step, which share the bytes."""
        if isinstance(place, slice):
            return self._part(*place.indices(len(self)))
        length, end = int(self.lengths[place]), int(self._ends[place])
        value = None if length < 0 else self.data[end - length : end].tobytes()
        return int(self.offsets[place]), value

    def _part(self, start: int, stop: int, step: int) -> "PackedRecords":
        if step != 1:
            raise ValueError("expected a slice without a step")
        stop = max(start, stop)
        before = int(self._ends[start - 1]) if start else 0
        end = int(self._ends[stop - 1]) if stop else 0
        return PackedRecords(
            self.offsets[start:stop],
            self.lengths[start:stop],
            self.data[before:end],
            self.length,
            None if self.arrived is None else self.arrived[start:stop],
            self.appended,
        )

    def since(self, offset: int) -> "PackedRecords":
        """Return the messages at this offset and above."""
        start = int(np.searchsorted(self.offsets, offset))
        return self[start:] if start else self

    def by_length(self) -> Iterator[tuple[int, Integers]]:
        """Yield each length that occurs, with the places of its messages."""
        if self.length is not None:
            yield self.length, np.arange(len(self), dtype=np.int64)
            return
        different, which = np.unique(self.lengths, return_inverse=True)
        order = np.argsort(which, kind="stable")
        ends = np.cumsum(np.bincount(which, minlength=len(different)))
        yield from zip(different.tolist(), np.split(order, ends[:-1]), strict=True)

    def matrix(self, length: int, places: Integers) -> NDArray[np.uint8]:
        """Return messages of one length, above 0, as rows: uint8 `(len(places), length)`."""
        if self.length is not None and len(places) == len(self):
            return self.data.reshape(len(self), length)
        starts = self._ends[places] - length
        rows: NDArray[np.uint8] = self.data[starts[:, None] + np.arange(length)]
        return rows


@dataclass(frozen=True, eq=False)
class Packed:
    """A decoded message, which covers `[after, next)` of a source partition in full.

    `end` is the end of the source when the packer last fetched; it is for display only.
    """

    after: int
    next: int
    end: int
    records: PackedRecords


def encode_packed(packed: Packed, *, partition: int, topic_id: bytes) -> bytes:
    """Return the bytes of a message.

    Raises:
        ValueError: for no records or more than 2^20, offsets outside `[after, next)`, or a span of
            2^32 offsets or more.
    """
    records = packed.records
    n = len(records)
    if not 0 < n <= MAX_MESSAGES or not _ascending(records.offsets, packed.after, packed.next):
        raise ValueError("expected 1 to 2^20 records, in order and in [after, next)")
    relative = records.offsets - packed.after
    if relative[-1] > MAX_SPAN:
        raise ValueError("expected a span below 2^32 offsets")
    consecutive = int(relative[-1] - relative[0]) == n - 1
    uniform = records.length is not None
    dated, when = _when(records)
    head = HEAD.pack(
        VERSION,
        consecutive * CONSECUTIVE + uniform * UNIFORM + dated,
        partition,
        n,
        topic_id or bytes(16),
        packed.after,
        packed.next,
        packed.end,
        int(relative[0]) if consecutive else 0,
        0 if records.length is None else records.length,
    )
    return b"".join(
        (
            head,
            b"" if consecutive else relative.astype(_OFFSET).tobytes(),
            b"" if uniform else records.lengths.astype(_LENGTH).tobytes(),
            when,
            records.data.tobytes(),
        )
    )


def _when(records: PackedRecords) -> tuple[int, bytes]:
    """Return the flags and bytes that encode the arrival times."""
    if records.arrived is None:
        return 0, b""
    first_ms = int(records.arrived.min())
    later = records.arrived - first_ms
    # A delay too long for u32 is shortened: the time is then no longer exactly the broker's.
    exact = records.appended and int(later.max()) <= _MOST_LATER
    flags = DATED + APPENDED * exact
    return flags, _SINCE.pack(first_ms) + np.minimum(later, _MOST_LATER).astype(_LATER).tobytes()


def decode_packed(value: bytes | None, *, partition: int, topic_id: bytes) -> Packed:
    """Decode a message, which must be of this partition of the source topic with this id.

    `topic_id` has 16 bytes, or is empty if the broker has no ids. The records are views of `value`.

    Raises:
        PackedError: for anything else, whatever the bytes.
    """
    data = value or b""
    if len(data) < HEAD.size:
        raise PackedError("undecodable", f"{len(data)} bytes, shorter than its header")
    version, flags, of, n, topic, after, following, end, first, length = HEAD.unpack_from(data)
    if version != VERSION:
        raise PackedError("undecodable", f"version {version}, expected {VERSION}")
    consecutive, uniform = bool(flags & CONSECUTIVE), bool(flags & UNIFORM)
    unused = (first and not consecutive) or (length and not uniform)
    if unused or flags & ~_FLAGS or flags & (DATED | APPENDED) == APPENDED:
        raise PackedError("undecodable", f"flags {flags:#04x} contradict the header")
    records = _records(
        data, n, after, first if consecutive else None, length if uniform else None, flags
    )
    if topic != (topic_id or bytes(16)):
        raise PackedError("topic", f"of the topic with id {topic.hex()}")
    if of != partition:
        raise PackedError("partition", f"of partition {of}, expected {partition}")
    if after < 0 or following > end or not _ascending(records.offsets, after, following):
        raise PackedError("offsets", f"offsets not ascending within [{after}, {following})")
    return Packed(after, following, end, records)


def _records(
    data: bytes, n: int, after: int, first: int | None, length: int | None, flags: int
) -> PackedRecords:
    """Read what follows the header; `first` and `length` are None if tables give them."""
    dated = bool(flags & DATED)
    when = (
        HEAD.size + n * _OFFSET.itemsize * (first is None) + n * _LENGTH.itemsize * (length is None)
    )
    start = when + (_SINCE.size + n * _LATER.itemsize) * dated
    # Check before allocating any array of length n: n may be any number.
    exact = length is None or len(data) == start + n * length
    if not 0 < n <= MAX_MESSAGES or len(data) < start or not exact:
        raise PackedError("undecodable", f"{len(data)} bytes do not hold {n} messages")
    # A sum above 2^63 wraps around to below `after`, which the check of the order detects.
    if first is None:
        offsets = np.frombuffer(data, dtype=_OFFSET, count=n, offset=HEAD.size).astype(np.int64)
        offsets += after
    else:
        begin = (after + first + (1 << 63)) % (1 << 64) - (1 << 63)
        offsets = np.int64(begin) + np.arange(n, dtype=np.int64)
    if length is None:
        at = when - n * _LENGTH.itemsize
        lengths = np.frombuffer(data, dtype=_LENGTH, count=n, offset=at).astype(np.int64)
        if lengths.min() < -1 or len(data) != start + int(np.maximum(lengths, 0).sum()):
            raise PackedError("undecodable", "lengths do not add up to its size")
    else:
        lengths = np.broadcast_to(np.int64(length), (n,))
    arrived = _arrived(data, n, when) if dated else None
    values = np.frombuffer(data, np.uint8, offset=start)
    return PackedRecords(offsets, lengths, values, length, arrived, bool(flags & APPENDED))


def _arrived(data: bytes, n: int, when: int) -> Integers:
    """Read when each of n messages arrived; `when` is the position of that table."""
    (first_ms,) = _SINCE.unpack_from(data, when)
    if not 0 <= first_ms <= LATEST_MS:
        raise PackedError("undecodable", f"arrival time {first_ms} ms since 1970 is out of range")
    later = np.frombuffer(data, dtype=_LATER, count=n, offset=when + _SINCE.size)
    arrived: Integers = first_ms + later.astype(np.int64)
    return arrived


def _ascending(offsets: Integers, after: int, following: int) -> bool:
    return bool(
        after <= offsets[0] and offsets[-1] < following and (offsets[1:] > offsets[:-1]).all()
    )
