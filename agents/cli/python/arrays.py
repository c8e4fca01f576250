"""Values and times as users have them: lists, numpy arrays, columns of pandas, pyarrow, polars.

Only numpy is imported: the other libraries' objects convert themselves.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Integers, unmasked
from ldpstream.mechanisms.base.times import parse_time, read_times, time_of
from ldpstream.mechanisms.domains.attributes import Attributes, Columns
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.domains.labels import Labels as NamedValues
from ldpstream.mechanisms.domains.lattice import Lattice

_WHOLE: Final = 2.0**53

Labels: TypeAlias = Sequence[Any] | NDArray[Any]


def to_labels(given: Any, domain: Domain) -> Labels:
    """Return n values in the form a domain takes: a list, or an array `(n,)` or `(n, D)`.

    A table has one column per dimension, in the domain's order; for records, a table or a mapping
    has one per attribute, by name. Whole numbers may be floats, as in a column with missing cells.

    Raises:
        TypeError: for anything but a sequence; a single text is refused, too.
    """
    if isinstance(given, list | tuple | range):
        return given
    if isinstance(domain, Attributes):
        return _records(given, domain)
    given = unmasked(given)
    if isinstance(given, list):
        return given
    array = _array(given)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.dtype.kind == "f" and isinstance(domain, Lattice | NamedValues):
        return _whole(array)
    # A domain takes rows of mixed objects as sequences, not as arrays.
    return array.tolist() if array.dtype == object and array.ndim > 1 else array


def _records(given: Any, domain: Attributes) -> Columns:
    """Return the attributes' columns of a mapping or a table, by name."""
    names = getattr(given, "columns", given)
    missing = [name for name in domain.given if name not in names]
    if missing:
        raise ValueError(f"{missing[0]}: expected a column of this name, one for each attribute")
    return Columns({name: to_labels(given[name], own) for name, own in domain.given.items()})


def _array(given: Any) -> NDArray[Any]:
    if hasattr(given, "__array__"):
        array = np.asarray(given)
    elif hasattr(given, "to_numpy"):
        array = np.asarray(given.to_numpy())
    elif hasattr(given, "__iter__") and not isinstance(given, str | bytes | dict):
        array = np.asarray(list(given), dtype=object)
    else:
        raise TypeError(f"expected a list, an array or a column of values, got {type(given)}")
    if array.ndim == 0:
        raise TypeError("expected a list, an array or a column of values, got a single value")
    return array


def _whole(array: NDArray[Any]) -> Labels:
    """Return whole floats as integers; leave others for the domain to refuse."""
    if np.all(np.abs(array) < _WHOLE) and np.all(array == np.floor(array)):
        return array.astype(np.int64)
    if array.ndim == 1:
        # A larger float may stand for several integers.
        return [
            int(number) if number.is_integer() and abs(number) < _WHOLE else number
            for number in array.tolist()
        ]
    return [_whole(row) for row in array]


def to_times_ms(given: Any, n: int) -> Integers:
    """Return n times as epoch milliseconds, int64 `(n,)`.

    They may be RFC 3339 texts, datetimes with a zone, a column of times with a zone, milliseconds,
    or numpy's `datetime64`, which has no zone and counts from 1970 in UTC.

    Raises:
        ValueError: naming the position of an invalid time; or if there is not one per value.
    """
    given = unmasked(given)
    array = np.asarray(given, dtype=object) if isinstance(given, list | tuple) else _array(given)
    if array.dtype.kind == "M":
        if not (isinstance(given, np.ndarray) or _has_zone(given)):
            raise ValueError("times: expected a column of times with a zone, such as UTC, got none")
        # Years do not overflow, whatever the unit; milliseconds may.
        years = array.astype("datetime64[Y]").astype(np.int64) + 1970
        far = np.flatnonzero((years < 1) | (years > 9999))
        if len(far):
            what = "expected a time within the years 1 to 9999"
            raise ValueError(f"time at position {far[0]}: {what}")
        return read_times(array.astype("datetime64[ms]").astype(np.int64), n)
    if array.dtype.kind in "iu":
        return read_times(array, n)
    found = np.empty(len(array), dtype=np.int64)
    for position, one in enumerate(array.tolist()):
        try:
            found[position] = _time_ms(one)
        except ValueError as error:
            raise ValueError(f"time at position {position}: expected {error}") from None
    return read_times(found, n)


def _has_zone(column: Any) -> bool:
    """Return whether a column of pandas, pyarrow or polars says in which zone its times are."""
    kind = getattr(column, "type", None) or getattr(column, "dtype", None)
    kind = getattr(kind, "pyarrow_dtype", kind)
    return bool(getattr(kind, "tz", None) or getattr(kind, "time_zone", None))


def _time_ms(one: object) -> int:
    if isinstance(one, datetime) and one == one:  # pandas' NaT is a datetime, too
        if one.tzinfo is None:
            raise ValueError("a datetime with a zone")
        return time_of(one)
    if isinstance(one, float) and one.is_integer():  # whole numbers beside missing ones
        return parse_time(str(int(one)))
    return parse_time(str(one))
