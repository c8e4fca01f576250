"""Domains out of a CSV file: one label a line, and maybe the name of its block."""

import csv
from collections.abc import Iterable
from pathlib import Path

from ldpstream.mechanisms.blocks import Blocks, named_blocks
from ldpstream.mechanisms.checks import describe
from ldpstream.mechanisms.domain_base import MAX_VALUES
from ldpstream.mechanisms.errors import SpecError
from ldpstream.mechanisms.labels import Labels


def read_file(given: object, base: Path) -> tuple[Labels, Blocks | None]:
    """Return the labels of a file, and its blocks where every line has a second column.

    The path is relative to the folder `base`. The file is CSV in UTF-8 without a header; blank
    lines do not count.

    Raises:
        SpecError: for a path that is no text, a file that cannot be read, is empty or no CSV, or
            a line that is no label, repeats one, or differs in columns from those before.
    """
    if not isinstance(given, str) or not given:
        raise SpecError("file", f"the path of a CSV file, got {describe(given)}")
    try:
        with (base / given).open(encoding="utf-8-sig", newline="") as lines:
            labels, names = _collect(lines)
    except OSError as error:
        raise SpecError("file", f"a readable file, got {given!r}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise SpecError("file", f"CSV in UTF-8, got {given!r}: {error}") from error
    if len(labels) < 2:
        raise SpecError("file", f"at least two labels, one a line, got {len(labels)}")
    return Labels(tuple(labels)), named_blocks(names) if names else None


def _collect(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    places: dict[str, int] = {}
    names: list[str] = []
    reader = csv.reader(lines, strict=True)
    for row in reader:
        if not row:
            continue
        where = f"file line {reader.line_num}"
        if len(row) > 2 or not all(row):
            raise SpecError(where, "a label, or a label and a block")
        label, *block = row
        if label in places:
            raise SpecError(where, f"each label once, got that of line {places[label]} again")
        if places and bool(block) != bool(names):
            raise SpecError(where, "a block on every line or on none")
        if len(places) == MAX_VALUES:
            raise SpecError("file", f"at most {MAX_VALUES} labels")
        places[label] = reader.line_num
        names.extend(block)
    return list(places), names
