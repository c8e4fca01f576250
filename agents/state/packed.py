"""A packed message: a stretch of a source partition, its messages byte for byte, in one message.

Little-endian: `u8 version = 0x81`, `u8 flags`, `u16 source partition`, `u32 n >= 1` messages, the
source topic's id (16 bytes, zeros where the broker has none), `i64 after`, `i64 next`, `i64 end`,
`u32 first`, `u32 length`; then, where they are not told by the flags, n offsets and n lengths; then
`i64` and n `u32`, when each of them arrived; then the messages' bytes. docs/wire.md specifies it.

The message covers the source's offsets `[after, next)` in full: offsets in there that it does not
hold do not exist. So whoever reads it knows what it repeats and what is missing before it, whatever
packers crash or overlap.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.times import LATEST_MS

VERSION: Final = 0x81
"""Unlike any version of a frame, so that neither is taken for the other."""
CONSECUTIVE: Final = 1
UNIFORM: Final = 2
DATED: Final = 4
APPENDED: Final = 8
_FLAGS: Final = CONSECUTIVE | UNIFORM | DATED | APPENDED
HEAD: Final = struct.Struct("<BBHI16sqqqII")
REASONS: Final = ("undecodable", "topic", "partition", "offsets")
"""Why a packed message is refused, in the order in which it is checked."""

_OFFSET: Final = np.dtype("<u4")
_LENGTH: Final = np.dtype("<i4")
_SINCE: Final = struct.Struct("<q")
_LATER: Final = np.dtype("<u4")
_MOST_LATER: Final = 0xFFFFFFFF
MAX_SPAN: Final = 0xFFFFFFFF
MAX_MESSAGES: Final = 1 << 20
"""Of no bytes there might be any number: a reader makes arrays of this length at most."""
Int64s = NDArray[np.int64]
Record = tuple[int, bytes | None]


class PackedError(ValueError):
    """A packed message that cannot be used; `reason` is one of REASONS."""

    def __init__(self, reason: str, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason


@dataclass(frozen=True, eq=False)
class PackedRecords(Sequence[Record]):
    """N messages as `(offset, value)`, ascending; made one by one only where somebody asks.

    `offsets` int64 `(N,)`; `lengths` int64 `(N,)`, -1 for a message without a value; `data` uint8,
    all values one after the other. `length` is that of all of them, None where they differ.
    `arrived` int64 `(N,)` is when they reached the broker, epoch ms, as far as the packer knew, and
    never later; None in messages of earlier releases. `appended`: the broker has said so.
    """

    offsets: Int64s
    lengths: Int64s
    data: NDArray[np.uint8]
    length: int | None
    arrived: Int64s | None = None
    appended: bool = False

    @cached_property
    def _ends(self) -> Int64s:
        return np.cumsum(np.maximum(self.lengths, 0))

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.offsets)

    @overload
    def __getitem__(self, place: int) -> Record: ...

    @overload
    def __getitem__(self, place: slice) -> "PackedRecords": ...

    def __getitem__(self, place: int | slice) -> "Record | PackedRecords":
        """Return a message, or those of a slice without a step, which share the bytes."""
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
        """Return the messages from an offset on."""
        start = int(np.searchsorted(self.offsets, offset))
        return self[start:] if start else self

    def by_length(self) -> Iterator[tuple[int, Int64s]]:
        """Yield the different lengths, and the places of the messages that have each."""
        if self.length is not None:
            yield self.length, np.arange(len(self), dtype=np.int64)
            return
        different, which = np.unique(self.lengths, return_inverse=True)
        order = np.argsort(which, kind="stable")
        ends = np.cumsum(np.bincount(which, minlength=len(different)))
        yield from zip(different.tolist(), np.split(order, ends[:-1]), strict=True)

    def matrix(self, length: int, places: Int64s) -> NDArray[np.uint8]:
        """Return messages of one length, above 0, as rows: uint8 `(len(places), length)`."""
        if self.length is not None and len(places) == len(self):
            return self.data.reshape(len(self), length)
        starts = self._ends[places] - length
        rows: NDArray[np.uint8] = self.data[starts[:, None] + np.arange(length)]
        return rows


@dataclass(frozen=True, eq=False)
class Packed:
    """A decoded message, which covers `[after, next)` of a source partition in full.

    `end` is where the source ended when the packer last fetched: for showing, nothing else.
    """

    after: int
    next: int
    end: int
    records: PackedRecords


def encode_packed(packed: Packed, *, partition: int, topic_id: bytes) -> bytes:
    """Return the bytes of a message.

    Raises:
        ValueError: for no records or more than 2^20, offsets outside `[after, next)`, or a span of
            2^32 offsets.
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
    """Return the flags and bytes that tell when they arrived."""
    if records.arrived is None:
        return 0, b""
    first_ms = int(records.arrived.min())
    later = records.arrived - first_ms
    # Who arrived after weeks is said to have arrived sooner, which is no longer the broker's word.
    exact = records.appended and int(later.max()) <= _MOST_LATER
    flags = DATED + APPENDED * exact
    return flags, _SINCE.pack(first_ms) + np.minimum(later, _MOST_LATER).astype(_LATER).tobytes()


def decode_packed(value: bytes | None, *, partition: int, topic_id: bytes) -> Packed:
    """Decode a message that should be of this partition of the source topic with this id.

    `topic_id` has 16 bytes, or none where the broker has no ids. The records are views of `value`.

    Raises:
        PackedError: for everything else, whatever the bytes.
    """
    data = value or b""
    if len(data) < HEAD.size:
        raise PackedError("undecodable", f"{len(data)} bytes, shorter than a head")
    version, flags, of, n, topic, after, following, end, first, length = HEAD.unpack_from(data)
    if version != VERSION:
        raise PackedError("undecodable", f"version {version}, not {VERSION}")
    consecutive, uniform = bool(flags & CONSECUTIVE), bool(flags & UNIFORM)
    unused = (first and not consecutive) or (length and not uniform)
    if unused or flags & ~_FLAGS or flags & (DATED | APPENDED) == APPENDED:
        raise PackedError("undecodable", f"flags {flags:#04x} that do not fit")
    records = _records(
        data, n, after, first if consecutive else None, length if uniform else None, flags
    )
    if topic != (topic_id or bytes(16)):
        raise PackedError("topic", f"of the topic with id {topic.hex()}")
    if of != partition:
        raise PackedError("partition", f"of partition {of}, not {partition}")
    if after < 0 or following > end or not _ascending(records.offsets, after, following):
        raise PackedError("offsets", f"offsets that are not in order in [{after}, {following})")
    return Packed(after, following, end, records)


def _records(
    data: bytes, n: int, after: int, first: int | None, length: int | None, flags: int
) -> PackedRecords:
    """Read what follows the head; `first` and `length` are None where tables tell them."""
    dated = bool(flags & DATED)
    when = (
        HEAD.size + n * _OFFSET.itemsize * (first is None) + n * _LENGTH.itemsize * (length is None)
    )
    start = when + (_SINCE.size + n * _LATER.itemsize) * dated
    # Before anything of length n is made: n may be any number.
    exact = length is None or len(data) == start + n * length
    if not 0 < n <= MAX_MESSAGES or len(data) < start or not exact:
        raise PackedError("undecodable", f"{len(data)} bytes do not hold {n} messages")
    # A sum above 2^63 wraps around, below `after`, which is noticed as any other disorder.
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
            raise PackedError("undecodable", "lengths that do not add up")
    else:
        lengths = np.broadcast_to(np.int64(length), (n,))
    arrived = _arrived(data, n, when) if dated else None
    values = np.frombuffer(data, np.uint8, offset=start)
    return PackedRecords(offsets, lengths, values, length, arrived, bool(flags & APPENDED))


def _arrived(data: bytes, n: int, when: int) -> Int64s:
    """Read when n messages arrived; `when` is where that is written."""
    (first_ms,) = _SINCE.unpack_from(data, when)
    if not 0 <= first_ms <= LATEST_MS:
        raise PackedError("undecodable", f"messages that arrived at {first_ms} ms since 1970")
    later = np.frombuffer(data, dtype=_LATER, count=n, offset=when + _SINCE.size)
    arrived: Int64s = first_ms + later.astype(np.int64)
    return arrived


def _ascending(offsets: Int64s, after: int, following: int) -> bool:
    return bool(
        after <= offsets[0] and offsets[-1] < following and (offsets[1:] > offsets[:-1]).all()
    )
