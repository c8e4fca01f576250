"""The rule that decides which queries get bounds by likelihood under `profile`.

It does not depend on the content of reports. Shares get them if `z^2 max_x v(x) > n/4`, where v is
the noise of one user: bounds of the unbiased estimate are then about as wide as the range of a
share, and otherwise they are narrower than the likelihood's. Quantiles always get them for the
population, and for respondents if their noise exceeds the sampling error that a likelihood
includes.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.estimators.bounds.options import BY_LIKELIHOOD, Options
from ldpstream.estimators.bounds.two_valued import quantile
from ldpstream.estimators.bounds.types import Sums
from ldpstream.mechanisms.base.arrays import Bools

THRESHOLDS: Final = ((0.9, 17.0), (0.95, 20.0), (0.99, 25.0))
"""For each confidence, how far twice the log-likelihood of a set's share may be below the largest.

Calibrated on point masses, pairs, spikes and smooth data of up to 1,024 values. If the truth is a
corner of the simplex, the limit distribution is a sum over hundreds of positive parts, far above
chi-square.
"""
MOST: Final = 100
"""Most shares of a list; the bounds of each take some ten solutions."""
_NOISY: Final = 1.0
"""Four times the variance of a share of a half."""
_MANY_VALUED: Final = ("padded", "noise", "bernstein")


def threshold(confidence: float) -> float | None:
    """Return the threshold for the bounds of a share, or None if none was calibrated."""
    return next((most for known, most in THRESHOLDS if confidence <= known), None)


def uses_likelihood(options: Options) -> bool:
    """Return whether the method uses likelihood under these options.

    `profile` is calibrated for one number at a time, with reports of different devices. If these
    are drawn from a finite number, or are the respondents themselves, it covers more. It does not
    hold if reports share their noise.
    """
    sampling = options.sampling
    if sampling.noise > 1.0 or sampling.factor(options.estimand) > 1.0:
        return False
    calibrated = not options.simultaneous and threshold(options.confidence) is not None
    return options.method == BY_LIKELIHOOD and calibrated


def quantiles_use_likelihood(noise: float, options: Options) -> bool:
    """Return whether quantiles get bounds by likelihood.

    `noise` is the most that one user adds to any prefix.
    """
    if not uses_likelihood(options):
        return False
    return options.sampling.factor(options.estimand) == 1.0 or noise >= _NOISY


def choose_likelihood(
    sums: Sums, n: int, form: NDArray[np.object_], options: Options, *, many: int
) -> Bools:
    """Return which of the sums over n reports get bounds by likelihood, bool `(q,)`.

    `form` is the form of each query's bounds otherwise, and `many` the length of the whole list.
    """
    if not uses_likelihood(options) or many > MOST:
        return np.zeros(form.shape, dtype=np.bool_)
    z = quantile(1.0 - options.confidence)
    wide = z**2 * sums.noise.ceiling > n**2 / 4.0
    return wide & np.isin(form, _MANY_VALUED)
