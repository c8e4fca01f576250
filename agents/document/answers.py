"""The JSON answers of the HTTP API other than the estimate document, as models.

The same models write the answers and their schemas in `/openapi.json`, so the two always agree.
Times are RFC 3339 UTC; durations and precisions are milliseconds; an unknown number is null.
"""

from typing import Any, Literal

from pydantic import Field

from ldpstream.agents.config.privacy.statement import Privacy
from ldpstream.agents.config.query.settings import Projection
from ldpstream.agents.document.entries import Part
from ldpstream.agents.document.model import Window


class Problem(Part):
    """Why a request was not answered."""

    error: str = Field(description="What was wrong, and what was expected")


class Health(Part):
    """That the process serves."""

    status: str = Field(description="`ok`, or `failed` where only a restart helps")


class Readiness(Part):
    """Whether every collection can be queried, and if not, why."""

    ready: bool
    reasons: list[str] = Field(description="What is missing, one sentence each")
    waits: list[str] = Field(
        default_factory=list,
        description="What windows and added partitions wait for; a worker is ready all the same",
    )


class Windows(Part):
    """How a collection divides event time into windows and panes."""

    size_ms: int
    hop_ms: int
    grace_ms: int
    idle_ms: int | None = Field(
        description="How long to wait for a silent partition; null: for ever"
    )
    pane_ms: int = Field(description="Length of a pane: any span of whole panes can be queried")
    size: str = Field(description="All of this that tells windows apart, as documents' `size`")
    timezone: str = Field(description="Whose days windows consist of, where they are whole days")
    week_start: str | None = Field(description="With which day windows of whole weeks begin")


class DomainShape(Part):
    """The shape of a collection's domain, for ranges and charts."""

    kind: str = Field(
        description="values, size, grid, sizes, interval or attributes, as configured; pair for "
        "two attributes together"
    )
    shape: list[int] = Field(description="Number of values in each dimension; row-major order")
    ordered: bool = Field(description="Whether ranges can be queried")
    intervals: list[list[float]] | None = Field(
        description="For numbers: both ends of each dimension, which has `shape` bins; else null"
    )
    rounded: bool = Field(description="Whether numbers are rounded at random to the edges of bins")
    blocks: int = Field(
        default=0, description="Blocks that reports disclose, which a change can list; 0: none"
    )


class Attribute(Part):
    """One attribute of records: its domain, and the probability with which it is drawn."""

    name: str
    mechanism: str
    probability: float = Field(description="Public, and the same whatever the values are")
    values: int = Field(description="Size of its domain")
    domain: DomainShape
    top: int = Field(description="Length of its published list")
    quantiles: list[float] = Field(description="Published quantiles")
    ranges: list[str] = Field(description="Names of its published ranges")
    linear: list[str] = Field(description="Names of its published linear queries")
    value_labels: dict[str, str] = Field(default={}, description="As for a collection")


class LossBounds(Part):
    """Bounds of the largest loss of a protected pair; null: it has none."""

    low: float | None
    high: float | None


class RealisedLoss(Part):
    """The largest ratio of all pairs with one budget; `low` and `high` bound its logarithm."""

    budget: float
    ratio: str = Field(description="Exactly, as a fraction")
    low: float
    high: float


class MechanismCertificate(Part):
    """What a mechanism promises and realises, in exact arithmetic."""

    mechanism: str
    policy: dict[str, Any]
    loss: LossBounds
    losses: list[RealisedLoss] = Field(description="One for each different budget")
    disclosed: list[str]
    unprotected_pairs: int = Field(description="Ordered pairs that the policy does not protect")
    unprotected: str | None
    proof: Literal["enumeration", "structure"]
    violation: str | None = Field(description="Where the policy is broken; null if it holds")
    passed: bool = Field(alias="pass", description="Whether the policy holds")
    attributes: dict[str, "MechanismCertificate"] | None = None


class Odds(Part):
    """What one report changes of what anybody believed before, at one budget."""

    budget: float
    factor: str = Field(description="How many times the odds of two values grow at most")
    posteriors: list[tuple[float, float]] = Field(
        description="A probability before the report, and the largest one after it"
    )
    said: str = Field(description="The same in words")


class ReportInformation(Part):
    """What a report tells of a value that is drawn from a prior."""

    prior: Literal["uniform"] | list[float] = Field(description="Uniform where none is known")
    nats: float = Field(description="Mutual information of value and report")
    bits: float
    at_most_nats: float | None = Field(
        default=None, description="The most of any mechanism of the policy; absent if unbounded"
    )
    lip: LossBounds | None = Field(
        default=None,
        description="Loss of localized information privacy at the known prior; null if there is "
        "no bound or the channel is too large to list",
    )


class YearReader(Part):
    """What one kind of reader learns of a device in a year."""

    who: str
    loss: str | None = Field(description="At most, as a decimal; null: nothing bounds it")
    factor: str = Field(description="By which odds change at most; `no limit` from a million on")
    said: str = Field(description="The same in words, and when it holds")


class YearInWords(Part):
    """What all reports of a device in 365 days tell, for whoever signs for it."""

    windows: int = Field(description="Of the ledger, in 365 days")
    title: str
    about: str
    readers: list[YearReader]
    disclosed: list[str]
    unprotected: str | None
    limits: str = Field(description="What these sentences do not cover")


class CollectionCertificate(MechanismCertificate):
    """What `ldpstream certify` prints of a collection."""

    collection: str
    fingerprint: str
    factor: str | None = Field(
        description="The largest ratio of `losses`, rounded up: of neighbours, under a metric"
    )
    largest_factor: str | None = Field(
        default=None,
        description="The same of the two protected values that the policy hides least: of both "
        "ends, under a metric. Null if the policy lists too many values",
    )
    odds: list[Odds] = Field(
        description="At the least and at the largest budget of `losses`; under a metric last of "
        "the two values that are hidden least"
    )
    information: ReportInformation | None = Field(
        default=None, description="Absent where the statistic does not count reports, or too many"
    )
    spread: dict[str, Any] | None = None
    hold: dict[str, Any] | None = None
    words: dict[str, Any] | None = None
    year: YearInWords


class DeviceTables(Part):
    """Tables of which the mechanism's parameters contain only a digest."""

    blocks: list[tuple[int, int]] | None = Field(
        default=None, description="Runs of values: a block's number, and the run's length"
    )
    sensitive: list[int] | None = Field(default=None, description="Numbers of sensitive values")
    attributes: dict[str, "DeviceTables"] | None = Field(
        default=None, description="For records: the tables of each attribute that has any"
    )


class DeviceDocument(Part):
    """Everything that a device needs to privatize: see docs/wire.md, "Device document"."""

    collection: str
    fingerprint: str = Field(description="First 8 bytes of the SHA-256 of `canonical`, in hex")
    canonical: str = Field(description="The canonical JSON of the spec, as a text")
    tables: DeviceTables


class AcceptedSpec(Part):
    """An earlier spec of a collection whose reports are still counted, in documents of their own.

    The parameter `fingerprint` asks for its windows, estimates and status.
    """

    fingerprint: str
    mechanism: str
    values: int = Field(description="Size of the domain")
    precision_ms: int = Field(description="Event times are cut to this on the device")
    window: Windows
    ready: bool


class Annotation(Part):
    """Something that happened, as configured."""

    time: str
    text: str


class Collection(Part):
    """One collection as configured, and whether it can be queried."""

    name: str
    fingerprint: str = Field(description="Of the spec that devices use, in hexadecimal")
    mechanism: str
    values: int = Field(description="Size of the domain")
    domain: DomainShape
    privacy: Privacy
    topic: str
    precision_ms: int = Field(description="Event times are cut to this on the device")
    window: Windows
    minimum: int = Field(description="No combination of answers is about fewer reports")
    minimum_block: int = Field(description="The same for reports in a disclosed block; 0: off")
    confidence: float
    estimand: str
    method: str
    sharpest: int = Field(description="Reports at which anytime bounds are narrowest")
    project: Projection = Field(description="How shares are post-processed")
    top: int = Field(description="Length of the published list")
    quantiles: list[float] = Field(description="Published quantiles")
    ranges: list[str] = Field(description="Names of the published ranges")
    linear: list[str] = Field(description="Names of the published linear queries")
    attributes: list[Attribute] = Field(
        description="For records; attribute=NAME asks for the estimates of one"
    )
    accepted: list[AcceptedSpec] = Field(description="Earlier specs still accepted")
    ready: bool
    title: str | None = Field(default=None, description="What people call it")
    description: str | None = Field(default=None, description="What it is about")
    unit: str | None = Field(default=None, description="Of its values")
    axes: list[str] | None = Field(default=None, description="Names of the dimensions")
    block_names: list[str] | None = Field(
        default=None, description="Names of the disclosed blocks, in order"
    )
    value_labels: dict[str, str] = Field(
        default={}, description="What people read in place of a label, by its text"
    )
    geojson: bool = Field(
        default=False, description="Whether `.../geojson` has the shapes of the blocks"
    )
    annotations: list[Annotation] = Field(default=[], description="Events, oldest first")


class CollectionList(Part):
    """All collections, in the order of the configuration."""

    collections: list[Collection]


class WindowState(Part):
    """One window with reports."""

    window: Window
    n: int = Field(description="Reports counted")
    late: int = Field(description="Reports that arrived after their pane had closed")
    final: bool = Field(description="Whether it is closed in every partition, and stored")
    published: bool = Field(description="Whether its final is in the estimates topic")


class WindowList(Part):
    """Windows of one collection, oldest first."""

    collection: str
    size: str = Field(description="As in documents: all windows are of one size")
    windows: list[WindowState]
    more: bool = Field(description="Whether older windows of the span were left out")


class PartitionStatus(Part):
    """One partition, from its newest winning head."""

    partition: int
    owned: bool = Field(description="Whether this worker owns it")
    next: int | None = Field(
        description="First source offset not decided; null while the state is still being read"
    )
    end_offset: int | None = Field(description="End of the source, which only the owner knows")
    lag: int | None = Field(description="Source records not decided")
    watermark: str | None = Field(
        description="Event time reached, by reports or by closing while idle"
    )
    idle: bool
    counted: int
    late: int
    rejected: dict[str, int] = Field(description="By reason")
    lost_offsets: int = Field(description="Deleted by the broker before they were read")
    wait: str | None = Field(default=None, description="Why windows wait for it, if they do")
    wait_seconds: float = Field(
        default=0.0, description="How long they have waited, beyond `window.idle`"
    )


class CollectionStatus(Part):
    """A collection's progress over all partitions, the same from any worker."""

    collection: str
    fingerprint: str
    ready: bool
    stopped: bool = Field(description="Whether it has stopped until its `problems` are fixed")
    problems: list[str] = Field(description="Why it does not work, one sentence each")
    open_windows: int | None = Field(
        default=None, description="Windows with reports whose final is not published; null: unknown"
    )
    counted: int
    late: int
    rejected: int
    lost_offsets: int
    size: str = Field(default="", description="Of the windows, as documents name it")
    other_sizes: list[str] = Field(
        default=[],
        description="Of windows before a change of the configuration, as far as this worker knows: "
        "their finals are only on the estimates topic (`ldpstream finals --size`)",
    )
    partitions: list[PartitionStatus]
