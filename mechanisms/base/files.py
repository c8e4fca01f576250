"""Replace a file as a whole: readers see the old one or the new one, also after a failure."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def check_replaceable(path: str | Path) -> None:
    """Check that a new file in place of this one replaces no folder and no device."""
    if Path(path).exists() and not Path(path).is_file():
        kind = "a folder" if Path(path).is_dir() else "something else"
        raise ValueError(f"{path}: expected a file, got {kind}")


@contextmanager
def replaced_file(path: str | Path, *, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Write a file during a block, beside `path`, which it replaces at the end, synced to disk.

    A symbolic link stays, and leads to the new file. A block that fails leaves the old file and
    nothing else: of a full disk it frees the space. Of the `mode` the process's umask is taken. Of
    several writers the last one to begin replaces the file, and the others raise.

    Raises:
        ValueError: as `check_replaceable`.
        OSError: where it cannot be written.
    """
    check_replaceable(path)
    target = Path(path).resolve()
    unfinished = Path(f"{target}.unfinished")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    own = os.fstat(descriptor)

    def is_own() -> bool:
        return unfinished.exists() and os.path.samestat(own, unfinished.stat())

    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if not is_own():
            raise OSError(errno.EBUSY, "another process writes it as well", str(path))
        unfinished.replace(target)
    finally:
        if is_own():
            unfinished.unlink()
