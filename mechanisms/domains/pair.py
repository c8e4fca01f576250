"""Domains of all combinations of the values of two attributes, for two-way tables."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import ValueOutsideDomainError
from ldpstream.mechanisms.domains.base import Domain, check_size


@dataclass(frozen=True)
class Pair(Domain):
    """Two attributes `names` with their domains `parts`; labels are `[first, second]`.

    Raises:
        SpecError: if there are more combinations than a domain may have values.
    """

    kind: ClassVar[str] = "pair"
    names: tuple[str, str]
    parts: tuple[Domain, Domain]
    ordered: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_size(self.size, "pairs")

    @property
    def name(self) -> str:
        """The name of the pair as an attribute; no other attribute's name has a colon."""
        return ":".join(self.names)

    @property
    def shape(self) -> tuple[int, int]:
        return self.parts[0].size, self.parts[1].size

    @property
    def expected(self) -> str:
        return " with ".join(part.expected for part in self.parts)

    def joined(self, first: Indices, second: Indices) -> Indices:
        """Return the indices of n combinations from those of both attributes, int64 `(n,)` each."""
        return first * self.shape[1] + second

    def index(self, labels: Sequence[Any] | NDArray[Any]) -> Indices:
        for position, label in enumerate(labels):
            if not isinstance(label, list | tuple) or len(label) != len(self.parts):
                self.index(labels[:position])  # an earlier bad label is named first
                raise self.outside(position)
        first, second = ([label[place] for label in labels] for place in (0, 1))
        return self._both(lambda part, own: part.index(own), first, second)

    def parse_columns(self, rows: Sequence[Sequence[str]]) -> Indices:
        """Return the indices of rows of text: the columns of the first, then of the second."""
        width = len(self.parts[0].written.shape)
        first, second = [row[:width] for row in rows], [row[width:] for row in rows]
        return self._both(lambda part, own: part.parse_columns(own), first, second)

    def _both(self, find: Callable[[Domain, Any], Indices], first: Any, second: Any) -> Indices:
        try:
            pairs = zip(self.parts, (first, second), strict=True)
            return self.joined(*(find(part, own) for part, own in pairs))
        except ValueOutsideDomainError as error:
            raise self.outside(error.position) from None

    def label(self, index: int) -> Json:
        places = np.unravel_index(index, self.shape)
        return [part.label(int(place)) for part, place in zip(self.parts, places, strict=True)]

    def canonical(self) -> Json:
        """Return the two names; the domains are listed with the attributes."""
        return {"pair": list(self.names)}
