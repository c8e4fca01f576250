"""How reports are sampled: how often a device reports, and which part of the devices does.

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

from dataclasses import dataclass
from typing import Final

import numpy as np


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


def sampling_of(
    first: int,
    panes: int,
    *,
    windows: int | None,
    reports: int = 1,
    rolling: bool = False,
    held: int = 1,
    part: float = 1.0,
) -> Sampling:
    """Return the sampling of the panes `first..first + panes - 1` of event time, at least one.

    Devices report at most once in a pane, and take part in `reports` of every `windows` panes, with
    periods that begin at multiples of `windows`. If `windows` is None they may take part in all
    panes, with reports that follow from one draw for `held` panes. Only a fraction `part` of the
    reports counts, such as those about one attribute; each report counts independently, so that m
    panes of one value have the factor `1 + (m - 1) part`.
    """
    if windows is None:
        together = min(panes, held)
        return Sampling(population=together + (panes - together) * part, noise=float(together))
    again = (reports - 1) / (windows - 1) if windows > 1 else 0.0
    if rolling:
        whole, rest = divmod(panes, windows)
        meeting = rest * whole * (whole + 1) + (windows - rest) * whole * (whole - 1)
        others = panes * (panes - 1) - meeting
        population = 1.0 + (meeting + others * again) / panes
        repeats = -(-panes // windows)
    else:
        edges = [first, *range(first - first % windows + windows, first + panes, windows)]
        sizes = np.diff([*edges, first + panes])
        inside, outside = again, reports / windows
        population = float(
            1.0 + (sizes * ((sizes - 1) * inside + (panes - sizes) * outside)).sum() / panes
        )
        repeats = 1
    population = 1.0 + (population - 1.0) * part
    left = 1.0 - part * reports / windows
    apart = windows / (windows - 1) if panes > 1 and windows > 1 else 1.0
    return Sampling(population=population, active=min(left * apart * repeats, population))


def sampling_among(sampling: Sampling, some: int, n: int) -> Sampling:
    """Return how `some` of n reports sample the share among all n respondents.

    The result is for the estimand `active`: all who reported are the active ones, of whom `some`
    are drawn without replacement, independently of their values.
    """
    return Sampling(sampling.population, (n - some) / (n - 1) if n > 1 else 0.0)
