"""The file of a back-up: a collection's state, compressed, one JSON object a line.

The first line says of which collection, topic and moment it is. The records follow in the order in
which they have to be written: cells first, then heads, partition 0's last. Without its heads a cell
counts for nothing, so a restore that ends early leaves no state that looks whole. Gzip's checksum
covers all of it.
"""

import gzip
import json
import os
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple

from ldpstream.agents.cli.terminal.errors import Refused

_FORMAT: Final = "ldpstream-backup-1"


@dataclass(frozen=True, kw_only=True)
class Description:
    """The first line of a back-up.

    - `time`: when it was made, RFC 3339. `workers`: how many were counting then.
    - `source`: the topic that was counted, `source_id` its id, empty if the broker has none.
    - `states`: the `state_prefix` of each state, hexadecimal, the collection's own first.
    - `next`: by partition, the first offset of the source not counted. `uncounted`: how many
      offsets the source had beyond. `last`: `[timestamp, SHA-256]` of the message before `next`,
      None if there is none: a copy of the source is known by it.
    """

    collection: str
    time: str
    workers: int
    source: str
    source_id: str
    states: Sequence[str]
    next: Sequence[int]
    uncounted: int
    last: Sequence[Sequence[int | str] | None]


class Record(NamedTuple):
    """A record of a changelog's partition."""

    partition: int
    key: bytes
    value: bytes


def write_backup(file: Path, description: Description, records: Iterable[Record]) -> int:
    """Write a back-up, readable by its owner alone, and return its length in bytes.

    A file of this name is replaced once the new one is whole.

    Raises:
        OSError: if it cannot be written.
    """
    unfinished = file.with_name(f"{file.name}.unfinished")
    with suppress(FileNotFoundError):
        unfinished.unlink()
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as raw:
        with gzip.open(raw, "wt", encoding="ascii", compresslevel=6) as out:
            out.write(json.dumps({"format": _FORMAT, **asdict(description)}) + "\n")
            for partition, key, value in records:
                line = [partition, b64encode(key).decode(), b64encode(value).decode()]
                out.write(json.dumps(line) + "\n")
        raw.flush()
        os.fsync(raw.fileno())
    unfinished.replace(file)
    return file.stat().st_size


def read_description(file: Path) -> Description:
    """Return the first line of a back-up, after checking that the whole file can be read.

    Raises:
        Refused: if it is no back-up, or damaged.
    """
    lines = _lines(file)
    head = next(lines, None)
    if not isinstance(head, dict) or head.pop("format", None) != _FORMAT:
        raise Refused(f"{file}: expected a file that `ldpstream backup` wrote")
    for _ in lines:
        pass
    return Description(**head)


def read_records(file: Path) -> Iterator[Record]:
    """Yield the records of a back-up.

    Raises:
        Refused: if it is damaged.
    """
    lines = _lines(file)
    next(lines)
    for line in lines:
        assert isinstance(line, list), "the description is the only object"
        yield Record(line[0], b64decode(line[1]), b64decode(line[2]))


def _lines(file: Path) -> Iterator[object]:
    try:
        with gzip.open(file, "rt", encoding="ascii") as lines:
            yield from map(json.loads, lines)
    except OSError as error:
        reason = error.strerror or "expected a file that `ldpstream backup` wrote"
        raise Refused(f"{file}: {reason}") from error
    except (EOFError, zlib.error, ValueError) as error:
        raise Refused(f"{file}: damaged or cut short: {error}") from error
