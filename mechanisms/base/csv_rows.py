"""Rows of CSV files that a configuration names."""

import csv
from collections.abc import Iterator
from pathlib import Path

from ldpstream.mechanisms.base.checks import describe
from ldpstream.mechanisms.base.errors import SpecError


def read_rows(given: object, base: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each row of a CSV file as `(place, cells)`, with a place such as `file line 3`.

    Error messages name the place. The path is relative to the folder `base`. The file is CSV in
    UTF-8; blank lines are skipped.

    Raises:
        SpecError: if the path is not a text, or the file cannot be read as CSV.
    """
    if not isinstance(given, str) or not given:
        raise SpecError("file", f"the path of a CSV file, got {describe(given)}")
    try:
        with (base / given).open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.reader(lines, strict=True)
            for row in reader:
                if row:
                    yield f"file line {reader.line_num}", row
    except OSError as error:
        raise SpecError("file", f"a readable file, got {given!r}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise SpecError("file", f"CSV in UTF-8, got {given!r}: {error}") from error
