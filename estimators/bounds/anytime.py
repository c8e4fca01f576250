"""Anytime-valid bounds on estimates (docs/theory.md, anytime-valid bounds).

There are two forms. `anytime` is asymptotic and works for every mechanism: the normal mixture with
the most noise that the reports can have. `anytime-exact` holds at every n for any data.
"""

import numpy as np

from ldpstream.estimators.bounds.confidence_sequences import (
    mean_ceiling,
    mixture_half_width,
    self_normalised,
)
from ldpstream.estimators.bounds.options import Options
from ldpstream.estimators.queries.sums import Sums
from ldpstream.mechanisms.base.arrays import Floats

VARIANCE_PART = 0.1
"""The part of the error level that is spent on the variance if that is estimated."""
_CENTRES = (0.0, 0.5, 1.0)


def anytime_distances(sums: Sums, n: int, level: float, options: Options) -> tuple[Floats, Floats]:
    """Return how far the truth may lie below and above each estimate, `(q,)` each; n >= 1.

    A plug-in variance fails for rare values: without a report it is 0. The noise is therefore
    replaced by a bound that also holds at all moments: what the disclosed groups can produce, or
    less if the second moments of the decoded reports exclude it (`mean_ceiling`).
    """
    if options.method == "anytime-exact":
        return _exact(sums, n, level, options)
    if options.estimand == "respondents":
        variance, left = _noise(sums, n, level)
    else:
        variance, left = sampling_ceiling(sums, n, level)
    half = mixture_half_width(variance, _sharpest(sums, options), n, left)
    return half, half


def _sharpest(sums: Sums, options: Options) -> Floats:
    """Return the variance that `options.sharpest` reports of uniform data would have."""
    typical = sums.typical_noise
    if options.estimand == "population":
        typical = typical + sums.typical_sampling
    # The normal approximation needs at least the noise of one report.
    return np.maximum(options.sharpest * typical, sums.spread**2)


def _noise(sums: Sums, n: int, level: float) -> tuple[Floats, float]:
    """Return a bound on the respondents' noise `sum_i v(x_i)`, and the remaining level.

    `E (h - a)^2 = v + (w - a)^2`, which is exactly `v + 1/4` for indicators and `a = 1/2`.
    """
    if sums.reach is not None:
        return sums.ceiling, level
    moments = _second_moments(sums, n, level)
    if sums.indicators:
        moments[1] -= n / 4.0
    found = np.maximum(moments.min(axis=0), 0.0)
    return np.minimum(sums.ceiling, found), level * (1.0 - VARIANCE_PART)


def sampling_ceiling(sums: Sums, n: int, level: float) -> tuple[Floats, float]:
    """Return a bound on n times the variance of h under the population, and the remaining level.

    It holds at all moments together, n >= 1. A group's share among the respondents differs from its
    share of the population, so that the bound is on the mean of `(h - a)^2`, in which groups have
    their true frequencies.
    """
    most = n * sums.spread**2 / 4.0
    if sums.reach is None:
        found = _second_moments(sums, n, level).min(axis=0)
    elif sums.disclosed:
        found = mean_ceiling(sums.moment, sums.peak, level * VARIANCE_PART)
    else:
        noise = sums.ceiling if sums.heaviest is None else n * sums.heaviest
        return np.minimum(noise + n * sums.reach**2 / 4.0, most), level
    return np.minimum(found, most), level * (1.0 - VARIANCE_PART)


def _second_moments(sums: Sums, n: int, level: float) -> Floats:
    """Return bounds on `sum_i E (h(y_i) - a)^2` for each a in `_CENTRES`: `(3, q)`."""
    part = level * VARIANCE_PART / len(_CENTRES)
    return np.stack(
        [
            mean_ceiling(
                np.maximum(sums.squares - 2.0 * a * sums.total + a**2 * n, 0.0),
                np.maximum((sums.least - a) ** 2, (sums.largest - a) ** 2),
                part,
            )
            for a in _CENTRES
        ]
    )


def _exact(sums: Sums, n: int, level: float, options: Options) -> tuple[Floats, Floats]:
    """Return the distances of the exact form.

    Reports of one group lie in an interval no longer than the spread, so that each has the
    sub-Gaussian variance `spread^2/4` (Hoeffding 1963). Respondents get this bound. The
    population's reports are identically distributed; if they are counted, the sum of their squares
    gives a narrower bound.
    """
    sharpest = _sharpest(sums, options)
    if options.estimand == "respondents" or sums.reach is not None:
        reports = sums.noisy if options.estimand == "respondents" else float(n)
        half = mixture_half_width(reports * sums.spread**2 / 4.0, sharpest, n, level)
        return half, half
    mean = sums.total / n
    deviations = np.maximum(sums.squares / n - mean**2, 0.0)
    lowest, highest = sums.least, sums.largest
    if sums.indicators:
        lowest, highest = np.maximum(lowest, 0.0), np.minimum(highest, 1.0)
    ends = [
        self_normalised(deviations, room, np.maximum(reach, 0.0), sharpest, n, level / 2.0)
        for room, reach in (
            (highest - sums.least, mean - lowest),
            (sums.largest - lowest, highest - mean),
        )
    ]
    return ends[0], ends[1]
