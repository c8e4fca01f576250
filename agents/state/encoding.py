"""The bytes of a changelog's keys and heads, all little-endian.

A key begins with the identity of its state: format version, the spec's fingerprint, the window's
size and hop (which determine the pane's length) and the chunk's length. With a calendar the size is
negated, and the calendar follows. Records of another state
are never mixed with ours: they belong to another spec (see `Context.accept`) or to an earlier
configuration. A record of an unknown format is an error.

`docs/internals/state-topic.md` has the rules; tests/vectors/state.json pins the bytes.
"""

import struct
from typing import Final

from ldpstream.agents.state.cell_encoding import VERSION, VERSION_BYTE, other_version
from ldpstream.agents.state.cell_kinds import KINDS
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.records import REASONS, Head, Key, Name, RecordError
from ldpstream.agents.state.windows import NEVER, Gap, WindowIdentity

_KINDS: Final = ("head", *KINDS)
"""The kinds of records; the place of each is its number in a key."""
_NUMBERS: Final = {kind: number for number, kind in enumerate(_KINDS)}
_STATE: Final = struct.Struct("<B8sqqI")
_REST: Final = struct.Struct("<BqIQQ")
HEAD_COUNTS: Final = ("next", "n", "late", "lost", "partitions", "end")
"""The offsets and counts of a head; those of rejected reports follow, in the order of `REASONS`."""
HEAD_MOMENTS: Final = (
    *("clock", "closed", "gone", "expired", "final", "published"),
    *("cutover", "grouped", "gathered"),
)
"""Its other numbers, which may be negative."""
# Eight bytes before `end` are reserved: zeros, and not read.
_HEAD: Final = struct.Struct(f"<BB16s5q8x{1 + len(REASONS) + len(HEAD_MOMENTS)}q")
_GAP: Final = struct.Struct("<3q")
_ENTRIES: Final = struct.Struct("<I")
_MOST: Final = -NEVER
"""Largest number in a head, so that sums and differences of two stay within an int64."""
_ENTRY: Final = struct.Struct("<QQ")


def state_prefix(context: Context) -> bytes:
    """Return the prefix of all keys of a collection's state."""
    windows = context.window.identity
    # Negative, so that no key of windows without a calendar begins like one of these.
    size_ms = windows.size_ms if windows.timezone is None else -windows.size_ms
    state = _STATE.pack(VERSION, context.spec.fingerprint, size_ms, windows.hop_ms, context.chunk)
    if windows.timezone is None:
        return state
    name = windows.timezone.encode()
    return state + bytes((windows.first_day, len(name))) + name


def encode_key(prefix: bytes, key: Key) -> bytes:
    """Return the key's bytes, of fixed length."""
    name, epoch, seq = key
    return prefix + _REST.pack(_NUMBERS[name.kind], name.number, name.chunk, epoch, seq)


def decode_key(prefix: bytes, data: bytes) -> Key | None:
    """Return the key, or None if it belongs to another state."""
    if not data.startswith(prefix):
        if data[:1] != VERSION_BYTE:
            raise other_version(data, "record")
        return None
    try:
        # Exactly this length: a longer key would be another record with the same name.
        kind, number, chunk, epoch, seq = _REST.unpack(data[len(prefix) :])
        return Key(Name(_KINDS[kind], number, chunk), epoch, seq)
    except (struct.error, IndexError) as error:
        raise RecordError("changelog record with a malformed key") from error


def split_state(key: bytes) -> tuple[bytes, bytes, WindowIdentity]:
    """Return a key's state, with which all its keys begin, its spec's fingerprint and windows."""
    if len(key) < _STATE.size or key[0] != VERSION:
        raise RecordError("changelog record with a malformed key")
    _, fingerprint, size_ms, hop_ms, _ = _STATE.unpack_from(key)
    if size_ms >= 0:
        return key[: _STATE.size], fingerprint, WindowIdentity(size_ms, hop_ms)
    try:
        first_day, length = key[_STATE.size : _STATE.size + 2]
        end = _STATE.size + 2 + length
        (name,) = struct.unpack(f"{length}s", key[end - length : end])
        windows = WindowIdentity(-size_ms, hop_ms, name.decode(), first_day)
    except (ValueError, struct.error) as error:
        raise RecordError("changelog record with a malformed key") from error
    return key[:end], fingerprint, windows


def encode_head(head: Head) -> bytes:
    """Return the head's value; epoch and seq are in its key."""
    fixed = _HEAD.pack(
        VERSION,
        head.idle,
        head.source,
        *(getattr(head, name) for name in HEAD_COUNTS),
        *(head.rejected.get(reason, 0) for reason in REASONS),
        *(getattr(head, name) for name in HEAD_MOMENTS),
    )
    gaps = (_GAP.pack(*gap) for gap in head.gaps)
    lineage = (_ENTRY.pack(epoch, seq) for epoch, seq in sorted(head.lineage.items()))
    listed = (_ENTRIES.pack(len(head.gaps)), *gaps, _ENTRIES.pack(len(head.lineage)), *lineage)
    return b"".join((fixed, *listed))


def decode_head(key: Key, data: bytes) -> Head:
    """Return the head with this key and value."""
    if data[:1] != VERSION_BYTE:
        raise other_version(data, "head")
    try:
        _, idle, source, *numbers = _HEAD.unpack_from(data)
        (listed,) = _ENTRIES.unpack_from(data, _HEAD.size)
        lists = _HEAD.size + _ENTRIES.size
        gaps_end = lists + _GAP.size * listed
        gaps = tuple(Gap(*gap) for gap in _GAP.iter_unpack(data[lists:gaps_end]))
        (entries,) = _ENTRIES.unpack_from(data, gaps_end)
        lineage = dict(_ENTRY.iter_unpack(data[gaps_end + _ENTRIES.size :]))
    except struct.error as error:
        raise RecordError("changelog head has the wrong length") from error
    if len(lineage) != entries:
        raise RecordError("changelog head has a torn lineage")
    counts = len(HEAD_COUNTS) + len(REASONS)
    if min(numbers[:counts]) < 0 or max(map(abs, numbers)) > _MOST:
        raise RecordError("changelog head has numbers out of range")
    rejected = zip(REASONS, numbers[len(HEAD_COUNTS) : counts], strict=True)
    named = zip(
        (*HEAD_COUNTS, *HEAD_MOMENTS), numbers[: len(HEAD_COUNTS)] + numbers[counts:], strict=True
    )
    return Head(
        epoch=key.epoch,
        seq=key.seq,
        idle=bool(idle),
        source=source if any(source) else b"",
        rejected={reason: count for reason, count in rejected if count},
        lineage=lineage,
        gaps=gaps,
        **dict(named),
    )
