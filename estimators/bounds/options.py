"""The options of an estimate: its estimand and its bounds."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypedDict, get_args

from ldpstream.estimators.bounds.sampling import ONE_REPORT_EACH, Sampling

_Named = Literal["profile", "profile-exact", "normal", "bernstein", "anytime", "anytime-exact"]

Method = Literal["padded", "exact", _Named]
"""How bounds are computed.

- `padded`: covers for every query with few reports or many; `choose` picks the form.
- `exact`: the same form if it is proved at every n, else Bernstein's bounds.
- `profile`, `profile-exact`: by likelihood, calibrated or proved, if the mechanism has one and it
  pays; else `padded` and `exact`.
- `normal`: z times the plug-in standard error.
- `bernstein`: empirical Bernstein bounds, at every n.
- `anytime`: holds at every moment of a window at once, asymptotically.
- `anytime-exact`: the same, at every n.
"""

CredibleMethod = Literal["normal", "bernstein", "anytime"]
"""The same for credible bounds, of shares estimated with priors."""

Suspicion = Literal["too low", "too high", "too far from 1/2", "too near 1/2", "wrong in a level"]
"""How priors that the reports contradict are wrong, in the words of documents."""

Form = Literal[
    "known",
    "range",
    "wilson",
    "clopper-pearson",
    "score",
    "enumerated",
    "block",
    "product",
    "padded",
    "noise",
    _Named,
]
"""The kind of bound of a query (`choose`)."""

FALLBACK: Final[Mapping[Method, Method]] = {"profile": "padded", "profile-exact": "exact"}
"""The methods by likelihood, each with the method for the queries that it does not bound."""

CUT: Final = frozenset({"padded", "exact", *FALLBACK})
"""Methods whose bounds are cut to the range of shares."""

ANYTIME: Final = frozenset({"anytime", "anytime-exact"})
"""Methods whose bounds hold at all moments together."""

Estimand = Literal["respondents", "population", "active"]
"""Whose share is estimated: `respondents`, those who reported; `population`, from which they were
drawn; `active`, those who could have reported, of whom `sampling` says how many did."""

SHARPEST: Final = 10_000
"""Number of reports at which anytime bounds are narrowest by default."""


class OptionKeywords(TypedDict, total=False):
    """The keywords that every estimate takes, as in `Options`."""

    confidence: float
    method: Method
    estimand: Estimand
    simultaneous: bool
    family: int | None
    sharpest: int
    sampling: Sampling


@dataclass(frozen=True, kw_only=True)
class Options:
    """How estimates are bounded.

    `confidence` is strictly between 0 and 1. `simultaneous` bounds hold together with that
    confidence, over `family` queries: by default those of the call, and more if these were
    post-selected from a larger number. `sharpest` is the number of reports at which anytime bounds
    are narrowest. Fix it before seeing any report: bounds that are tuned to the data do not hold.
    `sampling` says how often devices report, and which part of the active devices does.

    Raises:
        ValueError: if an option is invalid.
    """

    confidence: float = 0.95
    method: Method = "padded"
    estimand: Estimand = "respondents"
    simultaneous: bool = False
    family: int | None = None
    sharpest: int = SHARPEST
    sampling: Sampling = ONE_REPORT_EACH

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence < 1.0:
            raise ValueError(f"confidence: expected a number in (0, 1), got {self.confidence!r}")
        if self.method not in get_args(Method):
            raise ValueError(f"method: expected one of {get_args(Method)}, got {self.method!r}")
        if self.estimand not in get_args(Estimand):
            raise ValueError(
                f"estimand: expected one of {get_args(Estimand)}, got {self.estimand!r}"
            )
        if self.family is not None and self.family < 1:
            raise ValueError(f"family: expected a number of queries >= 1, got {self.family!r}")
        if self.sharpest < 1:
            raise ValueError(f"sharpest: expected a number of reports >= 1, got {self.sharpest!r}")

    def error_level(self, queries: int) -> float:
        """Return the error allowed for each query of a call with this many.

        Sidak's correction, `1 - (1 - delta)^(1/m)`, holds for jointly normal estimates with any
        correlation (Sidak 1967) and is used only with `normal`; all others use Bonferroni's,
        `delta/m`.

        Raises:
            ValueError: if the declared family is smaller than the call.
        """
        family = 1
        if self.simultaneous:
            family = max(queries, 1) if self.family is None else self.family
            if family < queries:
                raise ValueError(f"family: expected at least the {queries} queries of the call")
        if self.method == "normal":
            return -math.expm1(math.log(self.confidence) / family)
        return (1.0 - self.confidence) / family
