"""The records of a changelog: keys that are never written twice, and the head that decides.

Rule 1, keys. Every record has its own key, `(name, epoch, seq)`. No key is ever written twice, and
it is deleted only once it is dead, so compaction can never replace a record that somebody relies
on. An epoch is a random number drawn each time a partition is loaded; seq counts the partition's
heads.

`docs/internals/state-topic.md` has the rules, `ldpstream.agents.state.encoding` the bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ldpstream.agents.state.windows import NEVER, Gap

TOKEN_REASONS: Final = ("partition", "repeated", "crowded")
REASONS: Final = (
    *("undecodable", "fingerprint", "range", "future", "precision", "time"),
    *TOKEN_REASONS,
)
"""Why a message or a report is rejected, in the order of the head's counters."""


class RecordError(ValueError):
    """A changelog record that this version cannot have written; nothing is guessed from it.

    All that reads bytes of a changelog may raise it.
    """


class Name(NamedTuple):
    """What a record is about: one of `ldpstream.agents.state.cell_kinds.KINDS`, or a head.

    `number` is a pane, of a final its window, of a head 0. What is too long for one record has
    several, which differ in `chunk`.
    """

    kind: str
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
    - `lineage` (rule 3): for each epoch with live cells, the last seq that this epoch won.
    - `cutover`: from this source offset on, messages that are not frames of this state's spec are
      left to the state of another spec; NEVER if all are decided here.
    - `gaps`: the unexpired panes that may lack some of the `lost` offsets.
    - `gathered`: the counts of the panes below are stored by partition 0 for all partitions
      (`ldpstream.agents.state.view`).
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
    cutover: int = NEVER
    grouped: int = NEVER
    gaps: tuple[Gap, ...] = ()
    end: int = 0
    gathered: int = NEVER


class CellRecord(NamedTuple):
    """A cell as the log holds it."""

    key: bytes
    name: Name
    epoch: int
    seq: int
    value: bytes


class HeadRecord(NamedTuple):
    """A head and its offset in the log."""

    key: bytes
    epoch: int
    seq: int
    offset: int
    value: bytes
