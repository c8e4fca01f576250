"""The estimate document: what is published, what HTTP answers, what `estimate` prints.

The models validate nothing that we compute ourselves; they write the JSON and describe it (JSON
Schema, `/openapi.json`). Times are RFC 3339 UTC, values the user's own labels (of an interval the
bin `[low, high]`), and an undefined number is null, never NaN.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from ldpstream.agents.options import Projection
from ldpstream.estimators.options import Estimand, Method

Number = float | None
"""A finite number, or null where it is undefined."""


class Part(BaseModel):
    """A part of a document: closed, and never changed once written."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Window(Part):
    """A half-open span of event time."""

    start: str = Field(description="First moment inside")
    end: str = Field(description="First moment after it")


Share = Annotated[Number, Field(description="Estimated share; unbiased, so possibly below 0")]
Count = Annotated[Number, Field(description="The share times n")]
Error = Annotated[Number, Field(description="Standard error of the share; null if projected")]
Low = Annotated[Number, Field(description="Lower confidence bound of the share")]
High = Annotated[Number, Field(description="Upper confidence bound of the share")]
Influence = Annotated[
    Number,
    Field(description="The most that one forged report moves the share; null if projected"),
]


class ValueEstimate(Part):
    """The estimate of one value."""

    value: JsonValue = Field(description="The user's own label")
    share: Share
    count: Count
    se: Error
    low: Low
    high: High
    influence: Influence


class RangeEstimate(Part):
    """The estimate of a range of values, both ends included."""

    name: str = Field(description="As configured, or the text that was asked")
    share: Share
    count: Count
    se: Error
    low: Low
    high: High
    influence: Influence


class QuantileEstimate(Part):
    """The smallest value that at least the share p does not exceed."""

    p: float
    value: JsonValue = Field(description="The user's own label; null if undefined")
    low: JsonValue = Field(description="Lower confidence bound, a label; null if undefined")
    high: JsonValue = Field(description="Upper confidence bound, a label; null if undefined")


class EstimateDocument(Part):
    """Estimates of one collection over one span of event time.

    A withheld document has too few reports: it holds the fields down to `withheld` and no others.
    """

    collection: str
    fingerprint: str = Field(description="Of the spec that made the reports, in hexadecimal")
    window: Window | None = Field(description="Null where all reports are taken together")
    n: int = Field(description="Reports counted")
    final: bool = Field(description="Whether the window is closed in every partition")
    withheld: bool = Field(description="Whether n is below the configured minimum")
    late: int = Field(default=0, description="Reports of this span that came too late to count")
    rejected: int = Field(default=0, description="Reports rejected since the collection began")
    estimand: Estimand = "respondents"
    confidence: float = Field(default=0.95, description="Of the bounds")
    method: Method = "normal"
    simultaneous: bool = Field(
        default=False,
        description="Whether the bounds of the distribution hold all together, over the whole "
        "domain. A list shorter than the domain was chosen by looking, so its bounds always do; "
        "those of ranges and of quantiles do, each list over itself, where it was asked for",
    )
    projection: Projection = Field(default="none", description="Post-processing, by name")
    distribution: list[ValueEstimate] = Field(
        default=[], description="The largest shares, or the whole domain in its own order"
    )
    ranges: list[RangeEstimate] = []
    quantiles: list[QuantileEstimate] = []
    influence: Number = Field(
        default=None, description="The largest influence of the entries; null if there is none"
    )

    def to_json(self) -> bytes:
        """Return the document as one line of JSON in UTF-8: the same bytes for the same content."""
        return self.model_dump_json(exclude_unset=True).encode()
