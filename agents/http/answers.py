"""The JSON answers of the HTTP API other than the estimate document, as models.

The same models write the answers and their schemas in `/openapi.json`, so the two cannot drift.
Times are RFC 3339 UTC; durations and precisions are milliseconds; an unknown number is null.
"""

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """Base of all answers: closed, so that a field without a description cannot slip in."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Problem(Answer):
    """Why a request was not answered."""

    error: str = Field(description="What was wrong, and what was expected")


class Health(Answer):
    """That the process serves."""

    status: str = Field(description="Always `ok`")


class Readiness(Answer):
    """Whether every collection can be asked, and why not."""

    ready: bool
    reasons: list[str] = Field(description="What is missing, one sentence each")


class Span(Answer):
    """A half-open span of event time."""

    start: str = Field(description="First moment inside")
    end: str = Field(description="First moment after it")


class Windows(Answer):
    """How a collection cuts event time into windows and panes."""

    size_ms: int
    hop_ms: int
    grace_ms: int
    pane_ms: int = Field(description="Spans of whole panes can be asked for")


class Collection(Answer):
    """One collection as configured, and whether it can be asked."""

    name: str
    fingerprint: str = Field(description="Of the spec that devices use, in hexadecimal")
    mechanism: str
    values: int = Field(description="Size of the domain")
    topic: str
    precision_ms: int = Field(description="Event times are cut to this on the device")
    window: Windows
    minimum: int = Field(description="Documents with fewer reports are withheld")
    confidence: float
    estimand: str
    method: str
    sharpest: int = Field(description="Reports at which anytime bounds are narrowest")
    top: int = Field(description="Length of the published list")
    quantiles: list[float] = Field(description="Published quantiles")
    ranges: list[str] = Field(description="Names of the published ranges")
    ready: bool


class CollectionList(Answer):
    """All collections, in the order of the configuration."""

    collections: list[Collection]


class WindowState(Answer):
    """One window that holds reports."""

    window: Span
    n: int = Field(description="Reports counted")
    late: int = Field(description="Reports for panes of it that came after they had closed")
    final: bool = Field(description="Closed in every partition and stored")
    published: bool = Field(description="Its final document is on the estimates topic")


class WindowList(Answer):
    """Windows of one collection, oldest first."""

    collection: str
    windows: list[WindowState]
    more: bool = Field(description="Whether older windows of the span were left out")


class PartitionStatus(Answer):
    """One partition as its newest winning head decided it."""

    partition: int
    owned: bool = Field(description="By the worker that answers")
    next: int | None = Field(
        description="First source offset not decided; null before the tail's end"
    )
    end_offset: int | None = Field(description="End of the source; only its owner knows")
    lag: int | None = Field(description="Source records not decided")
    watermark: str | None = Field(
        description="Largest event time, or what idle closing moved it to"
    )
    idle: bool
    counted: int
    late: int
    rejected: dict[str, int] = Field(description="By reason")
    lost_offsets: int = Field(description="Deleted by the broker before they were read")


class CollectionStatus(Answer):
    """How far a collection is, over all partitions, whichever worker is asked."""

    collection: str
    fingerprint: str
    ready: bool
    problems: list[str]
    counted: int
    late: int
    rejected: int
    lost_offsets: int
    partitions: list[PartitionStatus]
