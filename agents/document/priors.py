"""What a document says about priors: of mechanisms with priors (`lip`), and of known ones."""

from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.estimates import Basis, Entry, finite
from ldpstream.agents.state.context import WindowTotals
from ldpstream.estimators.bounds.options import CredibleMethod, Method
from ldpstream.estimators.lip.calibration import SIGNIFICANCE, CalibrationTest, calibrate
from ldpstream.estimators.lip.known_prior import Bayes
from ldpstream.estimators.lip.mmse import estimate_mmse
from ldpstream.estimators.queries import indicator
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.wire.spec import CollectionSpec

_CREDIBLE: Final[dict[Method, CredibleMethod]] = {
    "padded": "normal",
    "normal": "normal",
    "anytime": "anytime",
}
"""How to bound the posterior, whose variance is known; for any other method use Bernstein's
inequality, which holds at every number of reports."""
LISTED: Final = 20
"""The most levels that a document lists."""


def prior_parts(
    spec: CollectionSpec, mechanism: Lip, totals: WindowTotals, options: EstimateOptions
) -> Entry:
    """Return the fields `mmse` and `calibration` of a document."""
    test = calibrate(mechanism, totals.statistic, totals.n)
    withheld = _contradiction(test) if test.smallest < SIGNIFICANCE else None
    return {
        "mmse": _mmse(spec, mechanism, totals, options, withheld),
        "calibration": _calibration(mechanism, test),
    }


def known_prior_part(basis: Basis, shares: tuple[Fraction, ...], listed: Integers) -> Entry:
    """Return the field `known_prior` of a document, for values `(q,)` that it lists, by index."""
    bayes = _bayes(basis.mechanism, shares)
    domain, options = basis.domain, basis.options
    names: dict[str, list[object]] = {
        "values": list(domain.labels(listed)),
        "ranges": [query.name for query in options.ranges],
        "linear": [query.name for query in options.linear],
    }
    rows: dict[str, list[Floats]] = {
        "values": list(np.eye(domain.size)[listed]),
        "ranges": [indicator(domain.size, query.values(domain.shape)) for query in options.ranges],
        "linear": [query.weights for query in options.linear],
    }
    p_value = bayes.p_value(basis.statistic)
    wrong = p_value < SIGNIFICANCE
    part: Entry = {"p_value": p_value, "significance": SIGNIFICANCE, "wrong": wrong}
    for kind, weights in rows.items():
        if not weights:
            continue
        means, deviations = bayes.estimate(np.stack(weights), basis.statistic)
        part[kind] = [
            {
                "name": name,
                "mean": None if wrong else finite(mean),
                "sd": None if wrong else finite(deviation),
            }
            for name, mean, deviation in zip(
                names[kind], means.tolist(), deviations.tolist(), strict=True
            )
        ]
    return part


@lru_cache(maxsize=16)
def _bayes(mechanism: Mechanism, shares: tuple[Fraction, ...]) -> Bayes:
    return Bayes.of(mechanism, np.array([float(share) for share in shares]))


def _contradiction(test: CalibrationTest) -> str:
    return (
        f"the reports contradict the priors, which are {test.suspicion} (p = {test.smallest:.2g}); "
        "the shares of the distribution need no priors"
    )


def _mmse(
    spec: CollectionSpec,
    mechanism: Lip,
    totals: WindowTotals,
    options: EstimateOptions,
    withheld: str | None,
) -> Entry:
    label = spec.domain.estimated.label(1)
    method = _CREDIBLE.get(options.method, "bernstein")
    if withheld is not None:
        nothing = dict.fromkeys(("share", "count", "se", "low", "high"))
        return {"value": label, **nothing, "method": method, "withheld": withheld}
    estimate = estimate_mmse(
        mechanism,
        totals.statistic,
        totals.n,
        confidence=options.confidence,
        method=method,
        sharpest=options.sharpest,
    )
    return {
        "value": label,
        "share": finite(estimate.value),
        "count": finite(estimate.value * totals.n),
        "se": finite(estimate.se),
        "low": finite(estimate.low),
        "high": finite(estimate.high),
        "method": method,
    }


def _calibration(mechanism: Lip, test: CalibrationTest) -> Entry:
    flagged, wrong = test.flagged, test.smallest < SIGNIFICANCE
    worst = []
    for place in flagged[:LISTED].tolist():
        of_prior, of_budget = divmod(int(test.level[place]), len(mechanism.epsilons))
        worst.append(
            {
                "prior": list(mechanism.prior.edges[of_prior : of_prior + 2]),
                "epsilon": mechanism.epsilons[of_budget],
                "n": int(test.reports[place]),
                "observed": float(test.ones[place] / test.reports[place]),
                "expected": [float(test.least[place]), float(test.largest[place])],
                "p_value": float(test.p_value[place]),
            }
        )
    return {
        "p_value": test.smallest,
        "significance": SIGNIFICANCE,
        "wrong": wrong,
        "suspicion": test.suspicion if wrong else None,
        "together": test.together,
        "levels": len(test.level),
        "flagged": len(flagged),
        "worst": worst,
    }
