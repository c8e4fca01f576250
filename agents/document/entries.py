"""The parts of documents: values, ranges, quantiles, means, areas, and fields about priors."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from ldpstream.estimators.bounds.options import CredibleMethod, Form, Suspicion

Number = float | None
"""A finite number, or null where it is undefined."""


class Part(BaseModel):
    """A part of a document or of another answer: immutable, and without undeclared fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Share = Annotated[Number, Field(description="Estimated share; unbiased, so possibly below 0")]
Count = Annotated[Number, Field(description="The share times n")]
Error = Annotated[Number, Field(description="Standard error of the unbiased share")]
Low = Annotated[Number, Field(description="Lower confidence bound of the share")]
High = Annotated[Number, Field(description="Upper confidence bound of the share")]
Influence = Annotated[
    Number, Field(description="The most that one forged report can move the unbiased share")
]

Forged = Annotated[
    int | None,
    Field(
        description="The least number of forged reports among the n that can move the unbiased "
        "share beyond its nearer bound; null if no number can"
    ),
]


Bound = Annotated[
    Form | None,
    Field(description="How low and high were made; known: without error; null if undefined"),
]


class WeightEstimate(Part):
    """The sum of the weights of the respondents with some value."""

    total: Number = Field(description="Estimated sum of weights; unbiased, so possibly below 0")
    se: Number = Field(description="Standard error of the sum")
    low: Number = Field(description="Lower confidence bound of the sum")
    high: Number = Field(description="Upper confidence bound of the sum")
    bound: Bound = None


Weight = Annotated[WeightEstimate | None, Field(description="Only in collections with weights")]


class Shares(Part):
    """The estimated share of a value or a range."""

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
    name: str = Field(description="The configured name, or the text of the query")


# Fields are written in reversed order of the bases: the value or name comes first.
class ValueEstimate(Shares, _OfValue):
    """The estimate of one value."""


class RangeEstimate(Shares, _OfRange):
    """The estimate of a range: of values, both ends included, or of bins between two edges."""


class LinearEstimate(Part):
    """The mean of a function of the value, given as weights."""

    name: str = Field(description="The query's name")
    mean: Number = Field(description="Estimated mean of the weights of the respondents' values")
    total: Number = Field(description="The mean times n")
    se: Number = Field(description="Standard error of the unbiased mean")
    low: Number = Field(description="Lower confidence bound of the mean")
    high: Number = Field(description="Upper confidence bound of the mean")
    influence: Number = Field(
        description="The most that one forged report can move the unbiased mean"
    )
    forged: int | None = Field(
        description="The least number of forged reports among the n that can move the unbiased "
        "mean beyond its nearer bound; null if no number can"
    )
    bound: Bound = None


class AreaRest(Part):
    """The part of an area outside of the areas in it: its own colour on a map."""

    values: int = Field(description="Number of values; 0: areas inside cover all of it")
    share: Share
    low: Low
    high: High


class AreaEstimate(RangeEstimate):
    """A block, or an area whose bounds exclude the even share of its surroundings."""

    name: str = Field(
        description="`block N`, `all values`, a value's label, or, for ordered values, the range "
        "that queries it"
    )
    block: int | None = Field(description="Number of the disclosed block; null where there is one")
    inside: int | None = Field(
        description="Index of the entry that contains it, from 0; null for blocks"
    )
    box: list[list[int]] | None = Field(
        description="First and last position in each dimension, from 0; its values are those of "
        "its block in this box. Null where values have no order"
    )
    values: int = Field(description="Number of values")
    rest: AreaRest | None = Field(description="Null where no area lies inside")


class Areas(Part):
    """Shares at the resolution that the reports support; all bounds hold at once."""

    rule: str = Field(description="When an area is shown")
    family: int = Field(description="Number of areas for which the bounds hold at once")
    levels: int = Field(description="Levels of areas, among which the error is split evenly")
    entries: list[AreaEstimate] = Field(description="All blocks; areas after those they lie in")


class QuantileEstimate(Part):
    """The smallest value that at least the share p does not exceed."""

    p: float
    value: JsonValue = Field(description="The user's own label; null if undefined")
    low: JsonValue = Field(description="Lower confidence bound, a label; null if undefined")
    high: JsonValue = Field(description="Upper confidence bound, a label; null if undefined")


class AxisQuantileEstimate(Part):
    """A quantile of one coordinate of values in several dimensions."""

    axis: int = Field(description="The dimension, from 0")
    p: float
    value: JsonValue = Field(description="The coordinate of a label; null if undefined")
    low: JsonValue = Field(description="Lower confidence bound; null if undefined")
    high: JsonValue = Field(description="Upper confidence bound; null if undefined")


class MmseEstimate(Part):
    """The Bayesian estimate of the second value's share among respondents, from priors and reports.

    It is only as right as the priors; the distribution needs none. Where the reports contradict the
    priors, all numbers are null, and `withheld` says why.
    """

    value: JsonValue = Field(description="The domain's second value")
    share: Number = Field(description="Mean of the posterior, `sum E[X | Y] / n`")
    count: Number = Field(description="The share times n")
    se: Number = Field(description="Standard deviation of the posterior of the share")
    low: Number = Field(description="Lower credible bound, whatever the priors in their levels")
    high: Number = Field(description="Upper credible bound, whatever the priors in their levels")
    method: CredibleMethod = Field(description="How credible bounds are made")
    withheld: str | None = Field(
        default=None, description="What is wrong with the priors; absent if nothing is withheld"
    )


class Posterior(Part):
    """What a share among the respondents, or the mean of weights, is if the prior is right."""

    name: JsonValue = Field(description="The value, a label, or the name of the query")
    mean: Number = Field(description="Its posterior mean, of least mean squared error")
    sd: Number = Field(description="Its posterior standard deviation")


class KnownPriorEstimates(Part):
    """Bayesian estimates with the collection's prior, and a test of the prior by the reports.

    They are only as right as the prior; all other estimates need none. Where the reports contradict
    the prior, means and deviations are null.
    """

    p_value: float = Field(description="Pearson's chi-square test; small: the prior is wrong")
    significance: float = Field(description="The prior is called wrong below this p-value")
    wrong: bool = Field(description="Whether p_value is below significance")
    values: list[Posterior] = Field(default=[], description="Of the listed values, in their order")
    ranges: list[Posterior] = Field(default=[], description="Of the ranges and sets")
    linear: list[Posterior] = Field(default=[], description="Of the linear queries")


class LevelCalibration(Part):
    """A level of prior and epsilon that its reports contradict."""

    prior: list[float] = Field(description="Least and largest prior of the level")
    epsilon: float
    n: int = Field(description="Reports of this level")
    observed: float = Field(description="Share of reports that are 1")
    expected: list[float] = Field(description="Least and largest share under its priors")
    p_value: float = Field(description="Adjusted for all levels tested")


class Calibration(Part):
    """Whether the reports agree with the priors: a test at one moment, adjusted for all levels."""

    p_value: float = Field(description="The smallest of all tests, adjusted; small: a wrong prior")
    significance: float = Field(description="A prior is called wrong below this p-value")
    wrong: bool = Field(description="Whether p_value is below significance: mmse is then withheld")
    suspicion: Suspicion | None = Field(
        description="How the priors are wrong, in common if possible; null unless they are wrong"
    )
    together: dict[Suspicion, float] = Field(
        description="Adjusted p-values of errors that the priors of all levels may share"
    )
    levels: int = Field(description="Levels tested: those with reports")
    flagged: int = Field(description="Levels whose own p-value is below significance")
    worst: list[LevelCalibration] = Field(description="The first 20 of these, worst first")
