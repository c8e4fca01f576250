"""Channel files: the table of a designed channel, loaded by devices and servers alike.

A file is JSON with the keys `version`, `policy` (exact), `prior`, `weights` (hexadecimal numerators
over 2^64, a row for each value), `sha256` (of policy, prior and weights in canonical JSON) and
`design`, the record of how the channel was designed.
"""

import json
from pathlib import Path
from typing import Final

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import check_keys, describe
from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.channels.designed import DesignedChannel
from ldpstream.mechanisms.policies.tabled import read_policy_document

VERSION: Final = 1
_KEYS: Final = frozenset({"version", "policy", "prior", "weights", "sha256", "design"})
_MOST_BYTES: Final = 64 << 20


def channel_document(channel: DesignedChannel) -> dict[str, Json]:
    """Return the JSON document of a channel file."""
    return {
        "version": VERSION,
        "design": dict(channel.record),
        "sha256": channel.digest,
        **channel.content(),
    }


def save_channel(path: Path, channel: DesignedChannel) -> None:
    """Write a channel file.

    Raises:
        OSError: if it cannot be written.
    """
    text = json.dumps(channel_document(channel), allow_nan=False, separators=(",", ":"))
    path.write_text(text.replace("],[", "],\n[") + "\n", encoding="ascii")


def load_channel(given: object, base: Path) -> DesignedChannel:
    """Return the channel of a file, whose path is relative to the folder `base`.

    The table is checked, but not that it keeps its policy: `DesignedChannel.certify` proves that.

    Raises:
        SpecError: if the file cannot be read, is not of version 1 or was altered, or its table is
            not an invertible channel.
    """
    if not isinstance(given, str) or not given:
        raise SpecError("channel", f"the path of a channel file, got {describe(given)}")
    path = base / given
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise SpecError("channel", f"a file of at most {_MOST_BYTES} bytes, got {given!r}")
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError("channel", f"a readable file, got {given!r}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SpecError("channel", f"JSON, got {given!r}: {error}") from error
    with within("channel"):
        return read_channel(document)


def read_channel(document: object) -> DesignedChannel:
    """Return the channel of a channel file's document.

    Raises:
        SpecError: as for `load_channel`, with paths inside the document.
    """
    table = check_keys(document, _KEYS, "file")
    if table.get("version") != VERSION:
        raise SpecError("version", f"{VERSION}, got {describe(table.get('version'))}")
    prior, record = table.get("prior"), table.get("design", {})
    if not isinstance(prior, list) or not all(map(_is_share, prior)):
        raise SpecError("prior", f"a list of numbers in 0..1, got {describe(prior)}")
    if not isinstance(record, dict):
        raise SpecError("design", f"a table, got {describe(record)}")
    channel = DesignedChannel(
        policy=read_policy_document(table.get("policy")),
        weights=tuple(_row(row, place) for place, row in enumerate(_rows(table.get("weights")))),
        prior=tuple(float(share) for share in prior),
        record=record,
    )
    if table.get("sha256") != channel.digest:
        raise SpecError("sha256", f"{channel.digest}, the hash of the content: it was altered")
    return channel


def _is_share(given: object) -> bool:
    return isinstance(given, int | float) and 0 <= given <= 1


def _rows(given: object) -> list[object]:
    if not isinstance(given, list):
        raise SpecError("weights", f"a list of rows, got {describe(given)}")
    return given


def _row(given: object, place: int) -> tuple[int, ...]:
    if isinstance(given, list) and all(isinstance(w, str) and len(w) <= 19 for w in given):
        try:
            return tuple(int(weight, 16) for weight in given)
        except ValueError:
            pass
    raise SpecError(f"weights[{place}]", "a list of hexadecimal numbers")
