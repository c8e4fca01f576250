"""The plan document: what `ldpstream plan --json` prints.

Errors are standard errors of shares at the document's number of respondents, for both estimands.
They are predicted exactly for the design shares; `decode_ms` alone is a measurement.
"""

from typing import Literal

from pydantic import Field, JsonValue

from ldpstream.agents.document.part import Number, Part
from ldpstream.estimators.bounds.options import Estimand
from ldpstream.estimators.planning.choices import Objective


class Errors(Part):
    """Standard errors of one query's share."""

    respondents: float
    population: float


class RangeErrors(Errors):
    """Those of a published range."""

    name: str


class ValueErrors(Errors):
    """Those of one of the most frequent values."""

    value: JsonValue = Field(description="The user's own label")
    share: float = Field(description="Its design share")


class QuantileErrors(Errors):
    """Those of the cumulative distribution where it reaches p."""

    p: float
    value: JsonValue = Field(description="The quantile of the design shares, a label")
    bound: Number = Field(
        description="What no prefix errs by more than, all at once, with the confidence; a priori"
    )


class Summary(Part):
    """Errors of many queries: root mean square and worst, for the respondents' estimand."""

    mean: float
    worst: float
    predicted: int = Field(description="Number of queries that were predicted")
    total: int = Field(description="Number of queries that they stand for")


class CostPart(Part):
    """What a mechanism costs."""

    report_bits: int
    report_bytes: int
    message_bytes: int = Field(description="A message with one report")
    statistic: int = Field(description="Exact integers in a pane")
    state_bytes: int = Field(description="Their bytes, in one pane of one partition")
    decode_ms: float = Field(description="Measured in this run: all values of one statistic")


class OptimumPart(Part):
    """The best channel for the policy, the workload and the design shares that was found."""

    error: float = Field(description="Its root mean square standard error of the workload")
    bound: float = Field(description="What no channel of the policy is below, as status says")
    status: Literal["proved", "searched", "unfinished"] = Field(
        description="All extreme rays were looked at; no better column was found; time was up"
    )
    reports: int = Field(description="Number of its possible reports")


class ProposalPart(Part):
    """A mechanism that was considered."""

    mechanism: str = Field(description="Permanent id")
    variant: str = Field(description="Which of several with this id; may be empty")
    epsilon: JsonValue = Field(description="What it would spend, as its own key epsilon; or null")


class MechanismPlan(ProposalPart):
    """A mechanism that satisfies the policy."""

    configured: bool
    error: float = Field(description="Root mean square standard error of the workload")
    width: float = Field(
        description="Of the workload's bounds with the confidence, low to high: twice the normal "
        "quantile times the error; wider where few reports carry the variance"
    )
    ratio: Number = Field(description="The error over the best one's; null over no error")
    of_optimum: Number = Field(description="The error over the optimum's; null where unknown")
    respondents_for_1_percent: int | None = Field(
        description="Respondents for a standard error of 0.01 of the workload; null above 2^53"
    )
    respondents_for_width: int | None = Field(
        default=None, description="Respondents for bounds of the wanted width; null above 2^53"
    )
    total_variation: float = Field(
        description="What the mean total-variation distance of all values' shares is at most; "
        "about so much where `values` are a sample"
    )
    ranges: list[RangeErrors]
    quantiles: list[QuantileErrors]
    top: list[ValueErrors]
    values: Summary
    all_ranges: Summary | None = Field(description="Null for a domain without an order")
    cost: CostPart


class RefusedPart(ProposalPart):
    """A mechanism that does not satisfy the policy."""

    value: JsonValue = Field(description="The pair's first value, a label")
    other: JsonValue = Field(description="The pair's second value")
    allowed: Number = Field(description="Budget of the pair; null is infinite")
    taken: Number = Field(description="What the mechanism would spend; null is infinite")


class UnsuitedPart(Part):
    """A mechanism that has nothing to propose for the policy and domain."""

    mechanism: str
    needs: str


class LifeWay(Part):
    """One way to spend a budget over many windows."""

    way: Literal["fresh", "spread", "hold"] = Field(
        description="Every window, some (a spread ledger), or all of them from a few draws"
    )
    reports: int = Field(description="Windows in which a device reports")
    hold: int | None = Field(
        default=None, description="Windows of an epoch, whose reports follow from one draw"
    )
    loss: float = Field(description="Of each of its reports, or draws, for the worst pair")
    total: float = Field(description="Of all of them, at most; the budget, if it spends that")
    mechanism: str = Field(description="The best one at this budget")
    variant: str
    respondents: float = Field(description="Devices that report in a window, on average")
    error: float = Field(description="Standard error of a window, of all devices' shares")
    configured: bool = Field(description="Whether its reports are those of the collection")


class LifePart(Part):
    """What a budget for many windows buys in each of them."""

    windows: int
    budget: float
    ways: list[LifeWay]


class PlanDocument(Part):
    """Mechanisms for one collection's policy, best first."""

    collection: str
    fingerprint: str = Field(description="Of the spec as it is configured, in hexadecimal")
    respondents: int
    estimand: Estimand = Field(description="Of the errors that mechanisms are sorted by")
    confidence: float = Field(description="Of the widths, and of quantiles' a-priori bounds")
    wanted_width: float | None = Field(default=None, description="As it was asked for")
    policy: dict[str, JsonValue]
    prior: str = Field(description="The design shares")
    workload: Objective
    workload_text: str = Field(description="What mechanisms are sorted by, in words")
    verdict: str = Field(description="The winner, in one or a few plain sentences")
    optimum: OptimumPart | None = Field(description="Null where it was not searched")
    mechanisms: list[MechanismPlan]
    refused: list[RefusedPart]
    unsuited: list[UnsuitedPart]
    unreached: list[ProposalPart] = Field(
        default=[], description="Mechanisms that were not compared, because the time was up"
    )
    limit_seconds: float | None = Field(default=None, description="That time; null if none is left")
    life: LifePart | None = Field(default=None, description="Only with --windows and --budget")

    def to_json(self) -> str:
        """Return the document as indented JSON."""
        return self.model_dump_json(indent=2)
