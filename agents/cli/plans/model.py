"""The plan document: what `ldpstream plan --json` prints.

Errors are standard errors of shares at the document's number of respondents, for both estimands.
They are predicted exactly for the expected (design) shares.
"""

from typing import Literal

from pydantic import Field, JsonValue

from ldpstream.agents.document.entries import Number, Part
from ldpstream.estimators.bounds.options import Estimand
from ldpstream.estimators.planning.choices import Objective
from ldpstream.estimators.planning.cost import Cost


class Errors(Part):
    """Standard errors of one query's share."""

    respondents: float
    population: float


class RangeErrors(Errors):
    """The errors of a published range."""

    name: str


class ValueErrors(Errors):
    """The errors of one of the most frequent values."""

    value: JsonValue = Field(description="The user's own label")
    share: float = Field(description="Its design share")


class QuantileErrors(Errors):
    """The errors of the cumulative distribution where it reaches p."""

    p: float
    value: JsonValue = Field(description="The quantile of the design shares, a label")
    bound: Number = Field(
        description="A-priori bound on the errors of all prefixes at once, with the confidence"
    )


class Summary(Part):
    """Errors of many queries, root mean square and worst, for the estimand respondents."""

    mean: float
    worst: float
    predicted: int = Field(description="Number of predicted queries")
    total: int = Field(description="Number of queries of which they are a sample")


class OptimumPart(Part):
    """The best channel found for the policy, the workload and the design shares, and a bound."""

    error: float = Field(
        description="Its root mean square standard error over the workload, or that of the best "
        "mechanism if less"
    )
    bound: Number = Field(
        description="Lower bound on the error of any channel; null if there is none"
    )
    status: Literal["proved", "relaxed", "searched", "unfinished"] = Field(
        description="proved: the bound is from all extreme rays; relaxed: from a relaxation; "
        "searched: no bound, but no better column was found; unfinished: time was up"
    )
    reports: int | None = Field(description="Number of its possible reports; null: not searched")


class ProposalPart(Part):
    """A mechanism that was considered."""

    mechanism: str = Field(description="Permanent id")
    variant: str = Field(description="Which of several with this id; may be empty")
    epsilon: JsonValue = Field(description="The value for its key epsilon, or null")

    @property
    def title(self) -> str:
        """The id, with the variant if it has one."""
        return f"{self.mechanism}, {self.variant}" if self.variant else self.mechanism


class MechanismPlan(ProposalPart):
    """A mechanism that satisfies the policy."""

    configured: bool
    error: float = Field(description="Root mean square standard error over the workload")
    width: float = Field(
        description="Width of the workload's bounds (high - low): twice the normal quantile times "
        "the error; wider where few reports carry the variance"
    )
    ratio: Number = Field(description="The error divided by the best one's; null if that is 0")
    of_optimum: Number = Field(
        description="The error divided by that of the best channel found; null without a search"
    )
    respondents_for_1_percent: int | None = Field(
        description="Respondents for a standard error of 0.01 of the workload; null above 2^53"
    )
    respondents_for_width: int | None = Field(
        default=None, description="Respondents for bounds of the wanted width; null above 2^53"
    )
    total_variation: float = Field(
        description="Upper bound on the mean total-variation distance of all shares; approximate "
        "if `values` are a sample"
    )
    information: Number = Field(
        default=None,
        description="Mutual information of value and report in bits, at the design shares; null "
        "where the statistic does not count reports, or too many",
    )
    ranges: list[RangeErrors]
    quantiles: list[QuantileErrors]
    top: list[ValueErrors]
    values: Summary
    all_ranges: Summary | None = Field(description="Null for a domain without an order")
    cost: Cost


class RefusedPart(ProposalPart):
    """A mechanism that does not satisfy the policy."""

    value: JsonValue = Field(description="The pair's first value, a label")
    other: JsonValue = Field(description="The pair's second value")
    allowed: Number = Field(description="Budget of the pair; null if infinite")
    taken: Number = Field(description="Loss of the mechanism; null if infinite")


class UnsuitedPart(Part):
    """A mechanism that does not suit the policy and domain."""

    mechanism: str
    needs: str


class BinsPart(Part):
    """How many bins an interval deserves, for the error of its cumulative curve."""

    configured: int
    recommended: int
    epsilon: float = Field(description="The budget of one bin that leaves the whole its own")
    peak: float = Field(description="The largest density that is expected, in even ones")


class AtomsPart(Part):
    """What reports about nothing but the published queries achieve."""

    atoms: int = Field(description="Sets of values that the published queries tell apart")
    mechanism: str = Field(description='The best one with `workload = "published"`')
    error: float = Field(description="Its root mean square standard error over the ranges")


class PlanDocument(Part):
    """Mechanisms for one collection's policy, best first."""

    collection: str
    fingerprint: str = Field(description="Fingerprint of the configured spec, in hexadecimal")
    respondents: int
    estimand: Estimand = Field(description="Estimand of the errors that sort the mechanisms")
    confidence: float = Field(description="Confidence of widths and quantiles' a-priori bounds")
    wanted_width: float | None = Field(default=None, description="The requested width of bounds")
    policy: dict[str, JsonValue]
    prior: str = Field(description="The design shares")
    workload: Objective
    workload_text: str = Field(description="The workload in words")
    verdict: str = Field(description="The winner, in a few plain sentences")
    bins: BinsPart | None = Field(
        default=None,
        description="Only for one interval, under the l1 metric or with one epsilon for any values",
    )
    atoms: AtomsPart | None = Field(
        default=None,
        description='Only where `workload = "published"` has less error than all mechanisms below',
    )
    optimum: OptimumPart | None = Field(description="Null if it was not searched for")
    order: Number = Field(
        default=None,
        description="Order of the least mean total variation distance of any mechanism, without a "
        "constant ([CA] Theorems 3 and 4); null but for blocks and sensitive values, epsilon <= 1",
    )
    mechanisms: list[MechanismPlan]
    refused: list[RefusedPart]
    unsuited: list[UnsuitedPart]
    unreached: list[ProposalPart] = Field(
        default=[], description="Mechanisms that were not compared, because the time was up"
    )
    limit_seconds: float | None = Field(
        default=None, description="The time limit; null if all were compared"
    )

    def to_json(self) -> str:
        """Return the document as indented JSON."""
        return self.model_dump_json(indent=2)


class AttributePlan(Part):
    """One attribute: how often it is drawn, and the largest standard error of its shares."""

    attribute: str
    mechanism: str
    probability: float = Field(description="As configured")
    proposed: float = Field(description="Probability that equalises the attributes' largest errors")
    error: float = Field(description="Largest standard error of a share, as configured")
    proposed_error: float = Field(description="The same with the proposed probability")


class AttributesPlan(Part):
    """What `ldpstream plan --json` prints for a collection of records."""

    collection: str
    respondents: int
    attributes: list[AttributePlan]
