"""Domains out of a CSV file: one label a line, and maybe the name of its block."""

from pathlib import Path

from ldpstream.mechanisms.blocks import Blocks, named_blocks
from ldpstream.mechanisms.csv_rows import read_rows
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
    places: dict[str, str] = {}
    names: list[str] = []
    for where, row in read_rows(given, base):
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
    return Labels(tuple(places)), named_blocks(names) if names else None
