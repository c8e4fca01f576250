"""Sums of weights in a document, for devices that report a weight with their value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.estimates import Entry, bound_keywords, finite
from ldpstream.agents.state.context import WindowTotals
from ldpstream.estimators.bounds.options import OptionKeywords
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.weights import estimate_public_weights, estimate_weights
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.families.weights.private import WeightedDomain
from ldpstream.mechanisms.families.weights.public import PublicWeights
from ldpstream.mechanisms.interface.mechanism import Mechanism

_NUMBERS: Final = ("total", "se", "low", "high")


@dataclass(frozen=True)
class Weights:
    """Estimates the sums of weights for the entries of a document."""

    mechanism: Mechanism
    domain: WeightedDomain
    totals: WindowTotals
    options: EstimateOptions

    def add_to_values(self, listed: Integers, values: list[Entry]) -> list[Entry]:
        """Return the values, whose indices are `listed`, `(q,)`, with their weights.

        The bounds of a post-selected list hold all at once over the whole domain.
        """
        if not values:
            return values
        keywords, size = bound_keywords(self.options), self.domain.estimated.size
        if len(listed) < size:
            keywords |= {"simultaneous": True, "family": size}
        if isinstance(self.mechanism, PublicWeights):
            # Single values cost less than queries.
            estimate = estimate_public_weights(
                self.mechanism, self.totals.statistic, self.totals.n, values=listed, **keywords
            )
            return _weigh(values, estimate)
        sets = [np.array([value]) for value in listed.tolist()]
        return _weigh(values, self._sums(sets, keywords))

    def add_to_ranges(self, ranges: list[Entry]) -> list[Entry]:
        """Return the ranges with their weights."""
        shape = self.domain.estimated.shape
        sets = [query.values(shape) for query in self.options.ranges]
        return _weigh(ranges, self._sums(sets, bound_keywords(self.options)))

    def _sums(self, sets: Sequence[Integers], keywords: OptionKeywords) -> Estimate:
        arguments = self.totals.statistic, self.totals.n, sets
        if isinstance(self.mechanism, PublicWeights):
            return estimate_public_weights(self.mechanism, *arguments, **keywords)
        return estimate_weights(self.mechanism, *arguments, largest=self.domain.largest, **keywords)


def _weigh(entries: list[Entry], estimate: Estimate) -> list[Entry]:
    """Return the entries with sums of weights, from estimated means per respondent."""
    columns = (x * estimate.n for x in (estimate.value, estimate.se, estimate.low, estimate.high))
    rows = zip(*(map(finite, column.tolist()) for column in columns), strict=True)
    return [
        {**entry, "weight": {**dict(zip(_NUMBERS, row, strict=True)), "bound": form or None}}
        for entry, row, form in zip(entries, rows, estimate.form.tolist(), strict=True)
    ]
