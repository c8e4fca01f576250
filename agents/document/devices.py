"""The fields of a document about devices: how many were active, and what publishing costs them."""

import math
from typing import Any

from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.config.spread import SpreadConfig
from ldpstream.agents.document.model import ActiveEstimate, CentralLoss
from ldpstream.agents.state.context import WindowTotals


def of_devices(
    collection: CollectionConfig, totals: WindowTotals, *, published: bool
) -> dict[str, Any]:
    """Return the fields about devices; `published`: of a closed window."""
    fields: dict[str, Any] = {}
    if collection.spread is not None:
        panes = (totals.end_ms - totals.start_ms) // collection.window.pane_ms
        fields["active"] = active_devices(collection.spread, totals.n, panes=panes)
    if published and (loss := collection.central) is not None:
        fields["central"] = CentralLoss(
            epsilon=loss.epsilon, delta=loss.delta, reports=loss.reports
        )
    return fields


def active_devices(spread: SpreadConfig, n: int, *, panes: int) -> ActiveEstimate:
    """Estimate the active devices from n reports: each represents `windows / reports` of its pane.

    Each active device takes part in a pane with probability `reports / windows`, so the number of
    reports is binomial, whatever the values are. Draws for panes of one period are at worst
    independent; a rolling draw is the same in all periods that the span touches.
    """
    apart = spread.windows / spread.reports
    repeats = -(-panes // spread.windows) if spread.rolling else 1
    variance = n * apart * (apart - 1.0) * max(1, repeats)
    return ActiveEstimate(count=n * apart, se=math.sqrt(variance))
