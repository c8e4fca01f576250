"""Store the keys of accepted uploads in a file, so that a repeat is not counted twice.

The file is SQLite, synced before an upload is answered. Lookups use their own connection, so that
they do not wait for the disk. The time of an upload is cut to the minute, and rows of one minute
are ordered by their random keys: the file does not show who came first.
"""

import fcntl
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple, Self

_FORMAT: Final = 1
_MINUTE_MS: Final = 60_000
_SLOTS_A_KEY: Final = 8
_MOST_SLOTS: Final = 64 << 20
_UNKNOWN_COUNT: Final = 255
"""A count that has once been as large is not lowered again."""
_SCHEMA: Final = """
CREATE TABLE uploads (
    key BLOB PRIMARY KEY, digest BLOB NOT NULL, reports INTEGER NOT NULL, minute INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX by_minute ON uploads (minute, key);
"""


class UploadKeysError(RuntimeError):
    """The file cannot be used; the message names it and says why."""


class Upload(NamedTuple):
    """An accepted upload: its key, the digest of its bytes, its number of reports."""

    key: bytes
    digest: bytes
    reports: int


class UploadKeys:
    """At most `most` keys, each for `keep_ms`; the oldest are dropped first.

    Only one process may use the file at a time. Call `find` in the event loop's thread, and `add`
    always in the same other thread.
    """

    def __init__(self, path: Path, *, most: int, keep_ms: int) -> None:
        self._most = most
        self._keep_minutes = max(1, keep_ms // _MINUTE_MS)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = path.with_suffix(".lock").open("ab")
        except OSError as error:
            raise UploadKeysError(
                f"worker.data: cannot write {error.filename}: {error.strerror}"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._writer = _open(path)
            self._reader = _open(path)
        except BlockingIOError as error:
            self._lock.close()
            raise UploadKeysError(
                f"another gateway uses {path}: give each its own worker.data"
            ) from error
        except (sqlite3.Error, OSError) as error:
            self._lock.close()
            raise UploadKeysError(f"cannot use {path}: {error}") from error
        self._count = 0
        # How many stored keys have a hash, so that most new keys need no lookup. A count may be too
        # large, never too small.
        self._counts = bytearray(min(_SLOTS_A_KEY * most, _MOST_SLOTS))
        for (key,) in self._writer.execute("SELECT key FROM uploads"):
            self._count += 1
            self._increment(key)

    def __enter__(self) -> Self:
        """Use it during a block, and close the file at its end."""
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self._writer.close()
        self._lock.close()

    @property
    def count(self) -> int:
        """The number of keys."""
        return self._count

    def find(self, key: bytes) -> Upload | None:
        """Return the upload of a key, None if it is not (or no longer) known."""
        if not self._counts[self._slot(key)]:
            return None
        select = "SELECT key, digest, reports FROM uploads WHERE key = ?"
        row = self._reader.execute(select, (key,)).fetchone()
        return None if row is None else Upload(*row)

    def add(self, uploads: Sequence[Upload], *, now_ms: int) -> None:
        """Store uploads, on disk when this returns, and drop the oldest beyond the limits.

        Raises:
            sqlite3.Error: if it cannot be written; then none is stored.
        """
        minute = now_ms // _MINUTE_MS
        rows = [(*upload, minute) for upload in uploads]
        for upload in uploads:
            self._increment(upload.key)
        dropped: list[tuple[bytes]] = []
        with self._writer as writer:
            before = writer.total_changes
            writer.executemany("INSERT OR IGNORE INTO uploads VALUES (?, ?, ?, ?)", rows)
            added = writer.total_changes - before
            oldest = minute - self._keep_minutes
            old = "DELETE FROM uploads WHERE minute < ? RETURNING key"
            dropped += writer.execute(old, (oldest,)).fetchall()
            over = self._count + added - len(dropped) - self._most
            if over > 0:
                first = (
                    "DELETE FROM uploads WHERE key IN "
                    "(SELECT key FROM uploads ORDER BY minute, key LIMIT ?) RETURNING key"
                )
                dropped += writer.execute(first, (over,)).fetchall()
        self._count += added - len(dropped)
        for (key,) in dropped:
            self._decrement(key)

    def _slot(self, key: bytes) -> int:
        return int.from_bytes(key[:8], "big") % len(self._counts)

    def _increment(self, key: bytes) -> None:
        slot = self._slot(key)
        self._counts[slot] = min(self._counts[slot] + 1, _UNKNOWN_COUNT)

    def _decrement(self, key: bytes) -> None:
        slot = self._slot(key)
        if self._counts[slot] < _UNKNOWN_COUNT:
            self._counts[slot] -= 1


def _open(path: Path) -> sqlite3.Connection:
    if not path.exists():
        # Only the owner can read it.
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    connection = sqlite3.connect(path, check_same_thread=False)
    try:
        with closing(connection.execute("PRAGMA user_version")) as version:
            (file_format,) = version.fetchone()
        if file_format == 0:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {_FORMAT}; COMMIT;")
        elif file_format != _FORMAT:
            raise sqlite3.DatabaseError(  # noqa: TRY301 (the handler closes the file)
                f"expected a file of format {_FORMAT}, got {file_format}"
            )
        connection.execute("PRAGMA synchronous = FULL")
        # Overwrite dropped rows, instead of only marking them as free.
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    return connection
