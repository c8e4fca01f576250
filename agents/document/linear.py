"""Linear queries in a document."""

import numpy as np

from ldpstream.agents.document.basis import Basis
from ldpstream.agents.document.entries import LinearEstimate
from ldpstream.agents.document.numbers import numbers, whole_queries
from ldpstream.estimators.estimate import estimate_linear
from ldpstream.mechanisms.base.arrays import Floats


def linear_estimates(basis: Basis, projected: Floats | None) -> list[LinearEstimate]:
    """Return the means that were asked for, from the projected shares `(k,)` if there are any.

    What devices report in addition to the value does not change its weight. A query that gives
    `hidden` values different weights has no numbers.
    """
    queries, n = basis.options.linear, basis.n
    weights = np.stack([asked.weights for asked in queries])
    means = None if projected is None else weights @ projected
    given = weights if basis.given is None else weights[:, basis.given]
    estimate = estimate_linear(basis.mechanism, basis.statistic, n, given, **basis.keywords)
    shown = None if basis.hidden is None else whole_queries(basis.hidden, weights)
    rows = numbers(estimate, n, means, shown)
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
        for asked, row in zip(queries, rows, strict=True)
    ]
