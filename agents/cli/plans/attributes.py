"""Plans of records: the probabilities of attributes, and the errors that follow from them."""

import math

from pydantic import Field
from rich.console import Console
from rich.table import Table

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.document.entries import Part
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.registry.attributes import default_weights, worst_variance


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

    def to_json(self) -> str:
        """Return the plan as JSON."""
        return self.model_dump_json(indent=2)


def plan_attributes(collection: CollectionConfig, respondents: int) -> AttributesPlan:
    """Return the plan of a collection of records for this many respondents of all attributes.

    Errors are for the population estimand, in the worst case over devices' values.
    """
    mechanism = collection.spec.mechanism
    assert isinstance(mechanism, Sampled)
    weights = default_weights(mechanism.parts)
    total = sum(weights)
    rows = []
    for name, part, units, weight in zip(
        mechanism.names, mechanism.parts, mechanism.probabilities, weights, strict=True
    ):
        variance, proposed = worst_variance(part) / respondents, float(weight / total)
        rows.append(
            AttributePlan(
                attribute=name,
                mechanism=part.id,
                probability=units / WORD,
                proposed=proposed,
                error=math.sqrt(variance * WORD / units),
                proposed_error=math.sqrt(variance / proposed),
            )
        )
    return AttributesPlan(collection=collection.name, respondents=respondents, attributes=rows)


def expected_respondents(collection: CollectionConfig, attribute: str, respondents: int) -> int:
    """Return how many respondents report about an attribute on average, at least 1."""
    mechanism = collection.spec.mechanism
    assert isinstance(mechanism, Sampled)
    units = mechanism.probabilities[mechanism.names.index(attribute)]
    return max(1, round(respondents * units / WORD))


def show_attributes(plan: AttributesPlan, console: Console) -> None:
    """Print a plan of records, and how to ask for more."""
    worst = max(one.error for one in plan.attributes)
    level = max(one.proposed_error for one in plan.attributes)
    console.print(
        f"{plan.collection}: a report is about one of {len(plan.attributes)} attributes; at "
        f"{plan.respondents:,} respondents no share has a standard error above {worst:.3g}, with "
        f"the proposed probabilities {level:.3g}",
        markup=False,
        soft_wrap=True,
    )
    table = Table()
    for column in ("attribute", "mechanism"):
        table.add_column(column, no_wrap=True)
    for column in ("probability", "proposed", "error", "proposed error"):
        table.add_column(column, justify="right")
    for one in plan.attributes:
        numbers = one.probability, one.proposed, one.error, one.proposed_error
        table.add_row(one.attribute, one.mechanism, *(f"{number:.3g}" for number in numbers))
    console.print(table)
    console.print("--attribute NAME compares the mechanisms for one of them", markup=False)
