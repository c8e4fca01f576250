"""Strategies of linear counting, and the workloads that they are chosen for ([ML] Section III).

A strategy is a matrix A of integer queries, with a row for each query and a column for each value;
a report is the value's column with noise on every row. The built-in strategies, together with the
exact number of reports, answer every linear query on an ordered line (docs/theory.md section 4).

A workload W is a family of linear queries, a query a row. If the estimates of the values have
covariance C, its total error is `tr(W C W^T) = sum (W^T W) * C`, entry by entry, so that only the
Gram matrix `W^T W` is needed, not W itself, which may be large.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.base.canonical import MAX_TABLE_BYTES, Json
from ldpstream.mechanisms.base.checks import read_rows
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.numbers import read_whole, trimmed

Entries = NDArray[np.int32]

MAX_VALUES: Final = 2048
"""Largest domain, since decoders are computed by dense linear algebra."""
_MAX_ROWS: Final = 2 * MAX_VALUES
_LARGEST_ENTRY: Final = 1 << 20
_DOCUMENT_BYTES: Final = 4


class Strategy:
    """A matrix A of integers, `entries[j, x]`, int32 of shape `(rows, k)`, read-only.

    `name` is one of `STRATEGIES`, or "file". Immutable; strategies with the same content are equal.

    Raises:
        SpecError: if the number of rows or values or the size of an entry is out of range.
    """

    def __init__(self, name: str, entries: NDArray[np.integer]) -> None:
        rows, size = entries.shape
        if not 2 <= size <= MAX_VALUES:
            raise SpecError("domain", f"2..{MAX_VALUES} values with a strategy, got {size}")
        if not 1 <= rows <= _MAX_ROWS:
            raise SpecError("strategy", f"1..{_MAX_ROWS} rows, got {rows}")
        if np.abs(entries).max() > _LARGEST_ENTRY:
            raise SpecError("strategy", f"integers of at most {_LARGEST_ENTRY} in size")
        table = np.array(entries, dtype="<i4", order="C")
        table.flags.writeable = False
        self.name: Final = name
        self.entries: Final[Entries] = table
        self.digest: Final = hashlib.sha256(table.tobytes()).hexdigest()
        """SHA-256, in hex, of the entries as int32 little-endian, row by row."""

    @classmethod
    def built_in(cls, name: str, size: int) -> "Strategy":
        """Return one of `STRATEGIES` for a domain of `size` values."""
        if size > MAX_VALUES:
            raise SpecError("domain", f"at most {MAX_VALUES} values with a strategy, got {size}")
        return cls(name, STRATEGIES[name](size))

    @property
    def size(self) -> int:
        """Number of values k."""
        return int(self.entries.shape[1])

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.entries.shape[0])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Strategy):
            return NotImplemented
        return (self.name, self.rows, self.digest) == (other.name, other.rows, other.digest)

    def __hash__(self) -> int:
        return hash((self.name, self.rows, self.digest))

    def __repr__(self) -> str:
        return f"Strategy({self.name!r}, {self.rows} x {self.size})"


def _prefix(size: int) -> Entries:
    """Return the prefixes `x <= j` except the whole domain: `k - 1` rows, row j is 1 up to value j.

    The lower triangle of [ML] III-B without its last row, which is the number of reports.
    """
    return np.tri(size - 1, size, dtype=np.int32)


def _hierarchical(size: int) -> Entries:
    """Return the nodes of a binary tree over the values, except its root, level by level."""
    nodes = [(start, stop) for start, _, stop in _splits(size)]
    leaves = {(x, x + 1) for x in range(size)}
    ordered = sorted(leaves | set(nodes), key=lambda node: (node[0] - node[1], node))
    rows = np.zeros((len(ordered) - 1, size), dtype=np.int32)
    for row, (start, stop) in zip(rows, ordered[1:], strict=True):
        row[start:stop] = 1
    return rows


def _haar(size: int) -> Entries:
    """Return Haar wavelets: for each inner node, +1 on its first half and -1 on its second.

    The tree is that of `_hierarchical`; unless the size is a power of two, halves may differ by one
    value.
    """
    rows = np.zeros((size - 1, size), dtype=np.int32)
    for row, (start, middle, stop) in zip(rows, _splits(size), strict=True):
        row[start:middle] = 1
        row[middle:stop] = -1
    return rows


def _splits(size: int) -> Iterator[tuple[int, int, int]]:
    """Yield the inner nodes of the tree as `(start, middle, stop)`, level by level."""
    level = [(0, size)]
    while level:
        below = []
        for start, stop in level:
            if stop - start > 1:
                middle = (start + stop + 1) // 2
                yield start, middle, stop
                below += [(start, middle), (middle, stop)]
        level = below


STRATEGIES: Final[Mapping[str, Callable[[int], Entries]]] = MappingProxyType(
    {
        "prefix": _prefix,
        "haar": _haar,
        "hierarchical": _hierarchical,
        "identity": lambda size: np.eye(size, dtype=np.int32),
    }
)
"""The built-in strategies by name; of equally good ones the first is preferred."""


def read_strategy(raw: object, base: Path, *, size: int) -> Strategy:
    """Return the strategy of a CSV file without a header: a row a line, an integer for each value.

    The path is relative to the folder `base`.

    Raises:
        SpecError: if the file cannot be read, a line does not hold `size` integers, or `Strategy`
            refuses them.
    """
    if size > MAX_VALUES:
        raise SpecError("domain", f"at most {MAX_VALUES} values with a strategy, got {size}")
    rows: list[list[int]] = []
    for where, row in read_rows(raw, base):
        if len(row) != size:
            raise SpecError(where, f"{size} integers, one for each value, got {len(row)}")
        if len(rows) == _MAX_ROWS:
            raise SpecError("file", f"at most {_MAX_ROWS} rows")
        rows.append([_integer(text, f"{where} column {i}") for i, text in enumerate(row, 1)])
    if not rows:
        raise SpecError("file", "at least one row of integers, got none")
    return Strategy("file", np.array(rows, dtype=np.int64))


def _integer(text: str, where: str) -> int:
    try:
        entry = read_whole(trimmed(text))
    except ValueError:
        entry = _LARGEST_ENTRY + 1
    if abs(entry) > _LARGEST_ENTRY:
        raise SpecError(where, f"an integer of at most {_LARGEST_ENTRY} in size")
    return entry


def strategy_tables(strategy: Strategy) -> dict[str, Json]:
    """Return the rows of a strategy that is not built in."""
    if strategy.name in STRATEGIES or strategy.entries.size * _DOCUMENT_BYTES > MAX_TABLE_BYTES:
        return {}
    return {"strategy": strategy.entries.tolist()}


def _values(size: int) -> Floats:
    return np.eye(size)


def _prefixes(size: int) -> Floats:
    places = np.arange(size)
    return np.asarray(size - np.maximum.outer(places, places), dtype=np.float64)


def _ranges(size: int) -> Floats:
    places = np.arange(size)
    before, after = np.minimum.outer(places, places) + 1, size - np.maximum.outer(places, places)
    return np.asarray(before * after, dtype=np.float64)


WORKLOADS: Final[Mapping[str, Callable[[int], Floats]]] = MappingProxyType(
    {"values": _values, "prefixes": _prefixes, "ranges": _ranges}
)
"""`W^T W` of each workload, float64 `(k, k)`, by name.

`values`: every single one, k queries. `prefixes`: `{0..i}`, k queries. `ranges`: all `{i..j}`,
`k (k + 1)/2` queries ([ML] III-B says `k (k - 1)/2`, which leaves out the single values).
"""
