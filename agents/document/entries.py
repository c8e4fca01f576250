"""What each query of a document is answered with: a value, a range, a quantile, a mean, an area."""

from typing import Annotated

from pydantic import Field, JsonValue

from ldpstream.agents.document.part import Number, Part
from ldpstream.estimators.bounds.options import Form, Method

Share = Annotated[Number, Field(description="Estimated share; unbiased, so possibly below 0")]
Count = Annotated[Number, Field(description="The share times n")]
Error = Annotated[Number, Field(description="Standard error of the share; null if projected")]
Low = Annotated[Number, Field(description="Lower confidence bound of the share")]
High = Annotated[Number, Field(description="Upper confidence bound of the share")]
Influence = Annotated[
    Number,
    Field(description="The most that one forged report moves the share; null if projected"),
]

Forged = Annotated[
    int | None,
    Field(
        description="The least number of forged reports, of the n, that can move the share by more "
        "than the distance to its nearer bound; null if no number can, or projected"
    ),
]


Bound = Annotated[
    Form | None,
    Field(
        description="How low and high were made, as docs/guides/bounds.md has it; known: without "
        "error; null if undefined"
    ),
]


class WeightEstimate(Part):
    """The sum of the weights of the respondents with some value."""

    total: Number = Field(description="Estimated sum of weights; unbiased, so possibly below 0")
    se: Number = Field(description="Standard error of the sum")
    low: Number = Field(description="Lower confidence bound of the sum")
    high: Number = Field(description="Upper confidence bound of the sum")
    bound: Bound = None


Weight = Annotated[WeightEstimate | None, Field(description="Only of collections with weights")]


class Shares(Part):
    """What is told of the share of a value or a range."""

    share: Share
    count: Count
    se: Error
    low: Low
    high: High
    influence: Influence
    forged: Forged = None
    bound: Bound = None
    weight: Weight = None


class _OfValue(Part):
    value: JsonValue = Field(description="The user's own label")


class _OfRange(Part):
    name: str = Field(description="As configured, or the text that was asked")


# Fields are written in the reversed order of bases: first what the shares are of.
class ValueEstimate(Shares, _OfValue):
    """The estimate of one value."""


class RangeEstimate(Shares, _OfRange):
    """The estimate of a range: of values, both ends included, or of bins between two edges."""


class LinearEstimate(Part):
    """The mean of a function of the value, given by its weights."""

    name: str = Field(description="As it was asked")
    mean: Number = Field(description="Estimated mean of the weights of the respondents' values")
    total: Number = Field(description="The mean times n")
    se: Number = Field(description="Standard error of the mean; null if projected")
    low: Number = Field(description="Lower confidence bound of the mean")
    high: Number = Field(description="Upper confidence bound of the mean")
    influence: Number = Field(
        description="The most that one forged report moves the mean; null if projected"
    )
    forged: int | None = Field(
        description="The least number of forged reports, of the n, that can move the mean by more "
        "than the distance to its nearer bound; null if no number can, or projected"
    )
    bound: Bound = None


class AreaRest(Part):
    """What is not named again inside of an area: the colour of its own on a map."""

    values: int = Field(description="Number of values; 0: all of the area is named inside of it")
    share: Share
    low: Low
    high: High


class AreaEstimate(RangeEstimate):
    """A block, or an area whose bounds exclude the even share of what surrounds it."""

    name: str = Field(
        description="`block N`, `all values`, the label of a value, or of ordered values the text "
        "that asks for the area as a range"
    )
    block: int | None = Field(description="Number of the disclosed block; null where there is one")
    inside: int | None = Field(
        description="Entry of the area that it lies in, from 0; null of blocks"
    )
    box: list[list[int]] | None = Field(
        description="The first and the last place in each dimension, from 0; its values are those "
        "of its block in this box. Null where values have no order"
    )
    values: int = Field(description="Number of values")
    rest: AreaRest | None = Field(description="Null where nothing is named inside of it")


class Areas(Part):
    """Shares at the resolution that the reports carry; all bounds hold together."""

    rule: str = Field(description="When an area is named")
    family: int = Field(description="Number of areas that could have been named: bounds are theirs")
    levels: int = Field(description="Levels of areas, which share the error alike")
    entries: list[AreaEstimate] = Field(description="All blocks; each area after what it lies in")


class QuantileEstimate(Part):
    """The smallest value that at least the share p does not exceed."""

    p: float
    value: JsonValue = Field(description="The user's own label; null if undefined")
    low: JsonValue = Field(description="Lower confidence bound, a label; null if undefined")
    high: JsonValue = Field(description="Upper confidence bound, a label; null if undefined")
    bound: Method | None = Field(
        default=None,
        description="profile or profile-exact, where likelihood made low and high; absent where "
        "the bounds of all prefixes did",
    )
