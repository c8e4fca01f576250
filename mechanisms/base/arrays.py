"""Short names for array types, and the arrays of dataclasses."""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import chain
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[np.int64]
Bools = NDArray[np.bool_]
_Record = TypeVar("_Record")
_NUMBERS: Final = frozenset({int, float})
_ROWS: Final = frozenset({list, tuple})
_CONTAINERS: Final = (list, tuple, np.ndarray)
# numpy counts durations among its integers, and would drop their unit.
_NO_NUMBERS: Final = (bool, np.bool_, np.timedelta64)


def unmasked(array: Any) -> Any:
    """Return a masked array with NaN, NaT or None, which every domain refuses, where it is masked.

    numpy itself drops the mask, and with it would take what the array holds there for a value.
    """
    # Every other array comes before the first use of `numpy.ma`, which takes long to import.
    if not _is_special(type(array)) or not isinstance(array, np.ma.MaskedArray):
        return array
    if not np.ma.is_masked(array):
        return np.asarray(array)
    if array.dtype.kind in "fM":
        return np.ma.filled(array, np.nan if array.dtype.kind == "f" else np.datetime64("NaT"))
    return np.ma.filled(array.astype(object), None).tolist()


def _is_special(kind: type) -> bool:
    """Return whether a type is one of arrays with a meaning of their own, such as masked ones."""
    return kind is not np.ndarray and issubclass(kind, np.ndarray)


def numbers_of(numbers: Any) -> NDArray[Any] | None:
    """Return numbers, or rows of equally many, as an array of integers or floats; else None.

    A list with booleans is no list of numbers, though numpy would make numbers of them.
    """
    numbers = unmasked(numbers)
    if not isinstance(numbers, np.ndarray):
        try:
            kinds = {*map(type, numbers)}
        except TypeError:
            return None  # not a sequence
        if kinds <= _ROWS:
            kinds = {*map(type, chain.from_iterable(numbers))}
        # These two need no closer look at each kind, which takes longer than one label's array.
        if not kinds <= _NUMBERS:
            for row in numbers if any(issubclass(kind, _CONTAINERS) for kind in kinds) else ():
                if isinstance(row, np.ndarray):
                    kinds.add(row.dtype.type)
                elif isinstance(row, list | tuple):
                    kinds.update(map(type, row))
            if any(issubclass(kind, _NO_NUMBERS) or _is_special(kind) for kind in kinds):
                return None
    try:
        array = np.asarray(numbers)
    except ValueError:
        return None  # rows of different lengths
    return array if array.dtype.kind in "iuf" else None


def map_arrays(make: Callable[..., NDArray[Any]], *records: _Record) -> _Record:
    """Return the first record with each array, also of records in it, made of those of all.

    For example `map_arrays(np.add, first, second)` adds two dataclasses of arrays, field by field.
    """
    first: Any = records[0]
    changed: dict[str, Any] = {}
    for name in (field.name for field in fields(first)):
        columns = [getattr(record, name) for record in records]
        if is_dataclass(columns[0]):
            changed[name] = map_arrays(make, *columns)
        elif isinstance(columns[0], np.ndarray):
            changed[name] = make(*columns)
    whole: _Record = replace(first, **changed)
    return whole


def joined(records: Sequence[_Record]) -> _Record:
    """Return the first record, with the arrays of all, one after the other."""
    return map_arrays(lambda *columns: np.concatenate(columns), *records)
