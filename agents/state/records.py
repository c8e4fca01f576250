"""The records of a changelog: keys that are never written twice, and the head that decides.

Rule 1, keys. Every record has its own key, `(name, epoch, seq)`. No key is ever written twice, and
it is deleted only once it is dead, so compaction can never replace a record that somebody relies
on. An epoch is a random number drawn each time a partition is loaded; seq counts the partition's
heads.

A key begins with the identity of its state: format version, the spec's fingerprint, the window's
size and hop (which determine the pane's length) and the chunk's length. Records of another state
are never mixed with ours: they belong to another spec (see `Context.accept`) or to an earlier
configuration. A record of an unknown format is an error.

Names:

- the head; `count`, one chunk of a pane's statistic; `n`, a pane's totals; `final`, the content of
  a window's final; `token`, a chunk of the tokens counted in an open pane; `late`, how many reports
  came late for a pane whose counts partition 0 stores;
- with `minimum`, in partition 0 only: `part`, panes of which answers hold all or none; `release`,
  what answers may hold of a pane that is in no part yet; `open`, a chunk of a release's statistic.

`docs/internals/state-topic.md` has the rules; tests/vectors/state.json pins the bytes.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from ldpstream.agents.state.context import NEWEST, Context
from ldpstream.agents.state.windows import NEVER, Gap

VERSION: Final = 1
VERSION_BYTE: Final = bytes((VERSION,))
Kind = Literal["head", "count", "n", "final", "token", "part", "release", "open", "late"]
_KINDS: Final[tuple[Kind, ...]] = (
    *("head", "count", "n", "final", "token"),
    *("part", "release", "open", "late"),
)
_HEAD_KIND: Final = bytes((_KINDS.index("head"),))
_STATE: Final = struct.Struct("<B8sqqI")
_REST: Final = struct.Struct("<BqIQQ")
TOKEN_REASONS: Final = ("partition", "repeated", "crowded")
REASONS: Final = (
    *("undecodable", "fingerprint", "range", "future", "precision", "time"),
    *TOKEN_REASONS,
)
"""Why a message or a report is rejected, in the order of the head's counters."""
_HEAD: Final = struct.Struct("<BB10qI9q16s4q")
_GAP: Final = struct.Struct("<3q")
_ENTRIES: Final = struct.Struct("<I")
_GATHERED: Final = struct.Struct("<q")
_MOST: Final = -NEVER
"""Largest number in a head, so that sums and differences of two stay within an int64."""
_ENTRY: Final = struct.Struct("<QQ")
_READS: Final = 0
"""In a lineage the epoch, which no owner draws, of the entry that says what the writer reads."""
_MOST_FORMATS: Final = 255


class RecordError(ValueError):
    """A changelog record that this version cannot have written; nothing is guessed from it."""


class Name(NamedTuple):
    """What a record is about; `number` is a pane, for a final its window, for the head 0.

    For a part it is the part's last pane.
    """

    kind: Kind
    number: int = 0
    chunk: int = 0


HEAD: Final = Name("head")


class Key(NamedTuple):
    """The key of a record: unique across all writers and times."""

    name: Name
    epoch: int
    seq: int


@dataclass(frozen=True, kw_only=True)
class Head:
    """Rule 2: everything decided about a partition. A head makes the cells flushed with it count.

    Of the heads with the same seq the first in the log wins; the winner of the largest seq is the
    state.

    - `next`: the first source offset not included. `end`: the largest end of the source that any
      owner has seen, or anything up to `next`.
    - `clock`: the watermark, epoch ms, which never goes back. Panes below `closed` are closed, even
      if a longer grace is configured later.
    - `n`, `late` and `rejected` (by reason) count reports; `lost` counts source offsets that
      retention deleted unread. `gone` is `n` without the reports in the panes stored here: those of
      panes below `expired`, or stored by partition 0. There, reports of others make it smaller.
    - Only in partition 0's head: windows below `final` are decided and those below `published` are
      published; finals wait for `partitions` partitions; future parts begin at the pane `grouped`
      or above.
    - `source`: the id of the source topic, 16 bytes; empty if the broker has none.
    - `frames`: the offset at which to continue reading the frames topic; it decides nothing.
    - `lineage` (rule 3): for each epoch with live cells, the last seq that this epoch won.
    - `cutover`: from this source offset on, messages that are not frames of this state's spec are
      left to the state of another spec; NEVER if all are decided here.
    - `gaps`: the unexpired panes that may lack some of the `lost` offsets.
    - `gathered`: the counts of the panes below are stored by partition 0 for all partitions
      (`ldpstream.agents.state.view`).
    - `format`: in which it is written; `reads`: up to which its writer says that it reads
      (`ldpstream.agents.state.context`).
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
    frames: int = 0
    lineage: Mapping[int, int] = field(default_factory=dict)
    cutover: int = NEVER
    grouped: int = NEVER
    gaps: tuple[Gap, ...] = ()
    end: int = 0
    gathered: int = NEVER
    format: int = 1
    reads: int = 1


def state_prefix(context: Context) -> bytes:
    """Return the prefix of all keys of a collection's state."""
    window = context.window
    return _STATE.pack(
        VERSION, context.spec.fingerprint, window.size_ms, window.hop_ms, context.chunk
    )


def encode_key(prefix: bytes, key: Key) -> bytes:
    """Return the key's bytes, of fixed length."""
    name, epoch, seq = key
    return prefix + _REST.pack(_KINDS.index(name.kind), name.number, name.chunk, epoch, seq)


def decode_key(prefix: bytes, data: bytes) -> Key | None:
    """Return the key, or None if it belongs to another state.

    Raises:
        RecordError: for malformed bytes, or a version unknown here.
    """
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


def head_prefix(prefix: bytes) -> bytes:
    """Return the prefix of the keys of a state's heads."""
    return prefix + _HEAD_KIND


def state_fingerprint(prefix: bytes) -> bytes:
    """Return the spec's fingerprint in a state's key prefix."""
    found: bytes = _STATE.unpack(prefix)[1]
    return found


def state_windows(key: bytes) -> tuple[bytes, int, int]:
    """Return fingerprint, size and hop (ms) from a key or a state's key prefix.

    Raises:
        RecordError: for malformed bytes, or a version unknown here.
    """
    if len(key) < _STATE.size or key[0] != VERSION:
        raise RecordError("changelog record with a malformed key")
    _, fingerprint, size_ms, hop_ms, _ = _STATE.unpack_from(key)
    return fingerprint, size_ms, hop_ms


def encode_head(head: Head) -> bytes:
    """Return the head's value; epoch and seq are in its key."""
    fixed = _HEAD.pack(
        head.format,
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
        head.frames,
        head.cutover,
        head.grouped,
        head.end,
    )
    gaps = (_GAP.pack(*gap) for gap in head.gaps)
    # Releases that read format 1 alone skip an entry of no live cell, and do not write it again.
    said = {_READS: head.reads} if head.reads > 1 else {}
    entries = sorted((said | dict(head.lineage)).items())
    lineage = (_ENTRY.pack(epoch, seq) for epoch, seq in entries)
    listed = (_ENTRIES.pack(len(head.gaps)), *gaps, _ENTRIES.pack(len(entries)), *lineage)
    gathered = b"" if head.gathered == NEVER else _GATHERED.pack(head.gathered)
    return b"".join((fixed, *listed, gathered))


def decode_head(key: Key, data: bytes) -> Head:
    """Return the head with this key and value.

    Raises:
        RecordError: if the value is of another version or malformed.
    """
    if not data or not 1 <= data[0] <= NEWEST:
        raise other_version(data, "head", newest=NEWEST)
    try:
        version, idle, *numbers, source, frames, cutover, grouped, end = _HEAD.unpack_from(data)
        (listed,) = _ENTRIES.unpack_from(data, _HEAD.size)
        gaps_end = _HEAD.size + _ENTRIES.size + _GAP.size * listed
        gaps = _GAP.iter_unpack(data[_HEAD.size + _ENTRIES.size : gaps_end])
        (entries,) = _ENTRIES.unpack_from(data, gaps_end)
        lineage_end = gaps_end + _ENTRIES.size + _ENTRY.size * entries
        lineage = dict(_ENTRY.iter_unpack(data[gaps_end + _ENTRIES.size : lineage_end]))
        rest = data[lineage_end:]
        (gathered,) = _GATHERED.unpack(rest) if rest else (NEVER,)
    except struct.error as error:
        raise RecordError("changelog head has the wrong length") from error
    if len(lineage) != entries:
        raise RecordError("changelog head has a torn lineage")
    reads = lineage.pop(_READS, 1)
    counted = (numbers[0], *numbers[3:6], *numbers[10:], frames)
    moments = (*numbers[1:3], *numbers[6:10], cutover, grouped, end, gathered)
    in_range = min(counted) >= 0 and max(map(abs, (*counted, *moments))) <= _MOST
    if not in_range or not 1 <= reads <= _MOST_FORMATS:
        raise RecordError("changelog head has numbers out of range")
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
        frames=frames,
        lineage=lineage,
        cutover=cutover,
        grouped=grouped,
        gaps=tuple(Gap(*gap) for gap in gaps),
        end=end,
        gathered=gathered,
        format=version,
        reads=reads,
    )


def other_version(data: bytes, what: str, *, newest: int = VERSION) -> RecordError:
    """Return the error for a record that begins with another format version than those read."""
    read = "version 1" if newest == 1 else f"versions 1 to {newest}"
    return RecordError(
        f"changelog {what} has format version {data[0] if data else 'none'}: "
        f"this release reads {read}; run the release that wrote it, or a later one"
    )
