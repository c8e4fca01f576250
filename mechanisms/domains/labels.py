"""Domains of named values, which the configuration lists or a CSV file holds.

A file has one label a line, optionally followed by the name of its block.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Indices, unmasked
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import describe, is_integer, is_whole, read_rows
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.numbers import parse_real
from ldpstream.mechanisms.base.texts import canonical_text, seen_text
from ldpstream.mechanisms.domains.base import MAX_VALUES, Domain, check_size
from ldpstream.mechanisms.domains.blocks import Blocks, named_blocks

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


@dataclass(frozen=True)
class Labels(Domain):
    """Named values: texts or integers, no two of which look the same.

    Labels are found in any of Unicode's spellings of them (`canonical_text`).
    """

    values: tuple[str | int, ...]
    ordered: ClassVar[bool] = False
    whole: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_size(len(self.values), "values")
        if self._plain:
            return
        looks: dict[str, int] = {}
        for place, value in enumerate(self.values):
            if not (isinstance(value, str) or is_whole(value)) or value == "":
                raise SpecError(f"values[{place}]", f"a text or an integer, got {describe(value)}")
            other = looks.setdefault(seen_text(str(value)), place)
            if other != place:
                same = str(self.values[other]) == str(value)
                alike = "" if same else f", which looks like values[{other}]"
                what = f"each value once, got {describe(value)} again{alike}"
                raise SpecError(f"values[{place}]", what)

    @cached_property
    def _plain(self) -> bool:
        """Whether all labels are different ASCII texts without spaces, which are what they look."""
        texts = [value for value in self.values if isinstance(value, str)]
        line = " ".join(texts)
        plain = line.isascii() and line.split() == texts
        return plain and len(texts) == len(set(texts)) == len(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.values),)

    @property
    def expected(self) -> str:
        example = describe(self.values[0])
        return f"one of the {len(self.values)} labels of the domain, such as {example}"

    @cached_property
    def _numbers(self) -> dict[str, int]:
        texts = self.values if self._plain else (canonical_text(str(v)) for v in self.values)
        return {str(text): i for i, text in enumerate(texts)}

    def index(self, labels: Sequence[Any] | NDArray[Any]) -> Indices:
        """Return the indices of labels; an integer label may also come as its text.

        Raises:
            TypeError: for a single text, whose characters would be taken for labels.
            ValueOutsideDomainError: naming the position of the first label outside the domain.
        """
        if isinstance(labels, str):
            raise TypeError("expected a sequence of labels, got a single text")
        array = unmasked(labels)
        # `tolist` would turn times and durations into integers.
        plain = isinstance(array, np.ndarray) and array.dtype.kind not in "mM"
        listed = array.tolist() if plain else array
        return self._find([v if isinstance(v, str) else _integer_text(v) for v in listed])

    def parse_columns(self, rows: Sequence[Sequence[str]]) -> Indices:
        return self._find([row[0] if len(row) == 1 else "" for row in rows])

    def _find(self, texts: list[str]) -> Indices:
        numbers = [self._numbers.get(text, -1) for text in texts]
        indices = np.array(numbers, dtype=np.int64)
        for place in np.flatnonzero(indices < 0).tolist():
            number = self._numbers.get(canonical_text(texts[place]))
            if number is None:
                raise self.outside(place)
            indices[place] = number
        return indices

    def label(self, index: int) -> Json:
        return self.values[index]

    def canonical(self) -> Json:
        return {"values": list(self.values)}


def _integer_text(value: object) -> str:
    return str(value) if is_integer(value) else ""


def read_labels(raw: object, base: Path, *, header: object = None) -> tuple[Labels, Blocks | None]:
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
    rows = read_rows(raw, base)
    if header:
        next(rows, None)
    labels: list[str] = []
    lines: dict[str, str] = {}
    names: list[str] = []
    for where, row in rows:
        if len(row) > 2 or not all(row):
            raise SpecError(where, "a label, or a label and a block")
        label, *block = row
        line = lines.setdefault(seen_text(label), where.removeprefix("file "))
        if line != where.removeprefix("file "):
            raise SpecError(where, f"each label once, got that of {line} again")
        if labels and bool(block) != bool(names):
            raise SpecError(where, "a block on every line or on none")
        if len(labels) == MAX_VALUES:
            raise SpecError("file", f"at most {MAX_VALUES} labels")
        labels.append(label)
        names.extend(map(canonical_text, block))
    if len(labels) < 2:
        raise SpecError("file", f"at least two labels, one a line, got {len(labels)}")
    if header is None and (why := _like_a_header(str(raw), labels, names)):
        raise SpecError(
            "header", f"true or false, got none: the file's first line may be no label: {why}"
        )
    return Labels(tuple(labels)), named_blocks(names) if names else None


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
