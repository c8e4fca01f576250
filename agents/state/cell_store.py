"""Where a replica keeps the values of cells: in memory, or in a store that survives the process.

The changelog is the state. A store is only a copy of what a replica has evaluated, and can be
deleted at any time. The replica holds each cell's key and the first bytes of its value, which are
enough to update the pane's sums; a store may keep the rest elsewhere. After a restart, a store
returns the result of one evaluation at the log's end (rule 5), never anything read after it.
Without a store all values are in memory.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ldpstream.agents.state.records import Name


class StoreError(RuntimeError):
    """A local store cannot be used; the message says where it is and what to do."""


class KeptValue(NamedTuple):
    """What stays in memory of a value (its first bytes, or all), and the value's length."""

    start: bytes
    size_bytes: int


class CellRecord(NamedTuple):
    """A cell as the log holds it.

    `start` and `size_bytes` describe the part of its value in memory, enough to update its pane's
    sums. They are two fields rather than a `KeptValue` because there may be a million cells.
    """

    key: bytes
    name: Name
    epoch: int
    seq: int
    start: bytes
    size_bytes: int

    @property
    def kept_value(self) -> KeptValue:
        """The part of its value in memory, as its store knows it."""
        return KeptValue(self.start, self.size_bytes)


class HeadRecord(NamedTuple):
    """A head and its offset in the log."""

    key: bytes
    epoch: int
    seq: int
    offset: int
    value: bytes


@dataclass(frozen=True)
class Evaluated:
    """What a replica had evaluated at the store's last commit.

    `position` is the offset up to which the log was evaluated. `known` has every key in the log
    below it: for a live or undecided cell the part of its value held in memory, None for a dead
    record. The winning head's key is not included.
    """

    position: int
    winner: HeadRecord | None
    known: Mapping[bytes, KeptValue | None]


class CellStore(Protocol):
    """Keeps the values of one replica's cells."""

    def resume(self) -> Evaluated | None:
        """Return what was committed last; None if nothing usable is stored."""

    def keep(self, key: bytes, value: bytes) -> KeptValue:
        """Store the value of a cell that has been read, and return what stays in memory."""

    def value(self, key: bytes, kept_value: KeptValue) -> bytes:
        """Return the value stored under a key."""

    def commit(
        self,
        position: int,
        winner: HeadRecord | None,
        changed: Iterable[bytes],
        keys: Mapping[bytes, CellRecord | None],
    ) -> None:
        """Make an evaluation durable, atomically: the log has been evaluated up to this offset.

        `changed` are the keys that may have changed. Of each, `keys` has the cell, None for a dead
        record, and nothing if the record is no longer in the log.
        """

    def clear(self) -> None:
        """Discard everything: the log is about to be read from its beginning."""
