"""The keys of uploads that the broker has, in a file: what was answered once is not counted twice.

SQLite, synced before an upload is answered. Looking a key up reads through a connection of its own,
so that it does not wait for the disk. The second of an upload is cut to the minute, and rows of one
minute are in the order of their random keys: the file does not tell who came first.
"""

import fcntl
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

_FORMAT: Final = 1
_MINUTE_MS: Final = 60_000
_SCHEMA: Final = """
CREATE TABLE uploads (
    key BLOB PRIMARY KEY, digest BLOB NOT NULL, reports INTEGER NOT NULL, minute INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX by_minute ON uploads (minute, key);
"""


class RememberedError(RuntimeError):
    """The file cannot be used; the message says which and why."""


@dataclass(frozen=True)
class Upload:
    """An upload that the broker has: its key, the digest of its bytes, its number of reports."""

    key: bytes
    digest: bytes
    reports: int


class Remembered:
    """At most `most` keys, each for `keep_ms`; the oldest go first.

    One process has the file at a time. `find` belongs to the event loop's thread, `add` to one
    thread of its own.

    Raises:
        RememberedError: if the file is another's, in use, or not ours.
    """

    def __init__(self, path: Path, *, most: int, keep_ms: int) -> None:
        self._most = most
        self._keep_minutes = max(1, keep_ms // _MINUTE_MS)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = path.with_suffix(".lock").open("ab")
        except OSError as error:
            raise RememberedError(
                f"worker.data: cannot write {error.filename}: {error.strerror}"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._writer = _open(path)
            self._reader = _open(path)
        except BlockingIOError as error:
            self._lock.close()
            raise RememberedError(
                f"another gateway uses {path}: give each its own worker.data"
            ) from error
        except (sqlite3.Error, OSError) as error:
            self._lock.close()
            raise RememberedError(f"cannot use {path}: {error}") from error
        self._count: int
        (self._count,) = self._writer.execute("SELECT count(*) FROM uploads").fetchone()

    def __enter__(self) -> Self:
        """Use it for the length of a block."""
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self._writer.close()
        self._lock.close()

    @property
    def count(self) -> int:
        """Number of keys."""
        return self._count

    def find(self, key: bytes) -> Upload | None:
        """Return the upload of a key, None where it is not known (any more)."""
        select = "SELECT key, digest, reports FROM uploads WHERE key = ?"
        row = self._reader.execute(select, (key,)).fetchone()
        return None if row is None else Upload(*row)

    def add(self, uploads: Sequence[Upload], *, now_ms: int) -> None:
        """Remember uploads, on disk when this returns, and forget the oldest beyond the limits.

        Raises:
            sqlite3.Error: where it cannot be written; then none is remembered.
        """
        minute = now_ms // _MINUTE_MS
        rows = [(one.key, one.digest, one.reports, minute) for one in uploads]
        with self._writer as writer:
            before = writer.total_changes
            writer.executemany("INSERT OR IGNORE INTO uploads VALUES (?, ?, ?, ?)", rows)
            added = writer.total_changes - before
            oldest = minute - self._keep_minutes
            gone = writer.execute("DELETE FROM uploads WHERE minute < ?", (oldest,)).rowcount
            over = self._count + added - gone - self._most
            if over > 0:
                gone += writer.execute(
                    "DELETE FROM uploads WHERE key IN "
                    "(SELECT key FROM uploads ORDER BY minute, key LIMIT ?)",
                    (over,),
                ).rowcount
        self._count += added - gone


def _open(path: Path) -> sqlite3.Connection:
    if not path.exists():
        # Readable for its owner only.
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    connection = sqlite3.connect(path, check_same_thread=False)
    try:
        with closing(connection.execute("PRAGMA user_version")) as version:
            (found,) = version.fetchone()
        if found == 0:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {_FORMAT}; COMMIT;")
        elif found != _FORMAT:
            raise sqlite3.DatabaseError(  # noqa: TRY301 (the handler closes the file)
                f"expected a file of format {_FORMAT}, got {found}"
            )
        connection.execute("PRAGMA synchronous = FULL")
        # What is forgotten is overwritten, not only marked as free.
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    return connection
