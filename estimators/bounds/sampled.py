"""What changes if devices report several times, or if respondents are a known part of all active.

The sampling part of the variance changes by a factor (`options.Sampling`). Bounds that hold for
every number n of independent reports also hold for n/m devices with m reports each: their means are
independent, lie in the same interval, and vary no more than one report.
"""

from dataclasses import replace

import numpy as np

from ldpstream.estimators.bounds.methods import named_bounds
from ldpstream.estimators.bounds.options import Options
from ldpstream.estimators.bounds.types import Ends, Forms, Sums
from ldpstream.mechanisms.base.arrays import Floats


def of_devices(sums: Sums, n: int, options: Options) -> tuple[Sums, int, Options]:
    """Return sums, number and options of one report in place of those that share their noise.

    Bounds that are proved for independent tosses do not apply: `exact` uses Bernstein's bounds on
    the means of devices.
    """
    devices = max(1, int(n / options.sampling.noise))
    method = "bernstein" if options.method == "exact" else options.method
    alone = replace(options, method=method, sampling=options.sampling.of_one())
    return sums.thinned(n / devices), devices, alone


def resampled(
    sums: Sums, n: int, noise: Floats, se: Floats, ends: Ends, factor: float, options: Options
) -> tuple[Floats, Ends]:
    """Return the population's errors and bounds whose sampling error changes by a factor.

    `noise` is the other part of the variance, `(q,)`. `normal` and `padded` bounds are stretched.
    All others become those of n / factor reports, Bernstein's for `exact`, since reports of one
    device are not independent; with a factor below 1 they stay as they are.
    """
    plain = se**2
    sampled = np.maximum(plain - noise, 0.0)
    variance = np.maximum(plain + (factor - 1.0) * sampled, 0.0)
    if options.method in {"normal", "padded"}:
        value = sums.total / n
        distances = value - ends.lowest, ends.highest - value
        below, above = _stretched(sums, n, (plain, variance), distances, factor)
        lowest, highest = value - below, value + above
        low, high = lowest, highest
        if options.method == "padded":
            low, high = (np.clip(end, sums.bottom, sums.top) for end in (lowest, highest))
        ends = Ends(low, high, lowest, highest, ends.form)
    elif factor > 1.0:
        devices = max(1, int(n / factor))
        if options.method == "exact":
            options = replace(options, method="bernstein")
        level = options.error_level(se.shape[-1])
        # None of these methods looks at the standard error.
        low, high = named_bounds(sums.thinned(n / devices), devices, se, level, options)
        form: Forms = np.full(low.shape, options.method, dtype=np.object_)
        ends = Ends(low, high, low, high, form)
    return np.sqrt(variance), ends


def _stretched(
    sums: Sums,
    n: int,
    variances: tuple[Floats, Floats],
    distances: tuple[Floats, Floats],
    factor: float,
) -> tuple[Floats, Floats]:
    """Return distances of population bounds, scaled from the first variance to the second.

    With more than one report for each device, the sampling part for indicators is that of the share
    within the bounds that is closest to 1/2, since a rare value may have hardly any report.
    """
    plain, changed = variances
    if factor > 1.0 and sums.indicators:
        value = sums.total / n
        near = np.clip(0.5, value - distances[0], value + distances[1])
        near = np.clip(near, 0.0, 1.0)
        changed = np.maximum(changed, plain + (factor - 1.0) * near * (1.0 - near) / n)
    # Few reports may show no variance; their bounds then grow as if all of it were sampling.
    unknown = np.full_like(plain, max(factor, 1.0))
    ratio = np.sqrt(np.divide(changed, plain, out=unknown, where=plain > 0.0))
    below, above = (np.maximum(distance, 0.0) * ratio for distance in distances)
    return below, above
