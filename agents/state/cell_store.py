"""Where a tail keeps the values of cells: in memory, or with a store that outlives the process.

The changelog is the state; a store is a copy of what a tail has evaluated of it, and can be deleted
at any time. A tail holds of every cell the key and the first bytes of the value, which tell what it
adds to its pane's sums; a store may keep the rest elsewhere. What a store gives back after a
restart is what one evaluation at the log's end left (rule 5), never what was read since.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ldpstream.agents.state.records import Name


class StoreError(RuntimeError):
    """A local store cannot be used; the message says where it is and what to do."""


class Held(NamedTuple):
    """What stays in memory of a value, its first bytes or all, and how long the value is."""

    start: bytes
    size_bytes: int


class CellRecord(NamedTuple):
    """A cell as the log holds it.

    `start` and `size_bytes` are what is held of its value, enough to tell what it adds to its
    pane's sums; they are not a `Held` because there may be a million cells.
    """

    key: bytes
    name: Name
    epoch: int
    seq: int
    start: bytes
    size_bytes: int
    store: "CellStore"

    @property
    def held(self) -> Held:
        """What is held of its value, as its store knows it."""
        return Held(self.start, self.size_bytes)

    @property
    def value(self) -> bytes:
        """The whole value; `ldpstream.agents.state.cells` decodes it."""
        return self.store.value(self.key, self.held)


class HeadRecord(NamedTuple):
    """A head as the log holds it, and where."""

    key: bytes
    epoch: int
    seq: int
    offset: int
    value: bytes


@dataclass(frozen=True)
class Evaluated:
    """What a tail had evaluated when its store was last told.

    `position` is the offset up to which; `known` has every key that was in the log by then, with
    what is held of a cell's value, or None for the dead. The winning head's key is not among them.
    """

    position: int
    winner: HeadRecord | None
    known: Mapping[bytes, Held | None]


class CellStore(Protocol):
    """Keeps the values of one tail's cells; all that it is told counts at the next `commit`."""

    def resume(self) -> Evaluated | None:
        """Return what was committed last; None where there is nothing that can be used."""

    def keep(self, key: bytes, value: bytes) -> Held:
        """Take the value of a cell that has been read, and return what stays in memory."""

    def value(self, key: bytes, held: Held) -> bytes:
        """Return the value that was kept under a key."""

    def add(self, key: bytes, held: Held) -> None:
        """Note that a cell whose value has been kept is in the log."""

    def bury(self, key: bytes) -> None:
        """Drop a dead record's value and note that the record is still in the log."""

    def forget(self, key: bytes) -> None:
        """Drop a record that is no longer in the log."""

    def commit(self, position: int, winner: HeadRecord | None) -> None:
        """Make it last, all or nothing: the log has been evaluated up to this offset."""

    def clear(self) -> None:
        """Forget everything: the log is about to be read from its beginning."""


class MemoryStore:
    """Leaves every value in the tail's memory, and nothing to a restart."""

    def resume(self) -> Evaluated | None:
        """Return None."""
        return None

    def keep(self, key: bytes, value: bytes) -> Held:  # noqa: ARG002 (the protocol's)
        """Leave the whole value in memory."""
        return Held(value, len(value))

    def value(self, key: bytes, held: Held) -> bytes:  # noqa: ARG002 (the protocol's)
        """Return what is held."""
        return held.start

    def add(self, key: bytes, held: Held) -> None:
        """Do nothing."""

    def bury(self, key: bytes) -> None:
        """Do nothing."""

    def forget(self, key: bytes) -> None:
        """Do nothing."""

    def commit(self, position: int, winner: HeadRecord | None) -> None:
        """Do nothing."""

    def clear(self) -> None:
        """Do nothing."""
