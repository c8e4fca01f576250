"""The journal of `send --id`: the drawn reports of one input, on disk before any is sent.

One SQLite file, locked while it is open. It holds frames, which are randomised, and a salted digest
that recognises the same input again; never a value.
"""

import hashlib
import io
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from ldpstream.agents.terminal.errors import Failed, Refused
from ldpstream.mechanisms.ledger.file import transaction

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_APPLICATION: Final = 0x6C647053
_VERSION: Final = 1
_PIECE_BYTES: Final = 1 << 20
_MOST_FRAMES: Final = 500
_MOST_BYTES: Final = 4 << 20
_TABLES: Final = (
    """CREATE TABLE input (
    id TEXT NOT NULL, topic TEXT NOT NULL, topic_id TEXT, fingerprint TEXT NOT NULL,
    salt BLOB NOT NULL, digest BLOB NOT NULL, reports INTEGER NOT NULL, frames INTEGER NOT NULL,
    begun INTEGER NOT NULL DEFAULT 0, begun_ms INTEGER NOT NULL DEFAULT 0,
    sent INTEGER NOT NULL DEFAULT 0
)""",
    """CREATE TABLE frame (
    number INTEGER PRIMARY KEY, reports INTEGER NOT NULL, bytes BLOB NOT NULL
)""",
)


class Digested(io.RawIOBase):
    """A stream that hashes what is read from it."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream
        self._hash = hashlib.sha256()
        self.name = getattr(stream, "name", None)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fill a buffer as far as the stream goes, and hash what was read."""
        view = memoryview(buffer)
        piece = self._stream.read(view.nbytes)
        view[: len(piece)] = piece
        self._hash.update(piece)
        return len(piece)

    def digest(self) -> bytes:
        """Read the stream to its end, and return the SHA-256 of all of it."""
        while piece := self._stream.read(_PIECE_BYTES):
            self._hash.update(piece)
        return self._hash.digest()


@dataclass(frozen=True)
class Input:
    """The input of a journal, and how far it has been sent: the columns of its row."""

    id: str
    """Random, and unique to this journal."""
    topic: str
    topic_id: str | None
    fingerprint: str
    reports: int
    frames: int
    begun: int
    """End (exclusive) of the last transaction that was begun; it may have been committed."""
    begun_ms: int
    """When that transaction was begun, epoch milliseconds."""
    sent: int
    """Frames below this one are known to be committed."""
    salt: bytes
    digested: bytes

    def came_from(self, digest: bytes) -> bool:
        """Return whether the input has this SHA-256."""
        return secrets.compare_digest(_salted(digest, self.salt), self.digested)


class Journal:
    """The frames of one input. Every method makes one change to the file, durable on return.

    Raises:
        Refused: where the file cannot be written, or is not a journal.
        Failed: where another process has it open.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            _make_folder(path.parent)
            # Readable by its owner only, from the start.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            why = f"{path}: cannot write the journal of --id: {error.strerror}"
            raise Refused(f"{why}; choose another --journal") from error
        self._db = sqlite3.connect(path, isolation_level=None, timeout=0)
        try:
            with self._explained():
                # With `BEGIN EXCLUSIVE` this keeps the lock until the file is closed.
                self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
                self._db.execute("PRAGMA synchronous = EXTRA")
                self._db.execute("PRAGMA secure_delete = ON")
                self._db.execute("BEGIN EXCLUSIVE")
                self._create()
                self._db.execute("COMMIT")
        except BaseException:
            self._db.close()
            raise

    def _create(self) -> None:
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if (application, version, tables) == (0, 0, 0):
            self._db.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._db.execute(f"PRAGMA user_version = {_VERSION}")
            for table in _TABLES:
                self._db.execute(table)
        elif (application, version) != (_APPLICATION, _VERSION):
            raise Refused(f"{self.path} is not a journal of send --id: choose another --journal")

    def close(self) -> None:
        """Close the file, and release its lock."""
        self._db.close()

    def read(self) -> Input | None:
        """Return the journal's input; None where nothing has been drawn."""
        with self._explained():
            row = self._db.execute(
                "SELECT id, topic, topic_id, fingerprint, reports, frames, begun, begun_ms, sent, "
                "salt, digest FROM input"
            ).fetchone()
        return None if row is None else Input(*row)

    def draw(
        self,
        frames: Iterator[tuple[bytes, int]],
        source: Digested,
        *,
        topic: str,
        topic_id: str | None,
        fingerprint: str,
    ) -> None:
        """Store the frames of a whole input, with their numbers of reports: all of them, or none.

        Nothing may be sent before this returns, so an interrupted draw has disclosed nothing, and
        the next one starts over.
        """
        with self._writing():
            reports = number = 0
            for number, (frame, holds) in enumerate(frames, start=1):
                self._db.execute("INSERT INTO frame VALUES (?, ?, ?)", (number - 1, holds, frame))
                reports += holds
            salt = secrets.token_bytes(16)
            self._db.execute(
                "INSERT INTO input (id, topic, topic_id, fingerprint, salt, digest, reports, "
                "frames) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    secrets.token_hex(16),
                    topic,
                    topic_id,
                    fingerprint,
                    salt,
                    _salted(source.digest(), salt),
                    reports,
                    number,
                ),
            )

    def frames(self, start: int) -> list[tuple[bytes, int]]:
        """Return the frames of one transaction, from `start` on, with their numbers of reports."""
        found: list[tuple[bytes, int]] = []
        size = 0
        with self._explained():
            rows = self._db.execute(
                "SELECT bytes, reports FROM frame WHERE number >= ? ORDER BY number LIMIT ?",
                (start, _MOST_FRAMES),
            )
            for frame, reports in rows:
                found.append((frame, reports))
                size += len(frame)
                if size >= _MOST_BYTES:
                    break
        return found

    def begin(self, until: int, *, now_ms: int) -> None:
        """Record that the frames below `until` are about to be committed."""
        with self._writing():
            self._db.execute("UPDATE input SET begun = ?, begun_ms = ?", (until, now_ms))

    def mark_sent(self, until: int) -> None:
        """Record that the frames below `until` have been committed, and delete their bytes."""
        with self._writing():
            self._db.execute("UPDATE input SET sent = ?, begun = ?", (until, until))
            self._db.execute("DELETE FROM frame WHERE number < ?", (until,))

    def reports_before(self, number: int, reports: int) -> int:
        """Return how many of all `reports` are in the frames below `number`."""
        with self._explained():
            (rest,) = self._db.execute(
                "SELECT coalesce(sum(reports), 0) FROM frame WHERE number >= ?", (number,)
            ).fetchone()
        return reports - int(rest)

    def _writing(self) -> AbstractContextManager[None]:
        return transaction(self._db, self._explained)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise Failed(f"{self.path}: another send --id uses this journal") from error
            raise Failed(f"{self.path}: cannot write the journal of --id: {error}") from error
        except sqlite3.DatabaseError as error:
            raise Refused(f"{self.path} is not a journal of send --id: {error}") from error


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents, each synced so that it survives a power failure."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    number = os.open(folder.parent, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _salted(digest: bytes, salt: bytes) -> bytes:
    """Return what the journal stores for a SHA-256: slow to compute for guesses of small inputs."""
    return hashlib.scrypt(digest, salt=salt, n=1 << 14, r=8, p=1)
