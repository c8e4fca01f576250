"""Reports as one object: draw them from values, save and read them, add and estimate them.

Values and times are as users have them: lists, numpy arrays, columns of pandas, pyarrow or polars.
Only numpy is imported: the other libraries' objects convert themselves. Their collection is read
from a configuration file, or defined in place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.cli.python.query_options import build_options
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.reports import read_reports as read_lines
from ldpstream.agents.cli.terminal.reports import write_reports as write_lines
from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.config.errors import ConfigError
from ldpstream.agents.config.load import load_config, read_config
from ldpstream.agents.config.query.options import EstimateRequest
from ldpstream.agents.document.build import build_document
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.state.context import WindowTotals
from ldpstream.mechanisms.base.arrays import Integers, unmasked
from ldpstream.mechanisms.base.errors import ValueOutsideDomainError
from ldpstream.mechanisms.base.files import replaced_file
from ldpstream.mechanisms.base.texts import count
from ldpstream.mechanisms.base.times import parse_time, read_times, time_of
from ldpstream.mechanisms.domains.attributes import Attributes, Columns
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.domains.fitting import fit, has_ends, nearest_label
from ldpstream.mechanisms.exact.entropy import Entropy, SystemEntropy
from ldpstream.mechanisms.interface.mechanism import Reports

Labels: TypeAlias = Sequence[Any] | NDArray[Any]
_CHUNK = 100_000


def load_collection(path: str | Path, name: str) -> CollectionConfig:
    """Return one collection of a configuration file.

    Raises:
        ConfigError: a ValueError that names the file, the key and what was expected.
    """
    collections = load_config(path).collections
    if name not in collections:
        names = ", ".join(collections)
        raise ConfigError("collection", f"expected one of {names}, got {name}", file=str(path))
    return collections[name]


def define_collection(name: str, **keys: Any) -> CollectionConfig:
    """Return a collection, with the keys of a `[collection.NAME]` table as keywords.

    >>> define_collection("modes", mechanism="high-low", epsilon=1.0, sensitive=["bus"],
    ...     domain={"values": ["bus", "car"]}).spec.domain.size
    2

    Paths in keys are relative to the working directory.

    Raises:
        ConfigError: a ValueError that names the key and what was expected.
    """
    config = read_config({"collection": {name: keys}}, base=Path(), environment={})
    return config.collections[name]


@dataclass(frozen=True, eq=False)
class ReportSet:
    """Any number of reports of one collection; sets can be added.

    `reports` are the mechanism's own n rows, `times_ms` their times if all have one. When they were
    drawn, `skipped` values were left out as bad, and `clamped` were moved into the domain.
    `privatize(collection, [])` is the empty set.
    """

    collection: CollectionConfig
    reports: Reports
    times_ms: Integers | None = None
    skipped: int = 0
    clamped: int = 0

    def __len__(self) -> int:
        return len(self.reports)

    def __add__(self, other: "ReportSet") -> "ReportSet":
        """Return the reports of both; times are kept if all non-empty sets have them.

        Raises:
            ValueError: for reports of another spec.
        """
        spec, other_spec = self.collection.spec, other.collection.spec
        if spec.fingerprint != other_spec.fingerprint:
            raise ValueError(
                f"expected reports with fingerprint {spec.fingerprint.hex()}, got some from "
                "another spec: was the collection's mechanism, epsilon, domain or precision "
                "changed?"
            )
        timed = [reports.times_ms for reports in (self, other) if len(reports)]
        times = [times_ms for times_ms in timed if times_ms is not None]
        return ReportSet(
            self.collection,
            np.concatenate([self.reports, other.reports]),
            np.concatenate(times) if times and len(times) == len(timed) else None,
            self.skipped + other.skipped,
            self.clamped + other.clamped,
        )

    def __repr__(self) -> str:
        return f"<{count(len(self), 'report')} of {self.collection.name}>"

    def to_lines(self) -> bytes:
        """Return the reports as lines, as `ldpstream privatize` writes them."""
        return write_lines(self.collection.spec, self.reports, self.times_ms)

    def save(self, path: str | Path) -> None:
        """Write the lines to a file, for `read_reports`, `ldpstream estimate` and `send`.

        Raises:
            OSError: where the file cannot be written.
            ValueError: for a path of something other than a file.
        """
        with replaced_file(path) as file:
            file.write(self.to_lines())


def privatize(
    collection: CollectionConfig,
    values: Any,
    *,
    times: Any = None,
    clamp: bool = False,
    skip_bad: bool = False,
    entropy: Entropy | None = None,
) -> ReportSet:
    """Randomise n values into reports, one each, with the operating system's randomness.

    Values are labels, numbers, or rows with one number per dimension: a list, a numpy array, a
    column or a table of pandas, pyarrow or polars. Records are a table or a mapping with a column
    for each attribute by its name, or a list of mappings. `times` are RFC 3339 texts, datetimes,
    `datetime64` or epoch milliseconds; they are cut to the collection's precision when written or
    sent. `clamp` moves numbers outside the domain to its nearest end; `skip_bad` leaves bad values
    out. A seeded `entropy` is only for tests.

    Raises:
        ValueOutsideDomainError: naming the position of the first bad value, never the value.
        ValueError: if there is not one time for each value; for `clamp` if values are not numbers;
            for a collection with `one_report`, whose devices send for themselves.
        TypeError: for anything but a sequence of values.
    """
    spec, source = collection.spec, entropy or SystemEntropy()
    domain = spec.domain
    if spec.one_report is not None:
        raise ValueError(f"{collection.name}: expected a collection without one_report")
    if clamp and not has_ends(domain):
        raise ValueError(f"clamp: expected a collection with only numbers, got {collection.name}")
    labels = to_labels(values, domain)
    times_ms = None if times is None else to_times_ms(times, len(labels))
    fitted = fit(
        labels,
        place=partial(domain.place, entropy=source),
        check=domain.check,
        move=partial(nearest_label, domain) if clamp else None,
    )
    if fitted.bad and not skip_bad:
        raise ValueOutsideDomainError(*next(iter(fitted.bad.items())))
    return ReportSet(
        collection,
        spec.mechanism.privatize(fitted.indices, entropy=source),
        None if times_ms is None else times_ms[fitted.good],
        skipped=len(fitted.bad),
        clamped=fitted.moved,
    )


def read_reports(collection: CollectionConfig, path: str | Path) -> ReportSet:
    """Return the reports of a file that `save` or `ldpstream privatize` wrote.

    Raises:
        ValueError: naming the line, for anything but a report of this collection.
        OSError: where the file cannot be opened.
    """
    try:
        with Path(path).open("rb") as stream:
            chunks = list(read_lines(stream, collection.spec, chunk=_CHUNK))
    except Refused as error:
        raise ValueError(error.message) from None
    times = [chunk.times_ms for chunk in chunks if chunk.times_ms is not None]
    return ReportSet(
        collection,
        np.concatenate([chunk.reports for chunk in chunks]),
        np.concatenate(times) if times else None,
    )


def estimate(
    reports: ReportSet, request: EstimateRequest | None = None, **options: Any
) -> EstimateDocument:
    """Return the estimates that all reports together give, as `ldpstream estimate` prints them.

    The document holds what the collection publishes, unless a request, or its fields as keywords,
    ask for something else: `top=5`, `ranges=["3..9"]`, `quantiles=[0.5]` or `confidence=0.9`.

    Raises:
        ValueError: naming the option that is impossible, or does not fit the collection.
    """
    collection = reports.collection
    chosen = build_options(collection, request, options)
    mechanism = collection.spec.mechanism
    statistic = mechanism.empty()
    mechanism.accumulate(statistic, reports.reports)
    totals = WindowTotals(0, 0, statistic, len(reports), late=0, rejected=0)
    return build_document(collection, totals, window=None, final=True, options=chosen)


def to_labels(values: Any, domain: Domain) -> Labels:
    """Return n values in the form a domain takes: a list, or an array `(n,)` or `(n, D)`.

    A table has one column per dimension, in the domain's order; for records, a table or a mapping
    has one per attribute, by name. Whole numbers may be floats, as in a column with missing cells.

    Raises:
        TypeError: for anything but a sequence; a single text is refused, too.
    """
    if isinstance(values, list | tuple | range):
        return values
    if isinstance(domain, Attributes):
        return _records(values, domain)
    values = unmasked(values)
    if isinstance(values, list):
        return values
    array = _array(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.dtype.kind == "f" and domain.written.whole:
        return _whole(array)
    # A domain takes rows of mixed objects as sequences, not as arrays.
    return array.tolist() if array.dtype == object and array.ndim > 1 else array


def _records(columns: Any, domain: Attributes) -> Columns:
    """Return the attributes' columns of a mapping or a table, by name."""
    if isinstance(columns, np.ndarray):
        names = columns.dtype.names
    elif hasattr(columns, "column_names"):
        names = columns.column_names
    else:
        names = getattr(columns, "columns", columns if isinstance(columns, Mapping) else None)
    if names is None:
        raise TypeError("expected a table, a mapping of columns or a list of mappings")
    names = list(names)
    for name in domain.given:
        if names.count(name) != 1:
            raise ValueError(f"{name}: expected a column of this name, once")
    return Columns(
        {
            name: to_labels(columns[name], attribute_domain)
            for name, attribute_domain in domain.given.items()
        }
    )


def _array(values: Any) -> NDArray[Any]:
    if hasattr(values, "__array__"):
        array = np.asarray(values)
    elif hasattr(values, "to_numpy"):
        array = np.asarray(values.to_numpy())
    elif hasattr(values, "__iter__") and not isinstance(
        values, str | bytes | dict | set | frozenset
    ):
        array = np.asarray(list(values), dtype=object)
    else:
        raise TypeError(f"expected a list, an array or a column of values, got {type(values)}")
    if array.ndim == 0:
        raise TypeError("expected a list, an array or a column of values, got a single value")
    return array


def _whole(array: NDArray[Any]) -> Labels:
    """Return whole floats as integers; leave others for the domain to refuse."""
    # A larger float may stand for several integers, or does not fit into an int64.
    limit = 2.0 ** min(np.finfo(array.dtype).nmant + 1, 63)
    if np.all(np.abs(array) < limit) and np.all(array == np.floor(array)):
        return array.astype(np.int64)
    if array.ndim == 1:
        return [
            int(number) if number.is_integer() and abs(number) < limit else number
            for number in array.tolist()
        ]
    return [_whole(row) for row in array]


def to_times_ms(times: Any, n: int) -> Integers:
    """Return n times as epoch milliseconds, int64 `(n,)`.

    They may be RFC 3339 texts, datetimes with a zone, a column of times with a zone, milliseconds,
    or numpy's `datetime64`, which has no zone and counts from 1970 in UTC.

    Raises:
        ValueError: naming the position of an invalid time; or if there is not one per value.
    """
    times = unmasked(times)
    array = np.asarray(times, dtype=object) if isinstance(times, list | tuple) else _array(times)
    if array.dtype.kind == "M":
        if not (isinstance(times, np.ndarray) or _has_zone(times)):
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
    times_ms = np.empty(len(array), dtype=np.int64)
    for position, time in enumerate(array.tolist()):
        try:
            times_ms[position] = _time_ms(time)
        except ValueError as error:
            raise ValueError(f"time at position {position}: expected {error}") from None
    return read_times(times_ms, n)


def _has_zone(column: Any) -> bool:
    """Return whether a column of pandas, pyarrow or polars says in which zone its times are."""
    kind = getattr(column, "type", None) or getattr(column, "dtype", None)
    kind = getattr(kind, "pyarrow_dtype", kind)
    return bool(getattr(kind, "tz", None) or getattr(kind, "time_zone", None))


def _time_ms(time: object) -> int:
    if isinstance(time, datetime) and time == time:  # pandas' NaT is a datetime, too
        if time.tzinfo is None:
            raise ValueError("a datetime with a zone")
        return time_of(time)
    if isinstance(time, float) and time.is_integer():  # whole numbers beside missing ones
        return parse_time(str(int(time)))
    return parse_time(str(time))
