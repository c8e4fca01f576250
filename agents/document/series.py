"""Series: a few numbers of a collection over many spans, in one compact answer.

A point is what an estimate document says of its span, by the same functions, without what the
queries do not need. Numbers are rounded to `DIGITS`; documents have all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from pydantic import Field, JsonValue

from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.answers import CollectionStatus, WindowState
from ldpstream.agents.document.build import of_span, window_fields
from ldpstream.agents.document.entries import AreaEstimate, Part
from ldpstream.agents.document.estimates import (
    Basis,
    Entry,
    all_values,
    list_values,
    numbers,
    range_estimates,
)
from ldpstream.agents.document.model import ChangeDocument
from ldpstream.agents.document.queries import linear_estimates, quantile_estimates
from ldpstream.agents.state.context import WindowTotals
from ldpstream.estimators.bounds.options import Estimand, Method
from ldpstream.estimators.estimate import estimate_values

DIGITS: Final = 6
"""Significant digits of a number in a series."""


class SeriesPoints(Part):
    """The points, oldest first; one entry of each list for each point."""

    start: list[str] = Field(description="First moment of what the numbers stand for")
    end: list[str] = Field(description="First moment after it: no two points have the same span")
    n: list[int] = Field(description="Reports counted")
    late: list[int] = Field(description="Reports that came too late")
    final: list[bool] = Field(description="Whether all windows of the point are final")
    withheld: list[bool] = Field(description="Whether there are too few reports for numbers")


class SeriesLine(Part):
    """One number over the points; entries are null where it is withheld or undefined."""

    kind: Literal["value", "range", "linear", "quantile"]
    name: JsonValue = Field(description="The value's label, the query's name, the quantile's share")
    estimate: list[JsonValue] = Field(description="A share, a mean, or a quantile's label")
    low: list[JsonValue]
    high: list[JsonValue]


class StandingAreas(Part):
    """The areas that stand out from their surroundings."""

    count: int
    largest: AreaEstimate | None = Field(description="The one with the largest share")


class Series(Part):
    """A few numbers of one collection over time."""

    collection: str
    fingerprint: str
    attribute: str | None = None
    size: str = Field(description="Of the windows, as documents name it")
    windows_a_point: int = Field(description="How many windows a point adds up at most")
    estimand: Estimand
    confidence: float = Field(
        description="Of each bound by itself; of the largest values over the whole domain at once; "
        "with published, of every value, of all ranges, of all quantiles and of all means at once"
    )
    method: Method
    points: SeriesPoints
    lines: list[SeriesLine]
    status: CollectionStatus | None = Field(default=None, description="Only if asked for")
    windows: list[WindowState] = Field(
        default=[], description="With status: the newest final window, and the oldest open one"
    )
    change: ChangeDocument | None = Field(
        default=None, description="With status: from the final point before to the newest"
    )
    standing: StandingAreas | None = Field(
        default=None,
        description="With status: of the newest final window, of ordered values without queries",
    )


class SeriesList(Part):
    """The series of several collections."""

    series: list[Series]
    elsewhere: list[str] = Field(description="Collections of other shards: ask each by its path")
    problems: dict[str, str] = Field(description="Why these collections have no series now")


@dataclass(frozen=True, kw_only=True)
class SeriesQuery:
    """What each point says: the queries of `options`, and the values with these indices.

    `named` of the ranges are values that were asked for by name, and come first.
    """

    options: EstimateOptions
    values: tuple[int, ...] = ()
    named: int = 0

    @property
    def count(self) -> int:
        """The number of lines."""
        options = self.options
        queries = len(options.ranges) + len(options.linear) + len(options.quantiles)
        return len(self.values) + queries

    def heads(self, collection: CollectionConfig) -> list[Entry]:
        """Return kind and name of each line."""
        options = self.options
        labels = self._about(collection).spec.domain.estimated.labels(np.array(self.values, int))
        ranges = [query.name for query in options.ranges]
        return [
            *({"kind": "value", "name": name} for name in [*labels, *ranges[: self.named]]),
            *({"kind": "range", "name": name} for name in ranges[self.named :]),
            *({"kind": "linear", "name": query.name} for query in options.linear),
            *({"kind": "quantile", "name": p} for p in options.quantiles),
        ]

    def _about(self, collection: CollectionConfig) -> CollectionConfig:
        return collection.attributes.get(self.options.attribute or "", collection)

    @np.errstate(under="ignore")  # As for documents of estimates.
    def largest(
        self, collection: CollectionConfig, totals: WindowTotals, top: int
    ) -> "SeriesQuery":
        """Return the same with the `top` largest values of these totals."""
        if not top or _is_withheld(collection, of_span(collection, totals, self.options)[0]):
            return self
        listed = list_values(self._basis(collection, totals, replace(self.options, top=top)))
        # Each once, those that were asked for first.
        return replace(self, values=tuple(dict.fromkeys((*self.values, *listed.indices.tolist()))))

    def point(
        self,
        collection: CollectionConfig,
        totals: WindowTotals,
        *,
        window: tuple[int, int],
        final: bool,
    ) -> Entry:
        """Return one point: its span, its n, and `numbers`, three for each line."""
        about, _ = of_span(collection, totals, self.options)
        withheld = _is_withheld(collection, about)
        span = window if withheld else (about.start_ms, about.end_ms)
        fields: Entry = {
            **window_fields(collection, *span),
            "n": about.n,
            "late": about.late,
            "final": final,
        }
        if withheld:
            return {**fields, "withheld": True, "numbers": [[None] * 3] * self.count}
        basis, ends = self._basis(collection, totals, self.options), ("low", "high")
        rows = [[row[name] for name in ("share", *ends)] for row in self._value_rows(basis)]
        for entries, name in (
            (range_estimates(basis, None) if self.options.ranges else [], "share"),
            (linear_estimates(basis, None) if self.options.linear else [], "mean"),
            (quantile_estimates(basis, None) if self.options.quantiles else [], "value"),
        ):
            rows += [[entry[column] for column in (name, *ends)] for entry in entries]
        rounded = [[_rounded(number) for number in row] for row in rows]
        return {**fields, "withheld": False, "numbers": rounded}

    def _basis(
        self, collection: CollectionConfig, totals: WindowTotals, options: EstimateOptions
    ) -> Basis:
        about, sampled = of_span(collection, totals, options)
        return Basis.of(self._about(collection).spec, about, sampled)

    def _value_rows(self, basis: Basis) -> list[Entry]:
        if not self.values:
            return []
        # The largest values were chosen by looking: their bounds hold for the whole domain.
        indices, keywords = np.array(self.values), basis.keywords | {"simultaneous": True}
        if basis.given is None:
            counted = basis.mechanism, basis.statistic, basis.n
            estimate = estimate_values(*counted, values=indices, **keywords)
        else:
            estimate = all_values(basis, **keywords).take(indices)
        return numbers(
            estimate, basis.n, None, None if basis.hidden is None else ~basis.hidden[indices]
        )


def series_fields(
    collection: CollectionConfig, query: SeriesQuery, points: Sequence[Entry], *, windows: int
) -> Mapping[str, Any]:
    """Return a series of these points, each of at most so many `windows`.

    A span of which several points are told is one point.
    """
    distinct = [
        point
        for number, point in enumerate(points)
        if not number or _span(point) != _span(points[number - 1])
    ]
    columns = ("estimate", "low", "high")
    lines = [
        {
            **head,
            **{
                name: [point["numbers"][line][place] for point in distinct]
                for place, name in enumerate(columns)
            },
        }
        for line, head in enumerate(query.heads(collection))
    ]
    options = query.options
    return {
        "collection": collection.name,
        "fingerprint": collection.spec.fingerprint.hex(),
        "attribute": options.attribute,
        "size": collection.window.identity.label,
        "windows_a_point": windows,
        "estimand": options.estimand,
        "confidence": options.confidence,
        "method": options.method,
        "points": {name: [point[name] for point in distinct] for name in SeriesPoints.model_fields},
        "lines": lines,
    }


def _span(point: Entry) -> tuple[str, str]:
    return point["start"], point["end"]


def _is_withheld(collection: CollectionConfig, totals: WindowTotals) -> bool:
    return totals.withheld or totals.n < max(1, collection.minimum)


def _rounded(number: Any) -> Any:
    return float(f"{number:.{DIGITS}g}") if isinstance(number, float) else number
