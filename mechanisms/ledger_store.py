"""The ledger on disk: one SQLite file, written and synced before anything is released.

It holds reports, which are randomised, and never a value. Every change is one transaction: after a
kill -9 or a power failure it has happened whole, or not at all.
"""

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ldpstream.mechanisms.ledger_errors import LedgerError

_APPLICATION = 0x6C647042
_VERSION = 1
_WAIT_SECONDS = 30.0
_TABLES = """
CREATE TABLE spec (
    fingerprint BLOB PRIMARY KEY, name TEXT NOT NULL, window_ms INTEGER NOT NULL,
    loss TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE release (
    fingerprint BLOB NOT NULL REFERENCES spec, start_ms INTEGER NOT NULL,
    time_ms INTEGER NOT NULL, report BLOB, sent INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (fingerprint, start_ms)
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Known:
    """A spec that has been charged: its windows' length, and the exact loss of one report."""

    fingerprint: bytes
    name: str
    window_ms: int
    loss: Fraction


@dataclass(frozen=True)
class Row:
    """A window's report with its cut time; None where it has been forgotten."""

    time_ms: int
    report: bytes | None
    sent: bool


class LedgerStore:
    """The tables; every method but `close` belongs inside `writing` or `reading`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            # Readable for its owner only, from the start.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise LedgerError(f"{path}: expected a writable file: {error.strerror}") from error
        self._db = sqlite3.connect(path, isolation_level=None, timeout=_WAIT_SECONDS)
        try:
            with self._explained():
                # EXTRA syncs the folder too: what is committed survives a power failure.
                self._db.execute("PRAGMA synchronous = EXTRA")
                # What is forgotten is overwritten, not only marked as free.
                self._db.execute("PRAGMA secure_delete = ON")
                self._create_or_check()
        except BaseException:
            self._db.close()
            raise

    def _create_or_check(self) -> None:
        with self.writing():
            if self._number("application_id") == 0 and not self._tables():
                self._db.execute(f"PRAGMA application_id = {_APPLICATION}")
                self._db.execute(f"PRAGMA user_version = {_VERSION}")
                for statement in filter(str.strip, _TABLES.split(";")):
                    self._db.execute(statement)
            found = self._number("application_id"), self._number("user_version")
        if found != (_APPLICATION, _VERSION):
            raise LedgerError(f"{self._path}: expected a ledger of version {_VERSION}")

    def _number(self, pragma: str) -> int:
        (number,) = self._db.execute(f"PRAGMA {pragma}").fetchone()
        return int(number)

    def _tables(self) -> bool:
        return bool(self._db.execute("SELECT 1 FROM sqlite_master").fetchone())

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise LedgerError(
                f"{self._path}: expected a ledger that can be used: {error}"
            ) from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Change the file as a whole: durable when the block ends, undone if it raises.

        Only one process at a time is inside.
        """
        with self._explained():
            self._db.execute("BEGIN IMMEDIATE")
        try:
            with self._explained():
                yield
                self._db.execute("COMMIT")
        except BaseException:
            # A full disk may have ended it already.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read one state of the file."""
        with self._explained():
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.execute("ROLLBACK")

    def secret(self, fresh: bytes) -> bytes:
        """Return the secret of the file; the first call gives it the fresh one."""
        # Only files that are asked for one have the table, so earlier releases read them all.
        self._db.execute("CREATE TABLE IF NOT EXISTS secret (secret BLOB NOT NULL)")
        row = self._db.execute("SELECT secret FROM secret").fetchone()
        if row is not None:
            return bytes(row[0])
        self._db.execute("INSERT INTO secret VALUES (?)", (fresh,))
        return fresh

    def specs(self) -> dict[bytes, Known]:
        """Return all specs that have been charged, by fingerprint."""
        rows = self._db.execute("SELECT fingerprint, name, window_ms, loss FROM spec")
        return {row[0]: Known(row[0], row[1], row[2], self._read_loss(row[3])) for row in rows}

    def _read_loss(self, text: str) -> Fraction:
        if re.fullmatch("[1-9][0-9]*(/[1-9][0-9]*)?", text):
            return Fraction(text)
        raise LedgerError(f"{self._path}: expected losses above 0: the file is damaged")

    def add_spec(self, known: Known) -> None:
        """Add a spec."""
        self._db.execute(
            "INSERT INTO spec VALUES (?, ?, ?, ?)",
            (known.fingerprint, known.name, known.window_ms, str(known.loss)),
        )

    def find(self, fingerprint: bytes, start_ms: int) -> Row | None:
        """Return a window's report, or None where there was none."""
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
        """Say that a window's report has arrived."""
        self._db.execute(
            "UPDATE release SET sent = 1 WHERE fingerprint = ? AND start_ms = ?",
            (fingerprint, start_ms),
        )

    def forget(self, fingerprint: bytes, before_ms: int) -> int:
        """Drop the reports, but not the charges, of windows that start before; return how many."""
        return self._db.execute(
            "UPDATE release SET report = NULL "
            "WHERE fingerprint = ? AND start_ms < ? AND report IS NOT NULL",
            (fingerprint, before_ms),
        ).rowcount

    def starts(self, fingerprint: bytes, span_ms: tuple[int, int] | None = None) -> list[int]:
        """Return the starts of the windows charged, ascending; of those inside a span, or all."""
        low, high = (-(1 << 62), 1 << 62) if span_ms is None else span_ms
        rows = self._db.execute(
            "SELECT start_ms FROM release WHERE fingerprint = ? AND start_ms >= ? AND start_ms < ? "
            "ORDER BY start_ms",
            (fingerprint, low, high),
        )
        return [start for (start,) in rows]

    def count(self, fingerprint: bytes, span_ms: tuple[int, int] | None) -> int:
        """Return the number of windows charged inside a span, or of all."""
        low, high = (-(1 << 62), 1 << 62) if span_ms is None else span_ms
        (number,) = self._db.execute(
            "SELECT count(*) FROM release WHERE fingerprint = ? AND start_ms >= ? AND start_ms < ?",
            (fingerprint, low, high),
        ).fetchone()
        return int(number)
