"""Linear queries in a document."""

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.document.merged import Bools, whole_queries
from ldpstream.agents.document.model import LinearEstimate
from ldpstream.agents.document.numbers import numbers
from ldpstream.agents.query.options import EstimateOptions
from ldpstream.agents.state.context import WindowTotals
from ldpstream.estimators.estimate import estimate_linear
from ldpstream.mechanisms.wire.spec import CollectionSpec

Floats = NDArray[np.float64]


def linear_estimates(
    spec: CollectionSpec,
    totals: WindowTotals,
    options: EstimateOptions,
    projected: Floats | None,
    hidden: Bools | None,
) -> list[LinearEstimate]:
    """Return the means that were asked for; of projected shares `(k,)` where there are any.

    What else devices give beside their value does not change its weight. A query that gives
    `hidden` values different weights has no numbers.
    """
    weights = np.stack([asked.weights for asked in options.linear])
    means = None if projected is None else weights @ projected
    estimated = spec.domain.estimated_indices()
    given = weights if estimated is None else weights[:, estimated]
    keywords = options.keywords()
    estimate = estimate_linear(spec.mechanism, totals.statistic, totals.n, given, **keywords)
    told = None if hidden is None else whole_queries(hidden, weights)
    rows = numbers(estimate, totals.n, means, told)
    return [
        LinearEstimate(
            name=asked.name,
            mean=row["share"],
            total=row["count"],
            se=row["se"],
            low=row["low"],
            high=row["high"],
            influence=row["influence"],
            forged=row["forged"],
            bound=row["bound"],
        )
        for asked, row in zip(options.linear, rows, strict=True)
    ]
