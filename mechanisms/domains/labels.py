"""Domains of named values."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import describe, is_whole
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.base import Domain, check_size


@dataclass(frozen=True)
class Labels(Domain):
    """Named values: texts or integers, no two of which are written the same way."""

    values: tuple[str | int, ...]
    ordered: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_size(len(self.values), "values")
        seen: set[str] = set()
        for place, value in enumerate(self.values):
            if not (isinstance(value, str) or is_whole(value)) or value == "":
                raise SpecError(f"values[{place}]", f"a text or an integer, got {describe(value)}")
            if str(value) in seen:
                raise SpecError(f"values[{place}]", f"each value once, got {describe(value)} again")
            seen.add(str(value))

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.values),)

    @property
    def expected(self) -> str:
        example = describe(self.values[0])
        return f"one of the {len(self.values)} labels of the domain, such as {example}"

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {str(value): i for i, value in enumerate(self.values)}

    def index(self, labels: Sequence[Any] | NDArray[Any]) -> Indices:
        """Return the indices of labels; an integer label may also come as its text.

        Raises:
            TypeError: for a single text, whose characters would be taken for labels.
            ValueOutsideDomainError: naming the position of the first label outside the domain.
        """
        if isinstance(labels, str):
            raise TypeError("expected a sequence of labels, got a single text")
        listed = labels.tolist() if isinstance(labels, np.ndarray) else labels
        return self._find([v if isinstance(v, str) else _integer_text(v) for v in listed])

    def parse_columns(self, rows: Sequence[Sequence[str]]) -> Indices:
        return self._find([row[0] if len(row) == 1 else "" for row in rows])

    def _find(self, texts: list[str]) -> Indices:
        found = [self._numbers.get(text, -1) for text in texts]
        indices = np.array(found, dtype=np.int64)
        if np.any(indices < 0):
            raise self.outside(int(np.argmax(indices < 0)))
        return indices

    def label(self, index: int) -> Json:
        return self.values[index]

    def canonical(self) -> Json:
        return {"values": list(self.values)}


def _integer_text(value: object) -> str:
    return str(value) if is_whole(value) or isinstance(value, np.integer) else ""
