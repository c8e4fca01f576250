"""What a document says of devices: how many were active, and what publishing it costs them."""

import math
from typing import Any

from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.config.spread import SpreadConfig
from ldpstream.agents.document.model import ActiveEstimate, CentralLoss


def of_devices(collection: CollectionConfig, n: int, *, published: bool) -> dict[str, Any]:
    """Return these fields of a document of n reports; `published`: of a closed window."""
    fields: dict[str, Any] = {}
    if collection.spread is not None:
        fields["active"] = active_devices(collection.spread, n)
    if published and (loss := collection.central) is not None:
        fields["central"] = CentralLoss(
            epsilon=loss.epsilon, delta=loss.delta, reports=loss.reports
        )
    return fields


def active_devices(spread: SpreadConfig, n: int) -> ActiveEstimate:
    """Return the estimate from n reports: each stands for `windows / reports` devices of its pane.

    Each active device takes part in a pane with probability `reports / windows`: the number of
    reports is binomial, whatever the values are.
    """
    apart = spread.windows / spread.reports
    return ActiveEstimate(count=n * apart, se=math.sqrt(n * apart * (apart - 1.0)))
