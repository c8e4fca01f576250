"""The options of an estimate: its estimand, its bounds, and how its reports were sampled.

The error of a population's share has two parts: the noise, which is drawn for each report, and the
sampling of respondents, `s2/n` for n reports of n devices, where `s2` is the variance of the
query's weight among them. The second part changes in these cases:

- A device gives m reports of one value. Then n reports are a sample of n/m devices: `m s2/n`. This
  is the worst case for any values, since no m numbers have a sum with more variance than m equal
  ones.
- The reports of a device in `held` consecutive windows follow from one permanent draw
  (`ldpstream.mechanisms.wire.hold`), and share their noise too. Then m of them are worth one. The
  error of a span is the mean of its windows' errors; however they depend on each other, its
  half-width is at most the mean of theirs, and that is at most the half-width of n/m reports.
- The n devices that take part in a window are drawn from the M that are active
  (`ldpstream.mechanisms.ledger.spread`). By sampling without replacement, the share among the M has
  the variance `(1 - n/M) s2/n`. Over several windows a device takes part in distinct ones, so that
  errors of windows do not add up.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, TypedDict, get_args


@dataclass(frozen=True)
class Sampling:
    """The factors of the sampling part of a variance, for the population and for active devices.

    `noise` is the most reports that share their noise: that many are worth one.
    """

    population: float = 1.0
    active: float = 1.0
    noise: float = 1.0

    def of_one(self) -> "Sampling":
        """Return the sampling with one report in place of those that share their noise."""
        return Sampling(self.population / self.noise, self.active / self.noise)

    def factor(self, estimand: str) -> float:
        """Return the factor for an estimand; respondents are not sampled."""
        if estimand == "respondents":
            return 0.0
        return self.active if estimand == "active" else self.population


ONE_REPORT_EACH: Final = Sampling()
"""Reports of different devices, which are an unknown part of all devices."""
_Named = Literal["normal", "bernstein", "anytime"]

Method = Literal["padded", "exact", _Named]
"""How bounds are computed.

- `padded`: covers for every query with few reports or many; `bounded` picks the form.
- `exact`: the same form if it is proved at every n, else an e-value's or Bernstein's bounds.
- `normal`: z times the plug-in standard error.
- `bernstein`: empirical Bernstein bounds, at every n.
- `anytime`: holds at every moment of a window at once, proved.
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
    "e-value",
    _Named,
]
"""The kind of bound of a query (`bounded`)."""

UNCUT: Final = "normal"
"""The one method whose bounds are not cut to what shares can be."""

ANYTIME: Final = "anytime"
"""The method whose bounds hold at all moments together."""

Estimand = Literal["respondents", "population", "active"]
"""Whose share is estimated: `respondents`, those who reported; `population`, from which they were
drawn; `active`, those who could have reported, of whom `sampling` says how many did."""

_METHODS: Final = get_args(Method)
_ESTIMANDS: Final = get_args(Estimand)

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
        if self.method not in _METHODS:
            raise ValueError(f"method: expected one of {_METHODS}, got {self.method!r}")
        if self.estimand not in _ESTIMANDS:
            raise ValueError(f"estimand: expected one of {_ESTIMANDS}, got {self.estimand!r}")
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


def sampling_of(
    first: int,
    panes: int,
    *,
    windows: int | None,
    reports: int = 1,
    rolling: bool = False,
    held: int = 1,
    shared: float = 1.0,
    part: float = 1.0,
) -> Sampling:
    """Return the sampling of the panes `first..first + panes - 1` of event time, at least one.

    Devices report at most once in a pane, and take part in `reports` of every `windows` panes, with
    periods that begin at multiples of `windows`. If `windows` is None they may take part in all
    panes, with reports that follow from one draw for `held` panes, and `shared` of whose noise is
    common to them: m of them err like `m / (1 + (m - 1) shared)` independent ones. Only a
    fraction `part` of the reports counts, such as those about one attribute; each report counts
    independently, so that m panes of one value have the factor `1 + (m - 1) part`.
    """
    if windows is None:
        together = min(panes, held)
        noise = 1.0 + (together - 1) * shared
        return Sampling(population=together + (panes - together) * part, noise=noise)
    again = (reports - 1) / (windows - 1) if windows > 1 else 0.0
    if rolling:
        whole, rest = divmod(panes, windows)
        meeting = rest * whole * (whole + 1) + (windows - rest) * whole * (whole - 1)
        distinct = panes * (panes - 1) - meeting
        population = 1.0 + (meeting + distinct * again) / panes
        repeats = -(-panes // windows)
    else:
        edges = [first, *range(first - first % windows + windows, first + panes, windows)]
        sizes = [end - start for start, end in pairwise([*edges, first + panes])]
        inside, outside = again, reports / windows
        pairs = sum(size * ((size - 1) * inside + (panes - size) * outside) for size in sizes)
        population = 1.0 + pairs / panes
        repeats = 1
    population = 1.0 + (population - 1.0) * part
    unreported = 1.0 - part * reports / windows
    separation = windows / (windows - 1) if panes > 1 and windows > 1 else 1.0
    return Sampling(
        population=population, active=min(unreported * separation * repeats, population)
    )


def sampling_among(sampling: Sampling, some: int, n: int) -> Sampling:
    """Return how `some` of n reports sample the share among all n respondents.

    The result is for the estimand `active`: all who reported are the active ones, of whom `some`
    are drawn without replacement, independently of their values.
    """
    return Sampling(sampling.population, (n - some) / (n - 1) if n > 1 else 0.0)
