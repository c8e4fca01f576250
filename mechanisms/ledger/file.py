"""The file of a ledger, which is created whole or not at all, and never over an existing file.

SQLite takes a file of zero bytes or one byte for an empty database, and reads what is missing of
the last page as zeros. A truncated ledger would seem to have spent nothing, so that its length is
checked here.
"""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from ldpstream.mechanisms.ledger.errors import LedgerError

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


def open_ledger_file(path: Path) -> sqlite3.Connection:
    """Return a connection in autocommit mode to a ledger, which is created if it is missing.

    Raises:
        LedgerError: if the file cannot be written, or exists but is not a whole ledger.
    """
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
