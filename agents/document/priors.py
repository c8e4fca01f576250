"""What a document says about priors, for mechanisms with priors (`lip`)."""

import math
from typing import Final

from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.entries import Calibration, LevelCalibration, MmseEstimate, Part
from ldpstream.agents.state.context import WindowTotals
from ldpstream.estimators.bounds.options import CredibleMethod, Method
from ldpstream.estimators.lip.calibration import SIGNIFICANCE, calibrate
from ldpstream.estimators.lip.mmse import estimate_mmse
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.wire.spec import CollectionSpec

_CREDIBLE: Final[dict[Method, CredibleMethod]] = {
    "padded": "normal",
    "profile": "normal",
    "normal": "normal",
    "anytime": "anytime",
    "anytime-exact": "anytime",
}
"""How to bound the posterior, whose variance is known; for any other method use Bernstein's
inequality, which holds at every number of reports."""
LISTED: Final = 20
"""The most levels that a document lists."""


def prior_parts(
    spec: CollectionSpec, mechanism: Lip, totals: WindowTotals, options: EstimateOptions
) -> dict[str, Part]:
    """Return the fields `mmse` and `calibration` of a document."""
    test = _calibration(mechanism, totals)
    withheld = _contradiction(test) if test.wrong else None
    return {"mmse": _mmse(spec, mechanism, totals, options, withheld), "calibration": test}


def _contradiction(test: Calibration) -> str:
    return (
        f"the reports contradict the priors, which are {test.suspicion} (p = {test.p_value:.2g}); "
        "the shares of the distribution need no priors"
    )


def _mmse(
    spec: CollectionSpec,
    mechanism: Lip,
    totals: WindowTotals,
    options: EstimateOptions,
    withheld: str | None,
) -> MmseEstimate:
    label = spec.domain.estimated.label(1)
    method = _CREDIBLE.get(options.method, "bernstein")
    if withheld is not None:
        nothing = dict.fromkeys(("share", "count", "se", "low", "high"))
        return MmseEstimate(value=label, method=method, withheld=withheld, **nothing)
    found = estimate_mmse(
        mechanism,
        totals.statistic,
        totals.n,
        confidence=options.confidence,
        method=method,
        sharpest=options.sharpest,
    )
    share, count, se, low, high = (
        number if math.isfinite(number) else None
        for number in (found.value, found.value * totals.n, found.se, found.low, found.high)
    )
    return MmseEstimate(
        value=label,
        share=share,
        count=count,
        se=se,
        low=low,
        high=high,
        method=found.method,
    )


def _calibration(mechanism: Lip, totals: WindowTotals) -> Calibration:
    test = calibrate(mechanism, totals.statistic, totals.n)
    flagged = test.flagged
    worst = []
    for place in flagged[:LISTED].tolist():
        of_prior, of_budget = divmod(int(test.level[place]), len(mechanism.epsilons))
        worst.append(
            LevelCalibration(
                prior=list(mechanism.prior.edges[of_prior : of_prior + 2]),
                epsilon=mechanism.epsilons[of_budget],
                n=int(test.reports[place]),
                observed=float(test.ones[place] / test.reports[place]),
                expected=[float(test.least[place]), float(test.largest[place])],
                p_value=float(test.p_value[place]),
            )
        )
    return Calibration(
        p_value=test.smallest,
        significance=SIGNIFICANCE,
        wrong=test.smallest < SIGNIFICANCE,
        suspicion=test.suspicion if test.smallest < SIGNIFICANCE else None,
        together=test.together,
        levels=len(test.level),
        flagged=len(flagged),
        worst=worst,
    )
