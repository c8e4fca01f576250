"""Short names for array types, and the arrays of dataclasses."""

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
