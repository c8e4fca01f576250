"""How the reports of a span are drawn: how often a device gives one, and which part of all does.

The error of a population's share has two parts: the reports' noise, which is drawn for each report,
and the sampling of who reports, `s2/n` for n reports of n devices, `s2` being the variance of the
query's weight among them. The second part changes:

- Where a device gives m reports of one value, n reports are a sample of n/m devices: `m s2/n`. That
  is the worst whatever the values do: no m numbers have a sum of more variance than m equal ones.
- Where the reports of a device follow from one permanent draw, of `held` windows in a row
  (`ldpstream.mechanisms.wire.hold`), they share their noise too. m of them say as much as one: the
  share of a span is missed by the mean of its windows' errors, whose half-width is at most the mean
  of theirs, however they depend on each other, and that at most that of n/m reports.
- Where the devices that take part in a window are drawn from those that are active then
  (`ldpstream.mechanisms.ledger.spread`), n of M, the share among the M active is missed by
  `(1 - n/M) s2/n`: sampling without replacement. Over several windows a device takes part in
  distinct ones, so that no window's error adds to another's.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np


@dataclass(frozen=True)
class Sampling:
    """What multiplies the sampling part of a variance, for the population and for the active.

    `noise` is how many reports share their noise, at most: this many say as much as one.
    """

    population: float = 1.0
    active: float = 1.0
    noise: float = 1.0

    def of_one(self) -> "Sampling":
        """Return the sampling of one report in place of those that share their noise."""
        return Sampling(self.population / self.noise, self.active / self.noise)

    def factor(self, estimand: str) -> float:
        """Return the factor of an estimand: respondents are not sampled."""
        if estimand == "respondents":
            return 0.0
        return self.active if estimand == "active" else self.population


ONE_REPORT_EACH: Final = Sampling()
"""Reports of different devices, of which nobody knows what part of all they are."""


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

    Devices report once a pane at most, and take part in `reports` of every `windows` panes, periods
    beginning at multiples of `windows`; None: in any, so that one device may be in all, with
    reports that follow from one draw for `held` panes. Only a `part` of the reports counts, those
    about an attribute: each draw has this probability by itself.
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
    """Return how `some` of n reports are drawn where the share among all n reporters is asked for.

    That is the one `active` of what is returned: all who reported are the active ones, of whom
    `some` are drawn without replacement, whatever their values are.
    """
    return Sampling(sampling.population, (n - some) / (n - 1) if n > 1 else 0.0)
