"""What changes if devices report several times, or if respondents are a known part of all active.

The sampling part of the variance changes by a factor (`options.Sampling`). There are three cases:

- Factor > 1, and a method whose bounds hold for every number n of independent reports: they also
  hold for n/factor devices (`of_devices`). The means of devices are independent, lie in the same
  interval, and vary no more than one report.
- Factor > 1, and `padded` or `normal`: bounds are stretched about the value as the error grows.
- Factor < 1: bounds that are proved stay as they are, since a sample without replacement varies
  less than one with replacement. They are not symmetric about the value, so that shrinking them
  would exclude the truth where a share is near 0. Only bounds that are multiples of the error
  shrink with it.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from ldpstream.estimators.bounds.options import Form, Options
from ldpstream.estimators.bounds.types import Forms, Pair, Sums
from ldpstream.mechanisms.base.arrays import Floats

_APPROXIMATE: Final[tuple[Form, ...]] = ("wilson", "block", "padded", "normal")
"""The forms of a population's bounds that are multiples of the standard error, roughly."""
_SMOOTH: Final[tuple[Form, ...]] = ("score", "normal")
"""The forms of respondents' bounds that are."""


def of_devices(sums: Sums, n: int, options: Options, reports: float) -> tuple[Sums, int, Options]:
    """Return sums, number and options of one report in place of this many of each device.

    Bounds that are proved for independent tosses do not apply: `exact` uses Bernstein's bounds on
    the means of devices.
    """
    devices = max(1, int(n / reports))
    method = "bernstein" if options.method == "exact" else options.method
    alone = replace(options, method=method, sampling=options.sampling.of_one())
    return sums.thinned(n / devices), devices, alone


def resampled_error(se: Floats, noise: Floats, factor: float) -> Floats:
    """Return the errors `(q,)` whose sampling part changes by a factor.

    `noise` is the other part of the variance, `(q,)`.
    """
    plain = se**2
    sampled = np.maximum(plain - noise, 0.0)
    return np.sqrt(np.maximum(plain + (factor - 1.0) * sampled, 0.0))


def grown(sums: Sums, n: int, ends: Pair, errors: Pair, factor: float) -> Pair:
    """Return bounds for a factor > 1, whose distances grow from the first errors to the second.

    The sampling part for indicators is that of the share within the bounds that is closest to 1/2,
    since a rare value may have hardly any report.
    """
    plain, changed = errors[0] ** 2, errors[1] ** 2
    if sums.indicators:
        near = np.clip(np.clip(0.5, *ends), 0.0, 1.0)
        changed = np.maximum(changed, plain + (factor - 1.0) * near * (1.0 - near) / n)
    # Few reports may show no variance; their bounds then grow as if all of it were sampling.
    unknown = np.full_like(plain, factor)
    ratio = np.sqrt(np.divide(changed, plain, out=unknown, where=plain > 0.0))
    below, above = _distances(sums.total / n, ends)
    return sums.total / n - below * ratio, sums.total / n + above * ratio


def shrunk(
    value: Floats,
    ends: Pair,
    form: Forms,
    errors: Pair,
    of_devices: tuple[Floats, Floats, Forms],
    factor: float,
    step: float,
) -> Pair:
    """Return bounds for a factor < 1, whose distances shrink from the first errors to the second.

    `of_devices` are the bounds of the respondents themselves, by the same method. Where their noise
    is a few reports, its plug-in says little, and one report that is noise alone must stay
    possible. The squared distance is then that of the respondents plus this part of what
    sampling adds to it, widened by half a `step` in which the truth is counted: with few devices
    that do not report, often none of them has a value, and nothing of its noise shows either.
    """
    rough = np.isin(form, _APPROXIMATE)
    few = ~np.isin(of_devices[2], _SMOOTH)
    nothing = np.ones_like(errors[0])
    ratio = np.divide(errors[1], errors[0], out=nothing, where=errors[0] > 0.0)
    moved = []
    for whole, noise in zip(
        _distances(value, ends), _distances(value, of_devices[:2]), strict=True
    ):
        mixed = np.sqrt((1.0 - factor) * np.minimum(noise, whole) ** 2 + factor * whole**2)
        moved.append(np.where(few, mixed + step / 2.0, whole * ratio))
    return (
        np.where(rough, value - moved[0], ends[0]),
        np.where(rough, value + moved[1], ends[1]),
    )


def _distances(value: Floats, ends: Pair) -> Pair:
    """Return how far ends lie outside the value, 0 if they exclude it."""
    return np.maximum(value - ends[0], 0.0), np.maximum(ends[1] - value, 0.0)
