"""Domains read from a CSV file: one label a line, optionally followed by the name of its block."""

from collections import Counter
from math import isnan
from pathlib import Path
from typing import Final

from ldpstream.mechanisms.base.checks import describe, parse_real
from ldpstream.mechanisms.base.csv_rows import read_rows
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.base import MAX_VALUES
from ldpstream.mechanisms.domains.blocks import Blocks, named_blocks
from ldpstream.mechanisms.domains.labels import Labels

_HEADERS: Final = frozenset(
    {
        "block",
        "blocks",
        "category",
        "category_id",
        "code",
        "district",
        "group",
        "id",
        "key",
        "label",
        "labels",
        "name",
        "names",
        "region",
        "value",
        "values",
        "zone",
    }
)


def read_file(given: object, base: Path, *, header: object = None) -> tuple[Labels, Blocks | None]:
    """Return the labels of a file, and its blocks if every line has a second column.

    The path is relative to the folder `base`. The file is CSV in UTF-8; blank lines are skipped.
    `header` says whether the first line names the columns. With None there is no header, and a
    first line that looks like one is refused.

    Raises:
        SpecError: if the path is not a text, the file cannot be read as CSV or holds fewer than two
            labels, a line has an invalid or repeated label or other columns than the lines before,
            or `header` is neither true nor false, or missing although it is needed.
    """
    if header is not None and not isinstance(header, bool):
        raise SpecError("header", f"true or false, got {describe(header)}")
    rows = read_rows(given, base)
    if header:
        next(rows, None)
    places: dict[str, str] = {}
    names: list[str] = []
    for where, row in rows:
        if len(row) > 2 or not all(row):
            raise SpecError(where, "a label, or a label and a block")
        label, *block = row
        if label in places:
            line = places[label].removeprefix("file ")
            raise SpecError(where, f"each label once, got that of {line} again")
        if places and bool(block) != bool(names):
            raise SpecError(where, "a block on every line or on none")
        if len(places) == MAX_VALUES:
            raise SpecError("file", f"at most {MAX_VALUES} labels")
        places[label] = where
        names.extend(block)
    if len(places) < 2:
        raise SpecError("file", f"at least two labels, one a line, got {len(places)}")
    if header is None and (why := _like_a_header(str(given), list(places), names)):
        raise SpecError(
            "header", f"true or false, got none: the file's first line may be no label: {why}"
        )
    return Labels(tuple(places)), named_blocks(names) if names else None


def _like_a_header(file: str, labels: list[str], blocks: list[str]) -> str | None:
    """Return why the first line looks like a header, or None if it does not.

    A false alarm costs the user one word in the configuration; a missed header becomes a value of
    the domain that nobody has.
    """
    columns = [labels, blocks] if blocks else [labels]
    for column in columns:
        if not _is_number(column[0]) and all(map(_is_number, column[1:])):
            return "all other lines hold numbers in a column where it has none"
    stem = Path(file).stem.casefold()
    if labels[0].casefold() in _HEADERS | {stem, stem.removesuffix("s"), f"{stem}s"}:
        return f"it reads {labels[0]!r}"
    if blocks and blocks[0].casefold() in _HEADERS:
        return f"it reads {blocks[0]!r} in its second column"
    lines = Counter(blocks)
    if blocks and lines[blocks[0]] == 1 and min(lines[block] for block in blocks[1:]) > 1:
        return "its block is no other line's, while all others have several"
    return None


def _is_number(text: str) -> bool:
    return not isnan(parse_real(text))
