"""The estimate document: what workers publish, HTTP answers and `estimate` prints.

The models write the JSON and describe it (JSON Schema, `/openapi.json`), but do not validate what
workers compute. Times are RFC 3339 UTC, values the user's own labels (on an interval the bin
`[low, high]`), and an undefined number is null, never NaN.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field, JsonValue, TypeAdapter

from ldpstream.agents.config.query.settings import Projection
from ldpstream.agents.document.columns import Part as EntryPart
from ldpstream.agents.document.columns import draw_entries, new_axes, to_columns, to_frame
from ldpstream.agents.document.entries import (
    Areas,
    AxisQuantileEstimate,
    Calibration,
    KnownPriorEstimates,
    LinearEstimate,
    MmseEstimate,
    Number,
    Part,
    QuantileEstimate,
    RangeEstimate,
    ValueEstimate,
)
from ldpstream.agents.state.context import WaitingKey
from ldpstream.estimators.bounds.options import Estimand, Method
from ldpstream.estimators.comparison.change import Devices
from ldpstream.mechanisms.base.texts import count
from ldpstream.mechanisms.base.times import parse_time

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


Direction = Literal["rose", "fell"]


class Window(Part):
    """A half-open span of event time."""

    start: str = Field(description="First moment inside")
    end: str = Field(description="First moment after it")


class LostMessages(Part):
    """Messages deleted by the source's retention before they were read; some may be in the span."""

    offsets: int = Field(description="At most this many messages are missing")
    partitions: list[int] = Field(description="Partitions of the source")


class ActiveEstimate(Part):
    """Devices that were active in the panes of the span, added up pane by pane."""

    count: float = Field(description="Estimated from the number of reports")
    se: float = Field(description="Its standard error")


class CentralLoss(Part):
    """What a report loses against those who see only published documents."""

    epsilon: float = Field(description="Two protected values are hidden up to a factor e^epsilon")
    delta: float = Field(description="Except with this probability")
    reports: int = Field(description="Published documents are about at least this many reports")


class MergedBlocks(Part):
    """Blocks with few reports, published only together because of `minimum_block`."""

    blocks: int = Field(description="How many blocks")
    runs: list[list[int]] = Field(
        description="First and last number of each run of blocks, from 0; at most 1,000 runs"
    )
    names: list[str] | None = Field(
        default=None, description="Their names, if the domain's file has any; at most 1,000"
    )
    count: int = Field(description="Exact number of their reports together")


class WaitingReports(Part):
    """Reports that are counted, but not in the estimates yet (docs/reference/minimum.md)."""

    reports: int = Field(description="How many")
    until: Literal["reports", "closing", "later"] = Field(
        description="What shows them, or some of them: more reports in the window, or its end; its "
        "end alone; more reports in later windows, which have to close, too"
    )
    more: int | None = Field(
        default=None, description="How many more reports that takes; null with `closing`"
    )
    because: WaitingKey = Field(description="The key that makes them wait")


class EstimateDocument(Part):
    """Estimates of one collection over one span of event time.

    A withheld document only has the number of reports, that is the fields down to `waiting`.
    """

    collection: str
    fingerprint: str = Field(description="Fingerprint of the reports' spec, in hexadecimal")
    title: str | None = Field(
        default=None, description="What people call the collection; only if configured"
    )
    window: Window | None = Field(description="Null for all reports together")
    size: str | None = Field(
        default=None,
        description="Of which of the collection's windows it is one: `15m`, `1h every 5m` or "
        "`1d, Europe/Berlin`. Sums over windows of several sizes count reports several times; "
        "absent if the span is not one window",
    )
    n: int = Field(description="Reports counted")
    final: bool = Field(description="Whether the window is closed in every partition")
    withheld: bool = Field(
        description="Whether estimates are withheld: n is below the configured minimum, or the "
        "window's reports do not yet form parts of that many"
    )
    waiting: WaitingReports | None = Field(
        default=None, description="The window's reports that wait because of `minimum`; if any do"
    )
    span: Window | None = Field(
        default=None,
        description="The span of the estimates and n if it is wider than the window: whole parts "
        "of at least `minimum` reports; absent if it equals the window",
    )
    lost: LostMessages | None = Field(
        default=None, description="Only where some are missing; in withheld documents, too"
    )
    partial: bool = Field(
        default=False,
        description="Whether workers with different windows count some reports; only where true",
    )
    late: int = Field(default=0, description="Reports of this span that arrived too late to count")
    rejected: int = Field(default=0, description="Reports rejected since the collection began")
    estimand: Estimand = "respondents"
    confidence: float = Field(default=0.95, description="Confidence of the bounds")
    method: Method = Field(
        default="padded",
        description="anytime holds at every moment of the window at once, the others at one moment",
    )
    sharpest: int | None = Field(
        default=None, description="Reports at which anytime bounds are narrowest; only with anytime"
    )
    simultaneous: bool = Field(
        default=False,
        description="Whether the bounds of the distribution hold all at once, over the whole "
        "domain. Those of a list shorter than the domain, which is post-selected, always do; "
        "those of ranges and of quantiles, each list by itself, do if that was asked for",
    )
    projection: Projection = Field(
        default="none",
        description="Post-processing, by name; all but none are slightly biased, and bounds are "
        "those of the unbiased estimate",
    )
    outside: int | None = Field(
        default=None,
        description="Only with a projection: how many of the shares lie outside their bounds, "
        "which are those of the unbiased estimate",
    )
    distribution: list[ValueEstimate] = Field(
        default=[], description="The largest shares, or the whole domain in its order"
    )
    ranges: list[RangeEstimate] = Field(default=[])
    quantiles: list[QuantileEstimate] = Field(default=[])
    axis_quantiles: list[AxisQuantileEstimate] = Field(
        default=[], description="Of values in several dimensions: the quantiles of each coordinate"
    )
    active: ActiveEstimate | None = Field(
        default=None, description="Only if the collection configures `spread`"
    )
    central: CentralLoss | None = Field(
        default=None,
        description='Only in finals with `publish.every = "off"`, if it is less than what one '
        "report loses by itself",
    )
    merged: MergedBlocks | None = Field(
        default=None,
        description="Only with `minimum_block`, where blocks are merged: numbers about a part of "
        "them are null, as are all quantiles",
    )
    linear: list[LinearEstimate] = Field(
        default=[], description="Only if asked for or published; each in units of its weights"
    )
    areas: Areas | None = Field(default=None, description="Only if asked for")
    influence: Number = Field(
        default=None,
        description="The largest influence of the entries' shares; null if there is none",
    )
    attribute: str | None = Field(
        default=None, description="Of records: the attribute; n counts the reports about it"
    )
    of: int | None = Field(
        default=None, description="With `attribute`: the number of reports about all attributes"
    )
    attributes: list["EstimateDocument"] = Field(
        default=[], description="Of records: a document per attribute, unless one is asked for"
    )
    forged: int | None = Field(
        default=None, description="The smallest `forged` of the shares; null if there is none"
    )
    mmse: MmseEstimate | None = Field(default=None, description="Only for mechanisms with priors")
    calibration: Calibration | None = Field(
        default=None, description="Only for mechanisms with priors"
    )
    known_prior: KnownPriorEstimates | None = Field(
        default=None, description="Only if the collection knows the prior of its values"
    )

    def to_json(self) -> bytes:
        """Return the document as one line of JSON in UTF-8: the same bytes for the same content."""
        # Straight to bytes: a `str` in between would double the memory.
        return _JSON.dump_json(self, exclude_unset=True)

    @property
    def window_text(self) -> str:
        """The window for people: local days by their dates, `2026-10-25 (25 h)`."""
        if self.window is None:
            return "all reports"
        start, end = self.window.start, self.window.end
        if ", " not in (self.size or ""):
            return f"{start} to {end}"
        first, after = date.fromisoformat(start[:10]), date.fromisoformat(end[:10])
        text, days = first.isoformat(), (after - first).days
        if days > 1:
            text += f" to {after - timedelta(days=1)}"
        hours = (parse_time(end) - parse_time(start)) / _HOUR_MS
        return text if hours == 24 * days else f"{text} ({hours:g} h)"

    def about(self, attribute: str) -> "EstimateDocument":
        """Return the document of one attribute of records; if withheld, the document itself.

        Raises:
            ValueError: for an unknown attribute.
        """
        if self.withheld or self.attribute == attribute:
            return self
        for section in self.attributes:
            if section.attribute == attribute:
                return section
        names = ", ".join(str(section.attribute) for section in self.attributes) or "none"
        raise ValueError(f"attribute: expected one of {names}, got {attribute!r}")

    def to_columns(self, part: EntryPart = "values") -> dict[str, list[Any]]:
        """Return the entries of one part by column: labels, estimates, low, high and the rest.

        Other libraries' tables can be made from it, such as `pyarrow.table`. A withheld document
        has no entries. Values of a pair of attributes also have both labels in `first` and
        `second`: `frame.pivot(index="first", columns="second", values="share")` is a two-way table.

        Raises:
            ValueError: for an unknown part, and for records without an attribute.
        """
        if self.attributes:
            raise ValueError("expected one attribute of records: use document.about(NAME)")
        entries: dict[str, Sequence[Part]] = {
            "values": self.distribution,
            "ranges": self.ranges,
            "quantiles": self.quantiles,
            "linear": self.linear,
        }
        columns = to_columns(entries.get(part, ()), part)
        if part == "values" and ":" in (self.attribute or ""):
            both = {"first": 0, "second": 1}.items()
            columns |= {name: [label[at] for label in columns["label"]] for name, at in both}
        return columns

    def to_frame(self, part: EntryPart = "values") -> "pd.DataFrame":
        """Return the same as a pandas table; without pandas, ImportError says what to install."""
        return to_frame(self.to_columns(part))

    def plot(self, part: EntryPart = "values", *, axes: "Axes | None" = None) -> "Axes":
        """Draw the entries with their bounds, and return the axes; ImportError as in `to_frame`."""
        columns, drawn = self.to_columns(part), axes or new_axes()
        window = "all reports" if self.window is None else self.window.start
        draw_entries(
            columns, drawn, title=f"{self.collection}, {window}: {count(self.n, 'report')}"
        )
        return drawn


_HOUR_MS: Final = 3_600_000
_JSON: Final = TypeAdapter(EstimateDocument)


def document_schema() -> dict[str, Any]:
    """Return the JSON Schema of every document, withheld or not."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **EstimateDocument.model_json_schema()}


class ComparedSpan(Part):
    """One of the two spans."""

    window: Window
    span: Window | None = Field(
        default=None, description="What the numbers stand for, where that is wider"
    )
    n: int = Field(description="Reports counted")
    final: bool = Field(description="Whether all its windows are closed in every partition")
    withheld: bool = Field(description="Whether it has too few reports to say anything else")


class Moved(Part):
    """The numbers of a change."""

    before: Number = Field(description="The unbiased estimate of the earlier span")
    after: Number = Field(description="That of the other one")
    change: Number = Field(description="`after - before`")
    se: Number = Field(
        description="The largest standard error of the change that agrees with `devices`"
    )
    low: Number = Field(description="Lower confidence bound of the population's change")
    high: Number = Field(description="Upper confidence bound of the population's change")
    told: Direction | None = Field(
        description="`rose` if low is above 0, `fell` if high is below 0; null: not told"
    )


class _OfValue(Part):
    value: JsonValue = Field(description="The user's own label")


class _OfBlock(Part):
    block: int = Field(description="Number of the block, from 0")
    name: str | None = Field(description="Its name, if the domain's file has any")


class _OfQuery(Part):
    name: str = Field(description="The configured name, or the text of the query")


# Fields are written in reversed order of the bases: the value or name comes first.
class ValueChange(Moved, _OfValue):
    """The change of one value's share."""


class BlockChange(Moved, _OfBlock):
    """The change of a disclosed block's share."""


class QueryChange(Moved, _OfQuery):
    """The change of a range's share, or of a mean, in units of its weights."""


class QuantileChange(Part):
    """By how many positions of the domain a quantile moved."""

    p: float
    before: JsonValue = Field(description="Its label in the earlier span; null if undefined")
    after: JsonValue = Field(description="Its label in the other one; null if undefined")
    steps: int | None = Field(description="How many positions it moved; null if undefined")
    low: int | None = Field(description="Lower confidence bound of the steps")
    high: int | None = Field(description="Upper confidence bound of the steps")
    told: Direction | None = Field(description="As for shares")


class ChangeDocument(Part):
    """What changed in the population between two spans; a withheld one has no lists.

    All bounds hold at once with `confidence`, so any number of changes that are `told` may be read
    out together.
    """

    collection: str
    fingerprint: str = Field(description="Fingerprint of the reports' spec, in hexadecimal")
    title: str | None = Field(default=None, description="As in documents of estimates")
    attribute: str | None = Field(default=None, description="Of records: the attribute")
    before: ComparedSpan
    after: ComparedSpan
    withheld: bool
    reason: str | None = Field(default=None, description="Why it is withheld, as a sentence")
    estimand: Literal["population"] = "population"
    confidence: float = Field(default=0.95, description="With which all bounds hold together")
    method: Method = Field(default="padded", description="How the bounds of both spans are made")
    devices: Devices = Field(
        default="fresh",
        description="different: no device reports in both spans; fresh: devices may, with fresh "
        "noise; held: they may send reports of one permanent draw (`hold`) in both",
    )
    family: int = Field(default=0, description="The number of changes whose bounds hold at once")
    told: int = Field(default=0, description="How many of these are told, listed or not")
    values: list[ValueChange] = Field(
        default=[], description="Those that changed most against their error, or all in order"
    )
    blocks: list[BlockChange] = Field(default=[], description="Only if asked for")
    ranges: list[QueryChange] = Field(default=[])
    linear: list[QueryChange] = Field(default=[])
    quantiles: list[QuantileChange] = Field(default=[])
