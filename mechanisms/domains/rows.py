"""Rows of text of which many are equal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from ldpstream.mechanisms.base.arrays import Integers

Row = Sequence[str]


@dataclass(frozen=True, eq=False)
class CodedRows(Sequence[Row]):
    """n rows as places in a list: row i is `distinct[codes[i]]`, codes int64 `(n,)`."""

    distinct: Sequence[Row]
    codes: Integers

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "CodedRows | None":
        """Return rows by their distinct ones; None if these are more than half of them."""
        if isinstance(rows, CodedRows):
            return rows
        texts = list(map(tuple, rows))
        places = dict.fromkeys(texts)
        if 2 * len(places) > len(texts):
            return None
        places_of = {text: place for place, text in enumerate(places)}
        codes = np.fromiter(map(places_of.__getitem__, texts), dtype=np.int64, count=len(texts))
        return cls(list(places_of), codes)

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[Row]:
        return map(self.distinct.__getitem__, self.codes.tolist())

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> "CodedRows": ...
    def __getitem__(self, place: int | slice) -> "Row | CodedRows":
        if isinstance(place, slice):
            return CodedRows(self.distinct, self.codes[place])
        return self.distinct[self.codes[place]]
