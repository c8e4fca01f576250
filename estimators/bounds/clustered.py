"""Bounds if devices report several times, or if a known part of the active devices reports."""

from dataclasses import replace
from typing import Final

import numpy as np

from ldpstream.estimators.bounds.variance import variance
from ldpstream.estimators.queries.sums import Sums
from ldpstream.mechanisms.base.arrays import Floats

_EXTENSIVE: Final = (
    *("total", "squares", "offset", "floor", "ceiling", "noisy", "moment"),
    *("fewest", "most", "tossed"),
)


def with_sampling(sums: Sums, n: int, plain: Floats, factor: float) -> Floats:
    """Return the population's variance `(q,)` with its sampling part times a factor; n >= 1."""
    if factor == 1.0:
        return plain
    sampled = np.maximum(plain - variance(sums, n, "respondents"), 0.0)
    return np.maximum(plain + (factor - 1.0) * sampled, 0.0)


def stretched(
    sums: Sums, n: int, plain: Floats, distances: tuple[Floats, Floats], factor: float
) -> tuple[Floats, Floats]:
    """Return distances of population bounds, scaled to the variance of `with_sampling`.

    With more than one report for each device, the sampling part for indicators is that of the share
    within the bounds that is closest to 1/2, since a rare value may have hardly any report.
    """
    changed = with_sampling(sums, n, plain, factor)
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


def thinned(sums: Sums, factor: float) -> Sums:
    """Return the sums of a factor fewer reports with the same means.

    Bounds that hold for every number n of independent reports also hold for n/m devices with m
    reports each: their means are independent, lie in the same interval, and vary no more than one
    report.
    """
    fields = {name: getattr(sums, name) / factor for name in _EXTENSIVE}
    return replace(sums, **fields)
