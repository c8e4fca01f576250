"""The database of a worker's local store: RocksDB, in its own directory.

It is only a copy of what is in the changelogs, and can be deleted while no worker runs. So a
damaged database, or one of another format, is discarded. `rocks_store` specifies its contents.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
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

from ldpstream.agents.state.cell_store import StoreError

FORMAT: Final = b"ldpstream 1"
_CACHE_BYTES: Final = 16 << 20
_BUFFER_BYTES: Final = 8 << 20
_OPEN_FILES: Final = 128
_Result = TypeVar("_Result")

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
        found = self.get(b"format")
        if found not in (None, FORMAT):
            self._destroy(f"it has format {found!r}, and this release writes {FORMAT!r}")
        self.write_pairs([(b"format", FORMAT)])

    def _open(self) -> Rdict:
        try:
            return Rdict(str(self._path), _options())
        except Exception as error:  # rocksdict raises plain Exception alone
            said = str(error)
            if "lock" in said.lower():
                raise StoreError(
                    f"{self._path} is in use by another worker: give each its own worker.data"
                ) from error
            if not said.startswith(("Corruption", "Invalid argument")):
                raise StoreError(f"cannot open {self._path}: {said}") from error
            log.warning("%s is damaged, and rebuilt from the changelogs: %s", self._path, said)
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
        found = self._guarded(lambda: self._database.get(key))
        assert found is None or isinstance(found, bytes)
        return found

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
