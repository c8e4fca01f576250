"""What a user chooses about an estimate: its estimand and its bounds."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypedDict, get_args

from ldpstream.estimators.bounds.sampling import ONE_REPORT_EACH, Sampling

_Named = Literal["profile", "profile-exact", "normal", "bernstein", "anytime", "anytime-exact"]

Method = Literal["padded", "exact", _Named]
"""`padded`: what covers for every query, few reports or many; `choose` says by which form.
`exact`: the same where it is proved at every n, else Bernstein's. `profile` and `profile-exact`:
by likelihood, calibrated or proved, where the mechanism has one and it pays, else `padded` and
`exact`. `normal`: z times the plug-in
standard error. `bernstein`: empirical Bernstein, at every n. `anytime`: holds at every moment of a
window at once, asymptotic. `anytime-exact`: the same, at every n."""

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
"""How the bounds of one query were made (`choose`)."""

OTHERWISE: Final[Mapping[Method, Method]] = {"profile": "padded", "profile-exact": "exact"}
"""Methods by likelihood, and what bounds all that they do not."""

CUT: Final = frozenset({"padded", "exact", *OTHERWISE})
"""Methods whose bounds are cut to what shares can be."""

ANYTIME: Final = frozenset({"anytime", "anytime-exact"})
"""Methods whose bounds may be looked at all the time."""

Estimand = Literal["respondents", "population", "active"]
"""`respondents`: the share among those who did report. `population`: what they were drawn from.
`active`: the share among those who could have reported, of whom `sampling` says what part did."""

SHARPEST: Final = 10_000
"""Reports at which anytime bounds are narrowest, by default."""


class OptionKeywords(TypedDict, total=False):
    """The keywords that every estimate takes; `Options` says what they mean."""

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

    `confidence` is strictly between 0 and 1. `simultaneous` bounds hold all together with that
    confidence, over `family` queries: by default those of the call, more where these were chosen
    out of a larger number by looking. `sharpest` is the number of reports at which anytime bounds
    are narrowest: fix it before looking, since bounds that are tuned to what came do not hold.
    `sampling` says how often devices report, and which part of the active ones does.

    Raises:
        ValueError: where an option is impossible.
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
        """Return the error allowed to each query of a call of this many.

        Sidak's correction, `1 - (1 - delta)^(1/m)`, holds for jointly normal estimates of any
        correlation (Sidak 1967) and is used with `normal` only; otherwise Bonferroni's, `delta/m`.

        Raises:
            ValueError: where the declared family is smaller than the call.
        """
        family = 1
        if self.simultaneous:
            family = max(queries, 1) if self.family is None else self.family
            if family < queries:
                raise ValueError(f"family: expected at least the {queries} queries of the call")
        if self.method == "normal":
            return -math.expm1(math.log(self.confidence) / family)
        return (1.0 - self.confidence) / family
