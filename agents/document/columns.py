"""The entries of a document as columns: for tables in pandas, and for plots in matplotlib.

Both libraries are imported only where they are used.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from ldpstream.mechanisms.base.checks import rounded_text
from ldpstream.mechanisms.base.lazy import imported

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

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

_DRAWN_ALONE: Final = 40
"""Up to this many entries are drawn on a line each; more as a curve."""


def to_columns(entries: Iterable[object], part: Part) -> dict[str, list[Any]]:
    """Return the entries of one part as columns: a list for each in `FIELDS`.

    Labels of several coordinates, and bins of an interval, are tuples. An undefined number is None.
    """
    if part not in FIELDS:
        raise ValueError(f"part: expected one of {', '.join(FIELDS)}, got {part!r}")
    listed = list(entries)
    return {
        column: [_hashable(getattr(entry, field)) for entry in listed]
        for column, field in FIELDS[part].items()
    }


def _hashable(label: Any) -> Any:
    """Return a label as a hashable value, so that tables can be grouped by it."""
    return tuple(map(_hashable, label)) if isinstance(label, list) else label


def to_frame(columns: Mapping[str, list[Any]]) -> "pd.DataFrame":
    """Return columns as a pandas table."""
    pandas = imported("pandas", "notebook", "to_frame", "; to_columns works without it")
    frame: pd.DataFrame = pandas.DataFrame(dict(columns))
    return frame


def new_axes() -> "Axes":
    """Return the axes of a new figure."""
    axes: Axes
    _, axes = imported("matplotlib.pyplot", "plots", "plot").subplots(layout="constrained")
    return axes


def draw_entries(columns: Mapping[str, Sequence[Any]], axes: "Axes", *, title: str) -> None:
    """Draw entries in the form of `to_columns`: a dot each, with a bar from low to high.

    The first two columns are an entry's label and its estimate.
    """
    of, what = list(columns)[:2]
    names = [label_text(label) for label in columns[of]]
    middle, low, high = (_numbers(columns[name]) for name in (what, "low", "high"))
    axes.set_title(title)
    places = range(len(names))
    if len(names) > _DRAWN_ALONE:
        axes.fill_between(places, low, high, alpha=0.25, linewidth=0.0)
        axes.plot(places, middle)
        axes.set_xlabel("values, in the document's order")
        axes.set_ylabel(what)
        return
    axes.hlines(places, low, high, linewidth=2.0)
    axes.plot(middle, places, "o", color="black", markersize=4.0)
    axes.set_yticks(list(places), names)
    axes.invert_yaxis()
    axes.set_xlabel(what)
    if what == "share":
        axes.axvline(0.0, color="0.6", linewidth=1.0)


def draw_courses(
    times: Sequence[str], courses: Mapping[str, Sequence[Sequence[Any]]], axes: "Axes", *, what: str
) -> None:
    """Draw each course over the windows that start at `times`: rows of `(estimate, low, high)`."""
    places = range(len(times))
    for name, rows in courses.items():
        middle, low, high = (_numbers([row[column] for row in rows]) for column in range(3))
        (line,) = axes.plot(places, middle, label=name)
        axes.fill_between(places, low, high, color=line.get_color(), alpha=0.2, linewidth=0.0)
    axes.set_xticks(list(places), times, rotation=90)
    axes.set_ylabel(what)
    if courses:
        axes.legend()


def label_text(label: Any) -> str:
    """Return a label as text: `bus`, `60, 110`, or, for a bin, `10 to 20`.

    >>> label_text([-0.0, 0.6000000000000001])
    '0 to 0.6'
    """
    if not isinstance(label, list | tuple):
        return str(label)
    bins = len(label) == 2 and all(isinstance(end, float) for end in label)
    return (" to " if bins else ", ").join(
        rounded_text(end + 0.0) if bins else label_text(end) for end in label
    )


def _numbers(values: Sequence[Any]) -> list[float]:
    """Return numbers to draw: a bin's middle, or NaN for what is not a number."""
    return [_number(value) for value in values]


def _number(value: Any) -> float:
    if isinstance(value, list | tuple) and value:
        return sum(map(_number, value)) / len(value)
    return float(value) if isinstance(value, int | float) else float("nan")
