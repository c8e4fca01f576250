"""A tail's cells in a worker's local database, and up to where they were evaluated.

Of every tail it says which topic (by its id), which state and which offset it belongs to; what
belongs to another one, or to no tail any more, is dropped and read again. One batch carries, all or
nothing, what an evaluation changed and the offset up to which. Only values may be written before,
when a long log is read: nothing points to them yet.

Keys: `format`; then, by a tail's digest of 8 bytes, `p`: its point, what it is and up to where; `s`
while values have been written before their batch; `m` and the record's key without its state: the
value's length and first bytes, or nothing for the dead; `v` and the same: the value, where `m` does
not hold all of it.
"""

import json
import logging
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any, Final

from rocksdict import WriteBatch as Batch

from ldpstream.agents.state.cell_store import Evaluated, HeadRecord, Held, StoreError
from ldpstream.agents.stores.rocks import RocksDatabase, after

START_BYTES: Final = 25
"""How much of a value stays in memory: all of a pane's totals, and the sum of a chunk."""
_BATCH_BYTES: Final = 1 << 20
_LENGTH_BYTES: Final = 4
_DEAD: Final = b""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class StoredTail:
    """What a tail's values belong to."""

    topic: str
    partition: int
    topic_id: str
    """Of the changelog, in hexadecimal; empty where the broker has none."""
    state: str
    """What the keys of this state begin with, in hexadecimal."""

    @property
    def digest(self) -> bytes:
        """Where it is in the database."""
        name = json.dumps([self.topic, self.partition, self.state])
        return blake2b(name.encode(), digest_size=8).digest()


def drop_others(database: RocksDatabase, tails: Iterable[StoredTail]) -> None:
    """Drop what belongs to tails that this worker no longer has."""
    wanted = {tail.digest for tail in tails}
    for key, point in list(database.scan(b"p")):
        if key[1:] not in wanted:
            was = json.loads(point)
            log.warning(
                "the stored state of %s[%d] is dropped: it is of a topic, window or "
                "specification that no collection has any more",
                *(was["topic"], was["partition"]),
            )
            _drop(database, key[1:])


def _drop(database: RocksDatabase, digest: bytes) -> None:
    """Drop all that is stored under a tail's digest."""
    batch = Batch(raw_mode=True)
    for kind in (b"p", b"s"):
        batch.delete(kind + digest)
    for kind in (b"m", b"v"):
        batch.delete_range(kind + digest, after(kind + digest))
    database.write(batch)


class RocksStore:
    """The values of one tail's cells in the database; see `CellStore`."""

    def __init__(self, database: RocksDatabase, tail: StoredTail) -> None:
        self._database = database
        self._tail = tail
        self._digest = tail.digest
        self._cut = len(bytes.fromhex(tail.state))
        self._batch = Batch(raw_mode=True)
        self._batch_bytes = 0
        # What `m` is to hold of a record, None: nothing, the record is gone.
        self._changed: dict[bytes, bytes | None] = {}

    def resume(self) -> Evaluated | None:
        """Return what was committed last; what is of another topic is dropped."""
        data = self._database.get(b"p" + self._digest)
        if data is None:
            self.clear()
            return None
        point = json.loads(data)
        if why := self._why_not(point):
            log.warning(
                "the state of %s[%d] is read from the changelog's beginning: %s",
                *(self._tail.topic, self._tail.partition, why),
            )
            self.clear()
            return None
        prefix = bytes.fromhex(self._tail.state)
        known: dict[bytes, Held | None] = {}
        for key, stored in self._database.scan(b"m" + self._digest):
            record = prefix + key[9:]
            if stored == _DEAD:
                # Records of no state of ours are never stored, so the prefix is what was cut.
                known[record] = None
            else:
                size = int.from_bytes(stored[:_LENGTH_BYTES], "little")
                known[record] = Held(stored[_LENGTH_BYTES:], size)
        self._drop_unknown(known, prefix)
        return Evaluated(point["position"], _winner(point["winner"]), known)

    def _why_not(self, point: dict[str, Any]) -> str:
        if not self._tail.topic_id:
            return "the broker gives topics no ids, so nobody knows whether it is the same topic"
        if point["topic_id"] != self._tail.topic_id:
            return "the stored one is of another topic of this name"
        if {name: point[name] for name in asdict(self._tail)} != asdict(self._tail):
            return "the stored one is of another partition or specification"
        return ""

    def _drop_unknown(self, known: dict[bytes, Held | None], prefix: bytes) -> None:
        """Drop values that were written before their batch, which never was."""
        if self._database.get(b"s" + self._digest) is None:
            return
        batch = Batch(raw_mode=True)
        batch.delete(b"s" + self._digest)
        for key, _ in self._database.scan(b"v" + self._digest):
            if known.get(prefix + key[9:]) is None:
                batch.delete(key)
        self._database.write(batch)

    def _at(self, kind: bytes, key: bytes) -> bytes:
        return kind + self._digest + key[self._cut :]

    def keep(self, key: bytes, value: bytes) -> Held:
        """Write a value that is longer than what stays in memory."""
        if len(value) > START_BYTES:
            self._batch.put(self._at(b"v", key), value)
            self._batch_bytes += len(value)
            if self._batch_bytes > _BATCH_BYTES:
                self._batch.put(b"s" + self._digest, b"")
                self._write()
        return Held(value[:START_BYTES], len(value))

    def value(self, key: bytes, held: Held) -> bytes:
        """Return a value that was kept and committed.

        Raises:
            StoreError: where the database does not hold it.
        """
        if held.size_bytes == len(held.start):
            return held.start
        value = self._database.get(self._at(b"v", key))
        if value is None or len(value) != held.size_bytes:
            raise StoreError(
                f"the store lacks a value of {self._tail.topic}[{self._tail.partition}]: delete it "
                "while no worker runs"
            )
        return value

    def add(self, key: bytes, held: Held) -> None:
        """Note a cell."""
        self._changed[key] = held.size_bytes.to_bytes(_LENGTH_BYTES, "little") + held.start

    def bury(self, key: bytes) -> None:
        """Note a dead record."""
        self._changed[key] = _DEAD

    def forget(self, key: bytes) -> None:
        """Note that a record is gone."""
        self._changed[key] = None

    def commit(self, position: int, winner: HeadRecord | None) -> None:
        """Write all that was noted, and the point."""
        batch = self._batch
        for key, stored in self._changed.items():
            if stored is None:
                batch.delete(self._at(b"m", key))
            else:
                batch.put(self._at(b"m", key), stored)
            if not stored:
                batch.delete(self._at(b"v", key))
        self._changed.clear()
        told = None if winner is None else _tell(winner)
        point = {**asdict(self._tail), "position": position, "winner": told}
        batch.put(b"p" + self._digest, json.dumps(point).encode())
        batch.delete(b"s" + self._digest)
        self._write()

    def _write(self) -> None:
        batch, self._batch, self._batch_bytes = self._batch, Batch(raw_mode=True), 0
        self._database.write(batch)

    def clear(self) -> None:
        """Drop all that is stored of this tail."""
        self._batch, self._batch_bytes = Batch(raw_mode=True), 0
        self._changed.clear()
        _drop(self._database, self._digest)


def _tell(winner: HeadRecord) -> list[Any]:
    return [winner.key.hex(), winner.epoch, winner.seq, winner.offset, winner.value.hex()]


def _winner(told: list[Any] | None) -> HeadRecord | None:
    if told is None:
        return None
    key, epoch, seq, offset, value = told
    return HeadRecord(bytes.fromhex(key), epoch, seq, offset, bytes.fromhex(value))
