"""The fields of a document about priors, for mechanisms with priors (`lip`)."""

from pydantic import Field, JsonValue

from ldpstream.agents.document.part import Number, Part
from ldpstream.estimators.lip.methods import CredibleMethod, Suspicion


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
    method: CredibleMethod = Field(description="Both anytime and anytime-exact are exact here")
    withheld: str | None = Field(
        default=None, description="What is wrong with the priors; absent if nothing is withheld"
    )


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
