"""Back-ups as files: what is written is read, and damaged or foreign ones are refused by name."""

import errno
import gzip
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ldpstream.agents.cli.backup import (
    Description,
    Record,
    contexts,
    read_description,
    read_records,
    write_backup,
)
from ldpstream.agents.config import load_config
from ldpstream.agents.state.encoding import state_prefix
from ldpstream.mechanisms.base.files import replaced_file
from tests.stream.cli import configured, invoke, refused

RECORDS = [Record(1, b"\0key", bytes(range(256))), Record(0, b"head", b"")]


def described(file: str, **changes: Any) -> Description:
    """Return the first line of a back-up of `modes`, of one partition."""
    collection = load_config(file).collections["modes"]
    known: dict[str, Any] = {
        "collection": "modes",
        "time": "2026-01-01T00:00:00Z",
        "workers": 0,
        "source": "modes.reports",
        "source_id": "",
        "states": [state_prefix(one).hex() for one in contexts(collection)],
        "next": [0] * collection.partitions,
        "uncounted": 0,
        "last": [None] * collection.partitions,
    }
    return Description(**known | changes)


def restored(file: str, backup: Path, *options: str) -> str:
    words = ["reset", "-c", file, "--restore", str(backup), "--yes", *options, "modes"]
    return refused(invoke(*words))


def test_what_is_written_is_read(tmp_path: Path):
    file, backup = configured(tmp_path), tmp_path / "modes.backup"
    size = write_backup(backup, described(file), RECORDS)
    assert read_description(backup) == described(file)
    assert list(read_records(backup)) == RECORDS
    assert (size, backup.stat().st_mode & 0o777) == (backup.stat().st_size, 0o600)
    write_backup(backup, described(file), [])
    assert list(read_records(backup)) == []
    assert [path.name for path in tmp_path.iterdir() if "unfinished" in path.name] == []


def test_of_two_writers_of_a_file_the_later_one_ends_it(tmp_path: Path):
    file = tmp_path / "modes.backup"
    file.write_bytes(b"old")
    earlier = ExitStack()
    earlier.enter_context(replaced_file(file)).write(b"first")
    with replaced_file(file) as second:
        second.write(b"sec")
        with pytest.raises(OSError, match="another process"):
            earlier.close()
        assert file.read_bytes() == b"old"
        second.write(b"ond")
    assert file.read_bytes() == b"second"
    assert [*tmp_path.iterdir()] == [file]


def test_only_files_are_replaced(tmp_path: Path):
    """As root a device such as /dev/full would become a file, and the back-up seem to succeed."""
    file, pipe = configured(tmp_path), tmp_path / "pipe"
    os.mkfifo(pipe)
    said = refused(invoke("backup", "-c", file, "modes", str(pipe)))
    assert said == f"{pipe}: expected a file, got something else"
    assert pipe.is_fifo()


def test_a_full_disk_leaves_the_old_back_up_and_nothing_else(tmp_path: Path):
    file, backup = configured(tmp_path), tmp_path / "modes.backup"
    write_backup(backup, described(file), RECORDS)

    def full() -> Iterator[Record]:
        yield RECORDS[0]
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_backup(backup, described(file), full())
    assert list(read_records(backup)) == RECORDS
    assert {path.name for path in tmp_path.iterdir()} == {"ldpstream.toml", "modes.backup"}


def test_any_part_of_a_back_up_is_refused(tmp_path: Path):
    file, backup = configured(tmp_path), tmp_path / "modes.backup"
    write_backup(backup, described(file), RECORDS * 20)
    whole = backup.read_bytes()
    for length in (*range(0, len(whole), 9), *range(len(whole) - 9, len(whole))):
        backup.write_bytes(whole[:length])
        assert restored(file, backup).startswith(f"{backup}: ")
    backup.write_bytes(whole[:90] + bytes([whole[90] ^ 1]) + whole[91:])
    assert restored(file, backup).startswith(f"{backup}: ")


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", gzip.compress(b"{}\n", mtime=0), gzip.compress(b"no JSON", mtime=0)],
    ids=["empty", "plain", "no fields", "no JSON"],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes):
    backup = tmp_path / "modes.backup"
    backup.write_bytes(content)
    assert restored(configured(tmp_path), backup).startswith(f"{backup}: ")


def test_a_back_up_of_another_configuration_is_refused(tmp_path: Path):
    file, backup = configured(tmp_path), tmp_path / "modes.backup"
    write_backup(backup, described(file, next=[0, 0]), RECORDS)
    assert restored(file, backup) == (
        f"{file}: collection.modes.partitions: expected 2, as {backup} has them, got 4"
    )
    write_backup(backup, described(file, states=["00"]), RECORDS)
    assert "got one of another spec or window: restore it with the configuration" in restored(
        file, backup
    )
