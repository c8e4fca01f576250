"""The entries of a document as columns, for pandas and other libraries."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from ldpstream.mechanisms.base.lazy import imported

if TYPE_CHECKING:
    import pandas as pd

Part = Literal["values", "ranges", "quantiles", "linear"]
"""Which entries: shares of values or ranges, quantiles, or means of linear queries."""

_REST: Final = ("se", "influence", "forged", "bound")
_SHARES: Final = {name: name for name in ("share", "low", "high", "count", *_REST)}
FIELDS: Final[Mapping[Part, Mapping[str, str]]] = {
    "values": {"label": "value", **_SHARES},
    "ranges": {"label": "name", **_SHARES},
    "quantiles": {name: name for name in ("p", "value", "low", "high")},
    "linear": {
        "label": "name",
        **{name: name for name in ("mean", "low", "high", "total", *_REST)},
    },
}
"""The columns of each part, and the field of an entry in each."""


def to_columns(entries: Iterable[object], part: Part) -> dict[str, list[Any]]:
    """Return the entries of one part as columns: a list for each in `FIELDS`.

    Labels of several coordinates, and bins of an interval, are tuples. An undefined number is None.

    Raises:
        ValueError: for an unknown part.
    """
    if part not in FIELDS:
        raise ValueError(f"part: expected one of {', '.join(FIELDS)}, got {part!r}")
    listed = list(entries)
    return {
        column: [_hashable(getattr(entry, field)) for entry in listed]
        for column, field in FIELDS[part].items()
    }


def to_frame(columns: Mapping[str, list[Any]]) -> "pd.DataFrame":
    """Return columns as a pandas table.

    Raises:
        ImportError: naming what to install, where pandas is missing.
    """
    pandas = imported("pandas", "notebook", "to_frame", "; to_columns works without it")
    frame: pd.DataFrame = pandas.DataFrame(dict(columns))
    return frame


def _hashable(label: Any) -> Any:
    """Return a label as a hashable value, so that tables can be grouped by it."""
    return tuple(map(_hashable, label)) if isinstance(label, list) else label
