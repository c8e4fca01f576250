"""Linear queries: the mean of a function of the value, given as one weight per value."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.query.errors import QueryError
from ldpstream.mechanisms.base.errors import ValueOutsideDomainError
from ldpstream.mechanisms.domains.parse import Domain

LARGEST_WEIGHT: Final = 1e30
"""Squares of larger weights may overflow."""

_WRITTEN: Final = re.compile(r"(?:([A-Za-z0-9._-]{1,40}):)?(.*)", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Linear:
    """A named function of the value: `weights` float64 `(k,)`, in the domain's own order."""

    name: str
    weights: NDArray[np.float64]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Linear) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        """Return a text that differs whenever a weight does: ETags are made from it."""
        return f"Linear({self.name!r}, {hashlib.sha256(self.weights.tobytes()).hexdigest()})"


def parse_linear(text: str, domain: Domain, position: int) -> Linear:
    """Parse `[NAME:]W,W,...`, with one weight per value of the domain.

    Without a name it is called `linear-1`, and so on, by its position from 1.

    Raises:
        QueryError: for any other text, or a wrong number of weights.
    """
    match = _WRITTEN.fullmatch(text)
    assert match is not None, "the pattern takes every text"
    try:
        weights = [float(part) for part in match[2].split(",")]
    except ValueError:
        raise QueryError("linear", "[NAME:]W,W,... with a number for each value") from None
    return make_linear(match[1] or f"linear-{position}", weights, domain)


def make_linear(
    name: str, weights: Sequence[float] | Mapping[str, float], domain: Domain
) -> Linear:
    """Return the query with these weights: one per value in the domain's order, or by label.

    Missing labels weigh 0. With several dimensions the last runs fastest.

    Raises:
        QueryError: for a number that is not finite or too large, a wrong number of weights, or an
            unknown label.
    """
    given = list(weights.values() if isinstance(weights, Mapping) else weights)
    if not (isinstance(weights, Mapping) or len(given) == domain.size):
        raise QueryError("linear", f"{domain.size} weights, one for each value, got {len(given)}")
    # Checked before conversion: an integer may be too large for a float.
    if not all(map(LARGEST_WEIGHT.__ge__, map(abs, given))):
        raise QueryError("linear", f"finite weights of at most {LARGEST_WEIGHT:g}")
    numbers = np.array(given, dtype=np.float64)
    if not isinstance(weights, Mapping):
        return Linear(name, numbers)
    full = np.zeros(domain.size)
    full[_indices(list(weights), domain)] = numbers
    return Linear(name, full)


def _indices(labels: Sequence[str], domain: Domain) -> list[int]:
    """Return the labels' indices, in time that does not grow with the domain."""
    if isinstance(domain.label(0), list):
        raise QueryError("linear", "a list of weights; only labels and numbers can be named")
    return [_index(label, domain) for label in labels]


def _index(label: str, domain: Domain) -> int:
    try:
        index = int(domain.parse_columns([[label]])[0])
    except ValueOutsideDomainError:
        index = -1
    # Devices may write a number in several ways; here only the canonical one is a name.
    if index < 0 or str(domain.label(index)) != label:
        raise QueryError("linear", f"labels of the domain, got {label[:40]!r}")
    return index
