"""The estimate document: what is published, what HTTP answers, what `estimate` prints.

The models validate nothing that we compute ourselves; they write the JSON and describe it (JSON
Schema, `/openapi.json`). Times are RFC 3339 UTC, values the user's own labels (of an interval the
bin `[low, high]`), and an undefined number is null, never NaN.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field, TypeAdapter

from ldpstream.agents.document.columns import Part as EntryPart
from ldpstream.agents.document.columns import to_columns, to_frame
from ldpstream.agents.document.entries import (
    Areas,
    LinearEstimate,
    QuantileEstimate,
    RangeEstimate,
    ValueEstimate,
)
from ldpstream.agents.document.part import Number, Part
from ldpstream.agents.document.picture import draw_entries, new_axes
from ldpstream.agents.document.prior_fields import Calibration, MmseEstimate
from ldpstream.agents.query.options import Projection
from ldpstream.estimators.bounds.options import Estimand, Method

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class Window(Part):
    """A half-open span of event time."""

    start: str = Field(description="First moment inside")
    end: str = Field(description="First moment after it")


class LostMessages(Part):
    """What the source's retention deleted before it was read, and may belong to the span."""

    offsets: int = Field(description="At most this many messages are missing")
    partitions: list[int] = Field(description="Of the source")


class ActiveEstimate(Part):
    """Devices that were active in the panes of the span, added up pane by pane."""

    count: float = Field(description="Estimated from the number of reports")
    se: float = Field(description="Its standard error")


class CentralLoss(Part):
    """What a report loses against those who see published documents alone."""

    epsilon: float = Field(description="Two protected values are as likely up to a factor e^this")
    delta: float = Field(description="But for this probability")
    reports: int = Field(description="What is published tells of this many together, or more")


class MergedBlocks(Part):
    """Blocks with few reports that are told of together, by `minimum_block`."""

    blocks: int = Field(description="How many")
    runs: list[list[int]] = Field(
        description="The first and the last number of neighbouring ones, from 0; at most 1,000 runs"
    )
    count: int = Field(description="Reports of all of them: exact")


class EstimateDocument(Part):
    """Estimates of one collection over one span of event time.

    A withheld document tells the number of reports alone: it holds the fields down to `withheld`
    and no others.
    """

    collection: str
    fingerprint: str = Field(description="Of the spec that made the reports, in hexadecimal")
    window: Window | None = Field(description="Null where all reports are taken together")
    n: int = Field(description="Reports counted")
    final: bool = Field(description="Whether the window is closed in every partition")
    withheld: bool = Field(
        description="Whether nothing is told: n is below the configured minimum, or the reports of "
        "the window are not in parts of that many yet"
    )
    span: Window | None = Field(
        default=None,
        description="What the estimates and n stand for where that is wider than the window: whole "
        "parts of at least `minimum` reports; absent where it is the window",
    )
    lost: LostMessages | None = Field(
        default=None, description="Only where some are missing; withheld documents say it too"
    )
    partial: bool = Field(
        default=False,
        description="Whether workers of other windows count a part of the reports; only where true",
    )
    late: int = Field(default=0, description="Reports of this span that came too late to count")
    rejected: int = Field(default=0, description="Reports rejected since the collection began")
    estimand: Estimand = "respondents"
    confidence: float = Field(default=0.95, description="Of the bounds")
    method: Method = Field(
        default="padded",
        description="anytime and anytime-exact hold at every moment of the window at once, the "
        "others at one moment",
    )
    sharpest: int | None = Field(
        default=None, description="Reports at which anytime bounds are narrowest; only with these"
    )
    simultaneous: bool = Field(
        default=False,
        description="Whether the bounds of the distribution hold all together, over the whole "
        "domain. A list shorter than the domain is post-selected, so its bounds always do; "
        "those of ranges and of quantiles do, each list over itself, where it was asked for",
    )
    projection: Projection = Field(default="none", description="Post-processing, by name")
    deviance: Number = Field(
        default=None,
        description="Only with projection likelihood: twice what the log-likelihood of the shares "
        "is below the largest",
    )
    distribution: list[ValueEstimate] = Field(
        default=[], description="The largest shares, or the whole domain in its own order"
    )
    ranges: list[RangeEstimate] = Field(default=[])
    quantiles: list[QuantileEstimate] = Field(default=[])
    active: ActiveEstimate | None = Field(
        default=None, description="Only where the collection says how devices spread their budgets"
    )
    central: CentralLoss | None = Field(
        default=None,
        description='Only of finals with `publish.every = "off"`, where less is lost than by one '
        "report alone (docs/guides/policy.md)",
    )
    merged: MergedBlocks | None = Field(
        default=None,
        description="Only with `minimum_block`, where blocks are merged: what would tell of a part "
        "of them is null, as are all quantiles",
    )
    linear: list[LinearEstimate] = Field(
        default=[], description="Only where asked for or published; each in units of its weights"
    )
    areas: Areas | None = Field(default=None, description="Only where asked for")
    influence: Number = Field(
        default=None,
        description="The largest influence on a share of the entries; null if there is none",
    )
    attribute: str | None = Field(
        default=None, description="Of records: what this is about; n is the reports about it alone"
    )
    of: int | None = Field(
        default=None, description="With `attribute`: the reports about all attributes together"
    )
    attributes: list["EstimateDocument"] = Field(
        default=[], description="Of records, unless one is asked for: a document for each attribute"
    )
    forged: int | None = Field(
        default=None, description="The smallest `forged` of the shares; null if there is none"
    )
    mmse: MmseEstimate | None = Field(
        default=None, description="Only of collections whose mechanism knows priors"
    )
    calibration: Calibration | None = Field(
        default=None, description="Only of collections whose mechanism knows priors"
    )

    def to_json(self) -> bytes:
        """Return the document as one line of JSON in UTF-8: the same bytes for the same content."""
        # Bytes at once: a text of them in between would double their memory.
        return _JSON.dump_json(self, exclude_unset=True)

    def about(self, attribute: str) -> "EstimateDocument":
        """Return the document of one attribute of records; a withheld one is that of each.

        Raises:
            ValueError: for an attribute that there is not.
        """
        if self.withheld or self.attribute == attribute:
            return self
        for one in self.attributes:
            if one.attribute == attribute:
                return one
        known = ", ".join(str(one.attribute) for one in self.attributes) or "none"
        raise ValueError(f"attribute: expected one of {known}, got {attribute!r}")

    def to_columns(self, part: EntryPart = "values") -> dict[str, list[Any]]:
        """Return the entries of one part by column: labels, estimates, low, high and the rest.

        For tables of any library: `pyarrow.table` takes it. A withheld document has no entries.
        Values of a pair of attributes have the labels of both in `first` and `second` too, so that
        `frame.pivot(index="first", columns="second", values="share")` is a two-way table.

        Raises:
            ValueError: for a part that there is not, and of records without an attribute.
        """
        if self.attributes:
            raise ValueError("expected one attribute of records: document.about(NAME)")
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
        """Return the same as a table of pandas; ImportError says what to install without it."""
        return to_frame(self.to_columns(part))

    def plot(self, part: EntryPart = "values", *, axes: "Axes | None" = None) -> "Axes":
        """Draw the entries with their bounds; return the axes. ImportError as in `to_frame`."""
        columns, drawn = self.to_columns(part), axes or new_axes()
        window = "all reports" if self.window is None else self.window.start
        draw_entries(columns, drawn, title=f"{self.collection}, {window}: {self.n:,} reports")
        return drawn


_JSON: Final = TypeAdapter(EstimateDocument)


def document_schema() -> dict[str, Any]:
    """Return the JSON Schema that every document keeps, withheld or not."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **EstimateDocument.model_json_schema()}
