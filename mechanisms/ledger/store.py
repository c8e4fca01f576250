"""The ledger on disk: a SQLite file that is written and synced before anything is released.

It holds reports and permanent draws, which are randomised, and never a value. Every change is one
transaction: after a kill -9 or a power failure it has happened entirely or not at all.

The file is created whole or not at all, and never over an existing file. SQLite takes a file of
zero bytes or one byte for an empty database, and reads what is missing of the last page as zeros. A
truncated ledger would seem to have spent nothing, so that its length is checked here.
"""

import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from ldpstream.mechanisms.ledger.errors import LedgerError

DrawnKey = tuple[bytes, str, int, int]
"""Fingerprint, start of the period or "rolling", number of windows, and number of drawn ones."""
# This table and that of the secret are created on first use, so that earlier releases can read all
# files that do not need them.
_DRAWN: Final = """CREATE TABLE IF NOT EXISTS drawn (
    fingerprint BLOB NOT NULL, period TEXT NOT NULL, windows INTEGER NOT NULL,
    reports INTEGER NOT NULL, numbers TEXT NOT NULL,
    PRIMARY KEY (fingerprint, period, windows, reports)
) WITHOUT ROWID"""

_HELD: Final = """CREATE TABLE IF NOT EXISTS held (
    fingerprint BLOB NOT NULL, start_ms INTEGER NOT NULL, end_ms INTEGER NOT NULL, report BLOB,
    PRIMARY KEY (fingerprint, start_ms)
) WITHOUT ROWID"""
_EPOCHS: Final = """SELECT held.start_ms, held.end_ms, count(*) FROM held JOIN release
    ON release.fingerprint = held.fingerprint
    AND release.start_ms >= held.start_ms AND release.start_ms < held.end_ms
    WHERE held.fingerprint = ? AND release.start_ms > ? AND release.start_ms < ?
    GROUP BY held.start_ms ORDER BY held.start_ms"""

_APPLICATION = 0x6C647042
_VERSION = 1
_WAIT_SECONDS = 30.0
_TABLES = (
    """CREATE TABLE spec (
    fingerprint BLOB PRIMARY KEY, name TEXT NOT NULL, window_ms INTEGER NOT NULL,
    loss TEXT NOT NULL
) WITHOUT ROWID""",
    """CREATE TABLE release (
    fingerprint BLOB NOT NULL REFERENCES spec, start_ms INTEGER NOT NULL,
    time_ms INTEGER NOT NULL, report BLOB, sent INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (fingerprint, start_ms)
) WITHOUT ROWID""",
)


@dataclass(frozen=True)
class Epoch:
    """An epoch `[start, end)` with its permanent report, None if that has been forgotten."""

    start_ms: int
    end_ms: int
    report: bytes | None


@dataclass(frozen=True)
class Charged:
    """One charge: for a window's report, or for all reports of an epoch within a span."""

    start_ms: int
    end_ms: int
    reports: int = 1


@dataclass(frozen=True)
class Known:
    """A spec with charges: the length of its windows and the exact loss of one report."""

    fingerprint: bytes
    name: str
    window_ms: int
    loss: Fraction


@dataclass(frozen=True)
class Row:
    """A window's cut time and report, None if the report has been forgotten."""

    time_ms: int
    report: bytes | None
    sent: bool


class LedgerStore:
    """The tables of a ledger; all methods but `close` are called inside `writing` or `reading`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = open_ledger_file(path)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def writing(self) -> AbstractContextManager[None]:
        """Run a block as one transaction (`file.transaction`)."""
        return transaction(self._db, self.path)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Run a block on one consistent state of the file."""
        with explained(self.path):
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.execute("ROLLBACK")

    def secret(self, fresh: bytes) -> bytes:
        """Return the secret of the file, which the first call sets to `fresh`."""
        self._db.execute("CREATE TABLE IF NOT EXISTS secret (secret BLOB NOT NULL)")
        row = self._db.execute("SELECT secret FROM secret").fetchone()
        if row is not None:
            return bytes(row[0])
        self._db.execute("INSERT INTO secret VALUES (?)", (fresh,))
        return fresh

    def drawn(self, key: DrawnKey) -> frozenset[int] | None:
        """Return the windows that were drawn under a key, or None."""
        self._db.execute(_DRAWN)
        row = self._db.execute(
            "SELECT numbers FROM drawn "
            "WHERE fingerprint = ? AND period = ? AND windows = ? AND reports = ?",
            key,
        ).fetchone()
        if row is None:
            return None
        *_, windows, reports = key
        numbers = [int(number) for number in str(row[0]).split(",") if number.isdecimal()]
        if len(set(numbers)) != reports or max(numbers, default=windows) >= windows:
            raise LedgerError(
                f"{self.path}: expected {reports} of {windows} windows drawn: the file is damaged"
            )
        return frozenset(numbers)

    def add_drawn(self, key: DrawnKey, numbers: frozenset[int]) -> None:
        """Store the windows that were drawn under a key, so that they outlive the secret."""
        text = ",".join(str(number) for number in sorted(numbers))
        self._db.execute("INSERT INTO drawn VALUES (?, ?, ?, ?, ?)", (*key, text))

    def specs(self) -> dict[bytes, Known]:
        """Return all specs that have been charged, by fingerprint."""
        rows = self._db.execute("SELECT fingerprint, name, window_ms, loss FROM spec")
        return {row[0]: Known(row[0], row[1], row[2], self._read_loss(row[3])) for row in rows}

    def _read_loss(self, text: str) -> Fraction:
        if re.fullmatch("[1-9][0-9]*(/[1-9][0-9]*)?", text):
            return Fraction(text)
        raise LedgerError(f"{self.path}: expected losses above 0: the file is damaged")

    def add_spec(self, known: Known) -> None:
        """Add a spec."""
        self._db.execute(
            "INSERT INTO spec VALUES (?, ?, ?, ?)",
            (known.fingerprint, known.name, known.window_ms, str(known.loss)),
        )

    def epoch(self, fingerprint: bytes, start_ms: int) -> Epoch | None:
        """Return the epoch that holds the window starting at a time, or None if none was drawn."""
        if not self._holds:
            return None
        row = self._db.execute(
            "SELECT start_ms, end_ms, report FROM held "
            "WHERE fingerprint = ? AND start_ms <= ? AND end_ms > ? ORDER BY start_ms",
            (fingerprint, start_ms, start_ms),
        ).fetchone()
        return None if row is None else Epoch(*row)

    def add_epoch(self, fingerprint: bytes, epoch: Epoch) -> None:
        """Store an epoch's permanent report, so that it outlives the secret."""
        self._db.execute(_HELD)
        self._db.execute(
            "INSERT INTO held VALUES (?, ?, ?, ?)",
            (fingerprint, epoch.start_ms, epoch.end_ms, epoch.report),
        )

    @property
    def _holds(self) -> bool:
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'held'"
        return self._db.execute(query).fetchone() is not None

    def _is_held(self, fingerprint: bytes) -> bool:
        if not self._holds:
            return False
        query = "SELECT 1 FROM held WHERE fingerprint = ?"
        return self._db.execute(query, (fingerprint,)).fetchone() is not None

    def find(self, fingerprint: bytes, start_ms: int) -> Row | None:
        """Return the report of a window, or None if there was none."""
        row = self._db.execute(
            "SELECT time_ms, report, sent FROM release WHERE fingerprint = ? AND start_ms = ?",
            (fingerprint, start_ms),
        ).fetchone()
        return None if row is None else Row(row[0], row[1], bool(row[2]))

    def add(self, fingerprint: bytes, start_ms: int, time_ms: int, report: bytes) -> None:
        """Add a window's report."""
        self._db.execute(
            "INSERT INTO release VALUES (?, ?, ?, ?, 0)", (fingerprint, start_ms, time_ms, report)
        )

    def mark_sent(self, fingerprint: bytes, start_ms: int) -> None:
        """Record that a window's report has arrived."""
        self._db.execute(
            "UPDATE release SET sent = 1 WHERE fingerprint = ? AND start_ms = ?",
            (fingerprint, start_ms),
        )

    def forget(self, fingerprint: bytes, before_ms: int, *, window_ms: int) -> int:
        """Drop the reports, not the charges, of windows that start before a time; return how many.

        A permanent report is dropped with the last window of its epoch.
        """
        if self._is_held(fingerprint):
            self._db.execute(
                "UPDATE held SET report = NULL WHERE fingerprint = ? AND end_ms - ? < ?",
                (fingerprint, window_ms, before_ms),
            )
        return self._db.execute(
            "UPDATE release SET report = NULL "
            "WHERE fingerprint = ? AND start_ms < ? AND report IS NOT NULL",
            (fingerprint, before_ms),
        ).rowcount

    def starts(
        self, fingerprint: bytes, span_ms: tuple[int, int] | None, *, window_ms: int
    ) -> list[int]:
        """Return the starts, ascending, of the charged windows that overlap a span, or of all.

        Windows of an earlier configuration may be longer than a period or overlap two periods.
        """
        rows = self._db.execute(
            "SELECT start_ms FROM release WHERE fingerprint = ? AND start_ms > ? AND start_ms < ? "
            "ORDER BY start_ms",
            (fingerprint, *_starts_between(span_ms, window_ms)),
        )
        return [start for (start,) in rows]

    def charged(
        self, fingerprint: bytes, span_ms: tuple[int, int] | None, *, window_ms: int
    ) -> list[Charged]:
        """Return the charges, ascending, for the windows that overlap a span, or for all.

        Windows with a permanent report are charged by epoch.
        """
        if not self._is_held(fingerprint):
            starts = self.starts(fingerprint, span_ms, window_ms=window_ms)
            return [Charged(start, start + window_ms) for start in starts]
        rows = self._db.execute(_EPOCHS, (fingerprint, *_starts_between(span_ms, window_ms)))
        return [Charged(*row) for row in rows]

    def count(self, fingerprint: bytes, span_ms: tuple[int, int] | None, *, window_ms: int) -> int:
        """Return the number of charges for the windows that overlap a span, or for all."""
        if self._is_held(fingerprint):
            return len(self.charged(fingerprint, span_ms, window_ms=window_ms))
        (number,) = self._db.execute(
            "SELECT count(*) FROM release WHERE fingerprint = ? AND start_ms > ? AND start_ms < ?",
            (fingerprint, *_starts_between(span_ms, window_ms)),
        ).fetchone()
        return int(number)


def _starts_between(span_ms: tuple[int, int] | None, window_ms: int) -> tuple[int, int]:
    """Return exclusive bounds on the starts of windows that overlap a span."""
    return (-(1 << 62), 1 << 62) if span_ms is None else (span_ms[0] - window_ms, span_ms[1])


def open_ledger_file(path: Path) -> sqlite3.Connection:
    """Return a connection in autocommit mode to a ledger, which is created if it is missing."""
    try:
        if not path.exists():
            _make(path)
        # The system's error says why; SQLite's would only say that the file cannot be opened.
        os.close(os.open(path, os.O_RDWR))
    except OSError as error:
        raise LedgerError(f"{path}: expected a writable file: {error.strerror}") from error
    with explained(path):
        # Never create the file here: a ledger that was removed just now would seem unspent.
        database = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw",
            uri=True,
            isolation_level=None,
            timeout=_WAIT_SECONDS,
        )
    try:
        with explained(path):
            # EXTRA syncs the folder too: what is committed survives a power failure.
            database.execute("PRAGMA synchronous = EXTRA")
            # Deleted reports are overwritten, not only marked as free.
            database.execute("PRAGMA secure_delete = ON")
            _check(database, path)
    except BaseException:
        database.close()
        raise
    return database


@contextmanager
def transaction(database: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Run a block as one transaction: durable once the block ends, undone if it raises.

    One process at a time can be inside.
    """
    with explained(path):
        database.execute("BEGIN IMMEDIATE")
    try:
        with explained(path):
            yield
            database.execute("COMMIT")
    except BaseException:
        # A full disk may have ended the transaction already.
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors about a file into a `LedgerError`."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise LedgerError(f"{path}: expected a ledger that can be used: {error}") from error


def _make(path: Path) -> None:
    """Create a whole ledger; if another process creates one first, keep that one.

    Nothing is synced here: the first report that is charged syncs the file and its folder.
    """
    # Readable for its owner only, from the start.
    number, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".new", dir=path.parent)
    os.close(number)
    made = Path(name)
    try:
        with explained(path), closing(sqlite3.connect(made, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = MEMORY")
            database.execute("BEGIN")
            database.execute(f"PRAGMA application_id = {_APPLICATION}")
            database.execute(f"PRAGMA user_version = {_VERSION}")
            for table in _TABLES:
                database.execute(table)
            database.execute("COMMIT")
        _put(made, path)
    finally:
        made.unlink()


def _put(made: Path, path: Path) -> None:
    try:
        # Unlike a rename, a link never replaces an existing file.
        os.link(made, path)
    except FileExistsError:
        return
    except OSError:
        # The file system has no links. A process that is killed while writing leaves a truncated
        # file, which is refused.
        with suppress(FileExistsError):
            number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(number, "wb") as file:
                file.write(made.read_bytes())
                os.fsync(file.fileno())


def _check(database: sqlite3.Connection, path: Path) -> None:
    database.execute("BEGIN")
    try:
        numbers = _number(database, "application_id"), _number(database, "user_version")
        expected_bytes = _number(database, "page_count") * _number(database, "page_size")
        # While this transaction reads, nobody else writes to the file.
        found_bytes = path.stat().st_size
    finally:
        database.execute("ROLLBACK")
    if numbers != (_APPLICATION, _VERSION):
        raise LedgerError(
            f"{path}: expected a ledger of version {_VERSION}, or no file; got another file of "
            f"{found_bytes} bytes"
        )
    if found_bytes < expected_bytes:
        raise LedgerError(
            f"{path}: expected a ledger of {expected_bytes} bytes, got one cut short at "
            f"{found_bytes}"
        )


def _number(database: sqlite3.Connection, pragma: str) -> int:
    (number,) = database.execute(f"PRAGMA {pragma}").fetchone()
    return int(number)
