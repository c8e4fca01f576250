"""Short names for array types, arrays of dataclasses, and integers as rows of bytes."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[np.int64]
Bools = NDArray[np.bool_]
_Record = TypeVar("_Record")


def arrays_of(record: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that are arrays, by name."""
    found = {field.name: getattr(record, field.name) for field in fields(record)}
    return {name: one for name, one in found.items() if isinstance(one, np.ndarray)}


def joined(records: Sequence[_Record]) -> _Record:
    """Return the first record, with the arrays of all, one after the other."""
    arrays = [arrays_of(one) for one in records]
    columns: Any = {name: np.concatenate([one[name] for one in arrays]) for name in arrays[0]}
    first: Any = records[0]
    whole: _Record = replace(first, **columns)
    return whole


def to_bytes(numbers: Integers, size: int) -> NDArray[np.uint8]:
    """Return n integers >= 0 as rows, uint8 `(n, size)`, little-endian; size is at most 8."""
    table = np.ascontiguousarray(numbers, dtype="<i8").view(np.uint8).reshape(-1, 8)
    return table[:, :size]


def from_bytes(rows: NDArray[np.uint8]) -> Integers:
    """Return the integers of little-endian rows, uint8 `(n, size)`: int64 `(n,)`."""
    table = np.zeros((len(rows), 8), dtype=np.uint8)
    table[:, : rows.shape[1]] = rows
    return table.view("<i8")[:, 0].astype(np.int64, copy=False)
