"""The JSON answers of the HTTP API other than the estimate document, as models.

The same models write the answers and their schemas in `/openapi.json`, so the two cannot drift.
Times are RFC 3339 UTC; durations and precisions are milliseconds; an unknown number is null.
"""

from pydantic import BaseModel, ConfigDict, Field

from ldpstream.agents.document.model import Window


class Answer(BaseModel):
    """Base of all answers: closed, so that a field without a description cannot slip in."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Problem(Answer):
    """Why a request was not answered."""

    error: str = Field(description="What was wrong, and what was expected")


class Health(Answer):
    """That the process serves."""

    status: str = Field(description="`ok`, or `failed` where nothing but a restart helps")


class Readiness(Answer):
    """Whether every collection can be asked, and why not."""

    ready: bool
    reasons: list[str] = Field(description="What is missing, one sentence each")


class Windows(Answer):
    """How a collection cuts event time into windows and panes."""

    size_ms: int
    hop_ms: int
    grace_ms: int
    idle_ms: int | None = Field(
        description="A partition without messages for so long is not waited for; null: it always is"
    )
    pane_ms: int = Field(description="Spans of whole panes can be asked for")


class DomainShape(Answer):
    """How the values of a collection lie: what ranges and charts need."""

    kind: str = Field(
        description="values, size, grid, sizes, interval or attributes, as configured; of two "
        "attributes together pair"
    )
    shape: list[int] = Field(description="Values of each dimension; row-major order")
    ordered: bool = Field(description="Whether there are ranges")
    intervals: list[list[float]] | None = Field(
        description="Of numbers: the ends of each dimension, cut into `shape` bins; else null"
    )
    rounded: bool = Field(description="Numbers are rounded at random; the values are the edges")


class Attribute(Answer):
    """One attribute of records: how its values lie, and with which probability it is drawn."""

    name: str
    mechanism: str
    probability: float = Field(description="Public: of every report, whatever the values are")
    values: int = Field(description="Size of its domain")
    domain: DomainShape
    likelihood: bool = Field(description="As of a collection")
    top: int = Field(description="Length of its published list")
    quantiles: list[float] = Field(description="Published quantiles")
    ranges: list[str] = Field(description="Names of its published ranges")
    linear: list[str] = Field(description="Names of its published linear queries")


class Privacy(Answer):
    """What the policy promises in plain words; factors are exact and rounded up."""

    epsilon: str = Field(description="Budget of one report, and what it is of: `0.4 for each 2`")
    protected: list[str] = Field(description="What a report hides, and by what factor")
    unprotected: str | None = Field(description="Pairs that are not protected; null if none")
    disclosed: list[str] = Field(description="What leaves a device in the clear")


class DeviceTables(Answer):
    """What a mechanism's parameters hold only by digest."""

    blocks: list[tuple[int, int]] | None = Field(
        default=None, description="Runs of values: the block's number, and how many values follow"
    )
    sensitive: list[int] | None = Field(default=None, description="Numbers of sensitive values")
    attributes: dict[str, "DeviceTables"] | None = Field(
        default=None, description="Of records: those of each attribute that has any"
    )


class DeviceDocument(Answer):
    """All that a device needs to privatize: see docs/wire.md, "Device document"."""

    collection: str
    fingerprint: str = Field(description="First 8 bytes of the SHA-256 of `canonical`, in hex")
    canonical: str = Field(description="The canonical JSON of the spec, as a text")
    tables: DeviceTables


class AcceptedSpec(Answer):
    """An earlier spec of a collection whose reports are still taken, into documents of their own.

    Windows, estimates and status are those of this spec where `fingerprint` names it.
    """

    fingerprint: str
    mechanism: str
    values: int = Field(description="Size of the domain")
    precision_ms: int = Field(description="Event times are cut to this on the device")
    window: Windows
    ready: bool


class Collection(Answer):
    """One collection as configured, and whether it can be asked."""

    name: str
    fingerprint: str = Field(description="Of the spec that devices use, in hexadecimal")
    mechanism: str
    values: int = Field(description="Size of the domain")
    domain: DomainShape
    privacy: Privacy
    topic: str
    precision_ms: int = Field(description="Event times are cut to this on the device")
    window: Windows
    minimum: int = Field(description="No answers together tell of fewer reports than these")
    minimum_block: int = Field(description="The same of reports in a disclosed block; 0: off")
    confidence: float
    estimand: str
    method: str
    sharpest: int = Field(description="Reports at which anytime bounds are narrowest")
    likelihood: bool = Field(
        description="Whether project=likelihood and method=profile, profile-exact are offered"
    )
    top: int = Field(description="Length of the published list")
    quantiles: list[float] = Field(description="Published quantiles")
    ranges: list[str] = Field(description="Names of the published ranges")
    linear: list[str] = Field(description="Names of the published linear queries")
    attributes: list[Attribute] = Field(
        description="Of records; estimates of one are asked for with attribute=NAME"
    )
    accepted: list[AcceptedSpec] = Field(description="Earlier specs whose reports are still taken")
    ready: bool


class CollectionList(Answer):
    """All collections, in the order of the configuration."""

    collections: list[Collection]


class WindowState(Answer):
    """One window that holds reports."""

    window: Window
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
        description="First source offset not decided; null before the replica's end"
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
    stopped: bool = Field(description="Until what `problems` say is mended")
    problems: list[str] = Field(description="Why it does not work, one sentence each")
    counted: int
    late: int
    rejected: int
    lost_offsets: int
    partitions: list[PartitionStatus]
