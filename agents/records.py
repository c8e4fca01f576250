"""The records of a changelog: keys that are never written twice, and the head that decides.

Rule 1, keys. Every record has a key of its own, `(name, epoch, seq)`: no key is ever written twice,
it is only deleted once it is dead, so compaction can never replace what somebody relies on. An
epoch is a random number drawn at every load of a partition; seq counts the partition's heads.

A key begins with its state: format version, the spec's fingerprint, the window's size and hop (and
so the pane's length) and the chunk's length. Records of another state are never merged with ours,
they are another spec's (see `Context.accept`) or an earlier configuration's; records of an unknown
format are refused by name.

Names: the head; `count`, one chunk of a pane's statistic; `n`, a pane's totals; `final`, the
content of a window's final. `docs/changelog.md` specifies the bytes.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from ldpstream.agents.context import Context
from ldpstream.agents.windows import NEVER

VERSION: Final = 1
Kind = Literal["head", "count", "n", "final"]
_KINDS: Final[tuple[Kind, ...]] = ("head", "count", "n", "final")
_STATE: Final = struct.Struct("<B8sqqI")
_REST: Final = struct.Struct("<BqIQQ")
REASONS: Final = ("undecodable", "fingerprint", "range", "future", "precision", "time")
"""Why a message or a report is rejected, in the order of the head's counters."""
_HEAD: Final = struct.Struct("<BB10qI6q16sI")
_ENTRY: Final = struct.Struct("<QQ")


class RecordError(ValueError):
    """A record of the changelog cannot be what this version wrote; nothing is guessed from it."""


class Name(NamedTuple):
    """What a record is about: `number` is a pane, of a final a window, of the head 0."""

    kind: Kind
    number: int = 0
    chunk: int = 0


HEAD: Final = Name("head")


class Key(NamedTuple):
    """The key of a record: unique, whoever writes and whenever."""

    name: Name
    epoch: int
    seq: int


@dataclass(frozen=True, kw_only=True)
class Head:
    """Rule 2: all that is decided about a partition; it makes the cells flushed with it count.

    Of the heads with one seq the first in the log wins; the winner of the largest seq is the state.

    `next` is the first source offset not included; `clock` the watermark, epoch ms, which never
    goes back; panes below `closed` are closed, whatever grace is configured later. `n`, `late` and
    `rejected` (by reason) count reports, `lost` source offsets that retention deleted unread;
    `gone` is the part of `n` in expired panes, those below `expired`. Only in partition 0's head:
    windows below `final` are decided, those below `published` published, and finals wait for
    `partitions` partitions. `source` is the id of the source topic that was counted from, 16
    bytes; empty where the broker has none. `lineage` (rule 3) names for each epoch with live cells
    the last seq that this epoch won.
    """

    epoch: int = 0
    seq: int = 0
    next: int = 0
    clock: int = NEVER
    closed: int = NEVER
    idle: bool = False
    n: int = 0
    late: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    lost: int = 0
    gone: int = 0
    expired: int = NEVER
    final: int = NEVER
    published: int = NEVER
    partitions: int = 0
    source: bytes = b""
    lineage: Mapping[int, int] = field(default_factory=dict)


def state_prefix(context: Context) -> bytes:
    """Return what the keys of a collection's state begin with."""
    window = context.window
    return _STATE.pack(
        VERSION, context.spec.fingerprint, window.size_ms, window.hop_ms, context.chunk
    )


def encode_key(prefix: bytes, key: Key) -> bytes:
    """Return the key's bytes, of fixed length."""
    name, epoch, seq = key
    return prefix + _REST.pack(_KINDS.index(name.kind), name.number, name.chunk, epoch, seq)


def decode_key(prefix: bytes, data: bytes) -> Key | None:
    """Return the key, or None for another state's.

    Raises:
        RecordError: for the bytes of no key, or of a version unknown here.
    """
    if not data.startswith(prefix):
        if not data or data[0] != VERSION:
            raise RecordError(
                f"changelog record of format version {data[0] if data else 'none'}: "
                f"this release reads version {VERSION}"
            )
        return None
    try:
        kind, number, chunk, epoch, seq = _REST.unpack_from(data, len(prefix))
        return Key(Name(_KINDS[kind], number, chunk), epoch, seq)
    except (struct.error, IndexError) as error:
        raise RecordError("changelog record with a malformed key") from error


def encode_head(head: Head) -> bytes:
    """Return the head's value; epoch and seq are in its key."""
    return _HEAD.pack(
        VERSION,
        head.idle,
        head.next,
        head.clock,
        head.closed,
        head.n,
        head.late,
        head.lost,
        head.gone,
        head.expired,
        head.final,
        head.published,
        head.partitions,
        *(head.rejected.get(reason, 0) for reason in REASONS),
        head.source,
        len(head.lineage),
    ) + b"".join(_ENTRY.pack(epoch, seq) for epoch, seq in sorted(head.lineage.items()))


def decode_head(key: Key, data: bytes) -> Head:
    """Return the head with this key and value.

    Raises:
        RecordError: where the value is of another version or malformed.
    """
    check_version(data, "head")
    try:
        _, idle, *numbers, source, entries = _HEAD.unpack_from(data)
        lineage = dict(_ENTRY.iter_unpack(data[_HEAD.size :]))
    except struct.error as error:
        raise RecordError("changelog head of a wrong length") from error
    if len(lineage) != entries:
        raise RecordError("changelog head with a torn lineage")
    counts = zip(REASONS, numbers[11:], strict=True)
    return Head(
        epoch=key.epoch,
        seq=key.seq,
        next=numbers[0],
        clock=numbers[1],
        closed=numbers[2],
        idle=bool(idle),
        n=numbers[3],
        late=numbers[4],
        rejected={reason: count for reason, count in counts if count},
        lost=numbers[5],
        gone=numbers[6],
        expired=numbers[7],
        final=numbers[8],
        published=numbers[9],
        partitions=numbers[10],
        source=source if any(source) else b"",
        lineage=lineage,
    )


def check_version(data: bytes, what: str) -> None:
    """Refuse a value of another format version.

    Raises:
        RecordError: naming the record and the version.
    """
    if not data or data[0] != VERSION:
        raise RecordError(
            f"changelog {what} of format version {data[0] if data else 'none'}: "
            f"this release reads version {VERSION}"
        )
