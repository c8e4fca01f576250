"""Sums of weights in a document, for devices that report a weight with their value."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.entries import RangeEstimate, ValueEstimate, WeightEstimate
from ldpstream.agents.document.estimates import bound_keywords
from ldpstream.agents.state.context import WindowTotals
from ldpstream.estimators.bounds.options import OptionKeywords
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.weights import estimate_public_weights, estimate_weights
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.families.weights.private import WeightedDomain
from ldpstream.mechanisms.families.weights.public import PublicWeights
from ldpstream.mechanisms.interface.mechanism import Mechanism

Entry = TypeVar("Entry", ValueEstimate, RangeEstimate)


@dataclass(frozen=True)
class Weights:
    """Estimates the sums of weights for the entries of a document."""

    mechanism: Mechanism
    domain: WeightedDomain
    totals: WindowTotals
    options: EstimateOptions

    def add_to_values(self, listed: Integers, values: list[ValueEstimate]) -> list[ValueEstimate]:
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
            found = estimate_public_weights(
                self.mechanism, self.totals.statistic, self.totals.n, values=listed, **keywords
            )
            return _weigh(values, found)
        sets = [np.array([value]) for value in listed.tolist()]
        return _weigh(values, self._sums(sets, keywords))

    def add_to_ranges(self, ranges: list[RangeEstimate]) -> list[RangeEstimate]:
        """Return the ranges with their weights."""
        shape = self.domain.estimated.shape
        sets = [asked.values(shape) for asked in self.options.ranges]
        return _weigh(ranges, self._sums(sets, bound_keywords(self.options)))

    def _sums(self, sets: Sequence[Integers], keywords: OptionKeywords) -> Estimate:
        given = self.totals.statistic, self.totals.n, sets
        if isinstance(self.mechanism, PublicWeights):
            return estimate_public_weights(self.mechanism, *given, **keywords)
        return estimate_weights(self.mechanism, *given, largest=self.domain.largest, **keywords)


def _weigh(entries: list[Entry], found: Estimate) -> list[Entry]:
    """Return the entries with sums of weights, from estimated means per respondent."""
    columns = (x * found.n for x in (found.value, found.se, found.low, found.high))
    weighed = []
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for entry, row, form in zip(entries, rows, found.form.tolist(), strict=True):
        total, se, low, high = (x if math.isfinite(x) else None for x in row)
        weight = WeightEstimate(total=total, se=se, low=low, high=high, bound=form or None)
        weighed.append(entry.model_copy(update={"weight": weight}))
    return weighed
