"""How many devices could have reported, where they take part in a known part of the panes."""

import math

from ldpstream.agents.config.spread import SpreadConfig
from ldpstream.agents.document.model import ActiveEstimate


def active_devices(spread: SpreadConfig, n: int) -> ActiveEstimate:
    """Return the estimate from n reports: each stands for `windows / reports` devices of its pane.

    Each active device takes part in a pane with probability `reports / windows`: the number of
    reports is binomial, whatever the values are.
    """
    apart = spread.windows / spread.reports
    return ActiveEstimate(count=n * apart, se=math.sqrt(n * apart * (apart - 1.0)))
