"""What gets bounds by likelihood, where `profile` or `profile-exact` is asked for.

Fixed before any report is seen. Shares, and quantiles by `profile-exact`: where
`z^2 max_x v(x) > n/4`, v the noise of one user, so that bounds of the unbiased estimate are about
as wide as all that a share can be. Elsewhere these are the narrower ones. Quantiles by `profile`:
always of the population; of respondents where their noise is larger than the sampling that a
likelihood counts as well.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.estimators.bounds.options import Options
from ldpstream.estimators.bounds.two_valued import quantile
from ldpstream.estimators.queries.sums import Sums
from ldpstream.mechanisms.base.arrays import Bools

THRESHOLDS: Final = ((0.9, 17.0), (0.95, 20.0), (0.99, 25.0))
"""By confidence: how far twice the log-likelihood of a set's share may be below the largest.

Calibrated on point masses, pairs, spikes and smooth data of up to 1,024 values: the truth is a
corner of the simplex, so that the limit is a sum over hundreds of positive parts, far above
chi-square.
"""
MOST: Final = 100
"""Shares of one list, or values of a domain: each takes some ten solutions."""
_NOISY: Final = 1.0
"""Four times the variance of a share of a half."""
_MANY_VALUED: Final = ("padded", "noise", "bernstein")


def threshold(confidence: float) -> float | None:
    """Return the threshold of a share's bounds; None where none was calibrated."""
    return next((most for known, most in THRESHOLDS if confidence <= known), None)


def offered(options: Options) -> bool:
    """Return whether the method bounds by likelihood at all, under the other options.

    The thresholds of `profile` are of one number at a time. Its reports are of different devices;
    where these are drawn from a finite number, or are all that is asked about, it holds with more.
    Neither holds where reports share their noise.
    `profile-exact` is proved for a population, and for all numbers together.
    """
    factor = options.sampling.factor(options.estimand)
    if options.sampling.noise > 1.0:
        return False
    if options.method == "profile-exact":
        return factor == 1.0
    calibrated = not options.simultaneous and threshold(options.confidence) is not None
    return options.method == "profile" and calibrated and factor <= 1.0


def quantiles_pay(noise: float, n: int, options: Options) -> bool:
    """Return whether quantiles do; `noise` is the most that a user adds to any prefix."""
    if not offered(options):
        return False
    if options.method == "profile-exact":
        return bool(quantile(1.0 - options.confidence) ** 2 * noise > n / 4.0)
    return options.sampling.factor(options.estimand) == 1.0 or noise >= _NOISY


def pays(sums: Sums, n: int, form: NDArray[np.object_], options: Options, *, many: int) -> Bools:
    """Return which of the sums over n reports get bounds by likelihood, bool `(q,)`.

    `form` is how each would be bounded otherwise, `many` how long the whole list is.
    """
    if not offered(options) or many > MOST:
        return np.zeros(form.shape, dtype=np.bool_)
    z = quantile(1.0 - options.confidence)
    wide = z**2 * sums.ceiling > n**2 / 4.0
    return wide & np.isin(form, _MANY_VALUED)
