"""The fields of a document about priors, of collections whose mechanism knows any (`lip`)."""

from pydantic import Field, JsonValue

from ldpstream.agents.document.part import Number, Part
from ldpstream.estimators.lip.methods import CredibleMethod, Suspicion


class MmseEstimate(Part):
    """The Bayesian estimate of the second value's share among the respondents: priors and reports.

    Right as far as the priors are; the distribution needs none. Where the reports contradict the
    priors all numbers are null, and `withheld` says so.
    """

    value: JsonValue = Field(description="The domain's second value")
    share: Number = Field(description="Mean of the posterior, `sum E[X | Y] / n`")
    count: Number = Field(description="The share times n")
    se: Number = Field(description="Standard deviation of the posterior of the share")
    low: Number = Field(description="Lower credible bound, whatever the priors in their levels")
    high: Number = Field(description="Upper credible bound, whatever the priors in their levels")
    method: CredibleMethod = Field(description="anytime is exact here; anytime-exact is it too")
    withheld: str | None = Field(
        default=None, description="What is wrong with the priors; absent where nothing is withheld"
    )


class LevelCalibration(Part):
    """A level of prior and epsilon whose reports contradict it."""

    prior: list[float] = Field(description="Least and largest prior of the level")
    epsilon: float
    n: int = Field(description="Reports of this level")
    observed: float = Field(description="Share of reports of 1")
    expected: list[float] = Field(description="Least and largest share that its priors give")
    p_value: float = Field(description="Adjusted for all levels tested")


class Calibration(Part):
    """Whether the reports agree with the priors: a test at this moment, adjusted for all levels."""

    p_value: float = Field(description="The smallest of all tests, adjusted; small: a wrong prior")
    significance: float = Field(description="Below it a prior is called wrong")
    wrong: bool = Field(description="Whether p_value is below significance: mmse is then withheld")
    suspicion: Suspicion | None = Field(
        description="What the priors are, in common where possible; null unless they are wrong"
    )
    together: dict[Suspicion, float] = Field(
        description="p-values of what the priors of all levels may have in common, adjusted"
    )
    levels: int = Field(description="Levels tested: those with reports")
    flagged: int = Field(description="Levels whose own p-value is below significance")
    worst: list[LevelCalibration] = Field(description="The first 20 of these, worst first")
