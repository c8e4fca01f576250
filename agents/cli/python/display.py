"""Documents as tables and plots: one, or several windows of a collection."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ldpstream.agents.document.columns import Part, draw_courses, label_text, new_axes, to_columns
from ldpstream.agents.document.columns import to_frame as as_frame
from ldpstream.agents.document.model import EstimateDocument

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Document = EstimateDocument | Sequence[EstimateDocument]

FOLLOWED: Final = 5
"""How many entries of the newest window are drawn over several windows."""


def to_frame(document: Document, part: Part = "values") -> "pd.DataFrame":
    """Return a document's entries as a pandas table: labels, share, low, high and the rest.

    Entries of several windows are stacked, with the `start`, `end` and `size` of theirs.

    Raises:
        ImportError: naming what to install, where pandas is missing.
        ValueError: for an unknown part.
    """
    if isinstance(document, EstimateDocument):
        return document.to_frame(part)
    columns: dict[str, list[Any]] = {"start": [], "end": [], "size": [], **to_columns((), part)}
    for window_document in document:
        rows_by_name = window_document.to_columns(part)
        entries = len(next(iter(rows_by_name.values())))
        window = window_document.window
        rows_by_name["start"] = [None if window is None else window.start] * entries
        rows_by_name["end"] = [None if window is None else window.end] * entries
        rows_by_name["size"] = [window_document.size] * entries
        for name, values in rows_by_name.items():
            columns.setdefault(name, []).extend(values)
    return as_frame(columns)


def plot(document: Document, part: Part = "values", *, axes: "Axes | None" = None) -> "Axes":
    """Draw a document, and return the matplotlib axes.

    One window: estimates with their bounds. Several: the first entries of the newest one over
    time.

    Raises:
        ImportError: naming what to install, where matplotlib is missing.
        ValueError: for an unknown part, or no document.
    """
    if isinstance(document, EstimateDocument):
        return document.plot(part, axes=axes)
    if not document:
        raise ValueError("expected at least one document")
    columns = [window_document.to_columns(part) for window_document in document]
    of, what = list(columns[0])[:2]
    courses = {
        label_text(label): [_at(entries, label, of, what) for entries in columns]
        for label in columns[-1][of][:FOLLOWED]
    }
    times = [
        "all reports" if window_document.window is None else window_document.window.start
        for window_document in document
    ]
    drawn = axes or new_axes()
    draw_courses(times, courses, drawn, what=what)
    drawn.set_title(document[-1].collection)
    return drawn


def _at(columns: dict[str, list[Any]], label: Any, of: str, what: str) -> tuple[Any, Any, Any]:
    """Return an entry's estimate, low and high; Nones if a window does not have it."""
    if label not in columns[of]:
        return None, None, None
    place = columns[of].index(label)
    return columns[what][place], columns["low"][place], columns["high"][place]
