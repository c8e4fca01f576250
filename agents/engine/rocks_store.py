"""Store a replica's cells in a worker's database, and the offset up to which they were evaluated.

The database, RocksDB in its own directory, is only a copy of what is in the changelogs, and can be
deleted while no worker runs. So a damaged one, or one of another format, is discarded.

Each replica is stored with its topic's id, its state and its offset. Data of another topic or
state, or of no current replica, is dropped and read again. One atomic batch contains everything
that an evaluation changed, and its offset. Only values may be written earlier, while a long log is
read: nothing refers to them yet.

Keys: `format`; then, by a replica's digest of 8 bytes:

- `p`: its point: topic, state, and the offset up to which it was evaluated;
- `s`: present while values have been written ahead of their batch;
- `m` and the record's key without its state: the value's length and first bytes, or nothing for a
  dead record;
- `v` and the same: the whole value, if `m` does not have all of it.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, TypeVar

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DbClosedError,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
)
from rocksdict import WriteBatch as Batch

from ldpstream.agents.state.cell_store import (
    CellRecord,
    Evaluated,
    HeadRecord,
    KeptValue,
    StoreError,
)

FORMAT: Final = b"ldpstream 1"
_CACHE_BYTES: Final = 16 << 20
_BUFFER_BYTES: Final = 8 << 20
_OPEN_FILES: Final = 128
_Result = TypeVar("_Result")
_START_BYTES: Final = 25
"""How much of a value stays in memory: all of a pane's totals, or the sum of a chunk."""
_BATCH_BYTES: Final = 1 << 20
_LENGTH_BYTES: Final = 4
_DEAD: Final = b""

log = logging.getLogger(__name__)


class RocksDatabase:
    """The open database of one worker, in its own directory.

    Raises:
        StoreError: if another process has it open, or it cannot be created.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot create {path.parent}: {error.strerror}") from error
        self._database = self._open()
        stored_format = self.get(b"format")
        if stored_format not in (None, FORMAT):
            self._destroy(f"it has format {stored_format!r}, and this release writes {FORMAT!r}")
        self.write_pairs([(b"format", FORMAT)])

    def _open(self) -> Rdict:
        try:
            return Rdict(str(self._path), _options())
        except Exception as error:  # rocksdict raises plain Exception alone
            message = str(error)
            if "lock" in message.lower():
                raise StoreError(
                    f"{self._path} is in use by another worker: give each its own worker.data"
                ) from error
            if not message.startswith(("Corruption", "Invalid argument")):
                raise StoreError(f"cannot open {self._path}: {message}") from error
            log.warning("%s is damaged, and rebuilt from the changelogs: %s", self._path, message)
        self._remove()
        return self._guarded(lambda: Rdict(str(self._path), _options()))

    def _destroy(self, why: str) -> None:
        log.warning("%s is rebuilt from the changelogs: %s", self._path, why)
        self._database.close()
        self._remove()
        self._database = self._open()

    def _remove(self) -> None:
        self._guarded(lambda: Rdict.destroy(str(self._path), _options()))

    def _guarded(self, act: Callable[[], _Result]) -> _Result:
        try:
            return act()
        except Exception as error:  # rocksdict raises plain Exception alone
            raise StoreError(
                f"{self._path}: {error}; it is a copy of the changelogs and can be deleted while "
                "no worker runs"
            ) from error

    # --- the database ---------------------------------------------------------------------------

    def get(self, key: bytes) -> bytes | None:
        """Return a value, or None if the key is missing."""
        value = self._guarded(lambda: self._database.get(key))
        assert value is None or isinstance(value, bytes)
        return value

    def scan(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield all keys with this prefix, and their values."""
        options = ReadOptions()
        options.set_iterate_upper_bound(after(start))
        items: Any = self._guarded(lambda: self._database.items(from_key=start, read_opt=options))
        while (item := self._guarded(lambda: next(items, None))) is not None:
            yield item

    def write(self, batch: Batch) -> None:
        """Write a batch atomically."""
        self._guarded(lambda: self._database.write(batch))

    def write_pairs(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        """Write keys with their values atomically."""
        batch = Batch(raw_mode=True)
        for key, value in pairs:
            batch.put(key, value)
        self.write(batch)

    def close(self) -> None:
        """Close the database, so that another worker may open it; may be called twice."""
        with suppress(DbClosedError):
            self._database.close()


def after(start: bytes) -> bytes:
    """Return the first key after all with this prefix."""
    return (int.from_bytes(start, "big") + 1).to_bytes(len(start), "big")


def _options() -> Options:
    """Return options that bound memory; writes need no sync, since the changelog has them."""
    options, tables = Options(raw_mode=True), BlockBasedOptions()
    tables.set_block_cache(Cache(_CACHE_BYTES))
    tables.set_bloom_filter(10, block_based=False)
    options.set_block_based_table_factory(tables)
    options.create_if_missing(True)
    options.set_write_buffer_size(_BUFFER_BYTES)
    options.set_max_write_buffer_number(2)
    options.set_max_open_files(_OPEN_FILES)
    options.set_max_total_wal_size(4 * _BUFFER_BYTES)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_keep_log_file_num(2)
    options.set_max_background_jobs(2)
    return options


@dataclass(frozen=True, kw_only=True)
class StoredReplica:
    """The identity of a replica's stored values."""

    topic: str
    partition: int
    topic_id: str
    """The changelog's id, in hexadecimal; empty if the broker has none."""
    state: str
    """The prefix of the state's keys, in hexadecimal."""

    @property
    def digest(self) -> bytes:
        """Its prefix in the database."""
        name = json.dumps([self.topic, self.partition, self.state])
        return blake2b(name.encode(), digest_size=8).digest()


def drop_unused_replicas(database: RocksDatabase, replicas: Iterable[StoredReplica]) -> None:
    """Drop the data of replicas that this worker no longer has."""
    digests = {replica.digest for replica in replicas}
    for key, point in list(database.scan(b"p")):
        if key[1:] not in digests:
            was = json.loads(point)
            log.warning(
                "the stored state of %s[%d] is dropped: no collection uses its topic, windows and "
                "specification any more",
                *(was["topic"], was["partition"]),
            )
            _drop(database, key[1:])


def _drop(database: RocksDatabase, digest: bytes) -> None:
    """Drop everything stored under a replica's digest."""
    batch = Batch(raw_mode=True)
    for kind in (b"p", b"s"):
        batch.delete(kind + digest)
    for kind in (b"m", b"v"):
        batch.delete_range(kind + digest, after(kind + digest))
    database.write(batch)


class RocksStore:
    """The values of one replica's cells in the database; see `CellStore`."""

    def __init__(self, database: RocksDatabase, replica: StoredReplica) -> None:
        self._database = database
        self._replica = replica
        self._digest = replica.digest
        self._cut = len(bytes.fromhex(replica.state))
        self._batch = Batch(raw_mode=True)
        self._batch_bytes = 0

    def resume(self) -> Evaluated | None:
        """Return what was committed last; data of another topic is dropped."""
        data = self._database.get(b"p" + self._digest)
        if data is None:
            self.clear()
            return None
        point = json.loads(data)
        if why := self._why_not(point):
            log.warning(
                "the state of %s[%d] is read from the changelog's beginning: %s",
                *(self._replica.topic, self._replica.partition, why),
            )
            self.clear()
            return None
        prefix = bytes.fromhex(self._replica.state)
        stored_values: dict[bytes, KeptValue | None] = {}
        for key, stored in self._database.scan(b"m" + self._digest):
            record = prefix + key[9:]
            if stored == _DEAD:
                # Only records of this state are stored, so the prefix is exactly what was cut off.
                stored_values[record] = None
            else:
                size = int.from_bytes(stored[:_LENGTH_BYTES], "little")
                stored_values[record] = KeptValue(stored[_LENGTH_BYTES:], size)
        self._drop_unknown(stored_values, prefix)
        return Evaluated(point["position"], _read_winner(point["winner"]), stored_values)

    def _why_not(self, point: dict[str, Any]) -> str:
        if not self._replica.topic_id:
            return "topics of this broker have no ids, so the stored one may be of another topic"
        if point["topic_id"] != self._replica.topic_id:
            return "the stored one is of another topic with this name"
        if {name: point[name] for name in asdict(self._replica)} != asdict(self._replica):
            return "the stored one is of another partition or specification"
        return ""

    def _drop_unknown(self, stored_values: dict[bytes, KeptValue | None], prefix: bytes) -> None:
        """Drop values that were written ahead of a batch that never followed."""
        if self._database.get(b"s" + self._digest) is None:
            return
        batch = Batch(raw_mode=True)
        batch.delete(b"s" + self._digest)
        for key, _ in self._database.scan(b"v" + self._digest):
            if stored_values.get(prefix + key[9:]) is None:
                batch.delete(key)
        self._database.write(batch)

    def _at(self, kind: bytes, key: bytes) -> bytes:
        return kind + self._digest + key[self._cut :]

    def keep(self, key: bytes, value: bytes) -> KeptValue:
        """Write a value that is longer than what stays in memory."""
        if len(value) > _START_BYTES:
            self._batch.put(self._at(b"v", key), value)
            self._batch_bytes += len(value)
            if self._batch_bytes > _BATCH_BYTES:
                self._batch.put(b"s" + self._digest, b"")
                self._write()
        return KeptValue(value[:_START_BYTES], len(value))

    def value(self, key: bytes, kept_value: KeptValue) -> bytes:
        """Return a value that was stored and committed.

        Raises:
            StoreError: if the database does not have it.
        """
        if kept_value.size_bytes == len(kept_value.start):
            return kept_value.start
        value = self._database.get(self._at(b"v", key))
        if value is None or len(value) != kept_value.size_bytes:
            raise StoreError(
                "the store lacks a value of "
                f"{self._replica.topic}[{self._replica.partition}]: delete the folder rocksdb in "
                "worker.data while no worker runs"
            )
        return value

    def commit(
        self,
        position: int,
        winner: HeadRecord | None,
        changed: Iterable[bytes],
        keys: Mapping[bytes, CellRecord | None],
    ) -> None:
        """Write all changes and the point in one batch."""
        batch = self._batch
        for key in changed:
            cell = keys.get(key)
            if cell is not None:
                stored = cell.size_bytes.to_bytes(_LENGTH_BYTES, "little") + cell.start
                batch.put(self._at(b"m", key), stored)
                continue
            batch.delete(self._at(b"v", key))
            if key in keys:
                batch.put(self._at(b"m", key), _DEAD)
            else:
                batch.delete(self._at(b"m", key))
        written = None if winner is None else _write_winner(winner)
        point = {**asdict(self._replica), "position": position, "winner": written}
        batch.put(b"p" + self._digest, json.dumps(point).encode())
        batch.delete(b"s" + self._digest)
        self._write()

    def _write(self) -> None:
        batch, self._batch, self._batch_bytes = self._batch, Batch(raw_mode=True), 0
        self._database.write(batch)

    def clear(self) -> None:
        """Drop everything stored for this replica."""
        self._batch, self._batch_bytes = Batch(raw_mode=True), 0
        _drop(self._database, self._digest)


def _write_winner(winner: HeadRecord) -> list[Any]:
    return [winner.key.hex(), winner.epoch, winner.seq, winner.offset, winner.value.hex()]


def _read_winner(written: list[Any] | None) -> HeadRecord | None:
    if written is None:
        return None
    key, epoch, seq, offset, value = written
    return HeadRecord(bytes.fromhex(key), epoch, seq, offset, bytes.fromhex(value))
