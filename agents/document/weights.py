"""What a document says of weights, where devices give one privately beside their value."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.context import WindowTotals
from ldpstream.agents.document.model import RangeEstimate, ValueEstimate, WeightEstimate
from ldpstream.agents.options import EstimateOptions
from ldpstream.estimators.options import OptionKeywords
from ldpstream.estimators.weights import estimate_weights
from ldpstream.mechanisms.private_weights import WeightedDomain
from ldpstream.mechanisms.spec import CollectionSpec

Integers = NDArray[np.int64]
Entry = TypeVar("Entry", ValueEstimate, RangeEstimate)


def of_values_alone(
    spec: CollectionSpec, totals: WindowTotals
) -> tuple[CollectionSpec, WindowTotals]:
    """Return what estimates of the values need: weights summed out, which is exact."""
    alone = spec.mechanism.marginal(totals.statistic)
    if alone is None:
        return spec, totals
    mechanism, statistic = alone
    only = replace(spec, domain=spec.domain.estimated, mechanism=mechanism)
    return only, replace(totals, statistic=statistic)


def weigh_values(
    spec: CollectionSpec,
    totals: WindowTotals,
    options: EstimateOptions,
    listed: Integers,
    values: list[ValueEstimate],
) -> list[ValueEstimate]:
    """Return the list of values, indices `(q,)`, with weights where devices give any.

    The bounds of a list that was chosen by looking hold all together over the whole domain.
    """
    keywords, size = options.keywords(), spec.domain.estimated.size
    if len(listed) < size:
        keywords |= {"simultaneous": True, "family": size}
    sets = [np.array([value]) for value in listed.tolist()]
    return _weigh(spec, totals, keywords, sets, values)


def weigh_ranges(
    spec: CollectionSpec,
    totals: WindowTotals,
    options: EstimateOptions,
    ranges: list[RangeEstimate],
) -> list[RangeEstimate]:
    """Return the ranges with weights where devices give any."""
    sets = [asked.values(spec.domain.estimated) for asked in options.ranges]
    return _weigh(spec, totals, options.keywords(), sets, ranges)


def _weigh(
    spec: CollectionSpec,
    totals: WindowTotals,
    keywords: OptionKeywords,
    sets: Sequence[Integers],
    entries: list[Entry],
) -> list[Entry]:
    if not isinstance(spec.domain, WeightedDomain):
        return entries
    n, largest = totals.n, spec.domain.largest
    found = estimate_weights(spec.mechanism, totals.statistic, n, sets, largest=largest, **keywords)
    columns = (found.value * n, found.se * n, found.low * n, found.high * n)
    weighed = []
    for entry, *numbers in zip(entries, *(column.tolist() for column in columns), strict=True):
        total, se, low, high = (x if math.isfinite(x) else None for x in numbers)
        weight = WeightEstimate(total=total, se=se, low=low, high=high)
        weighed.append(entry.model_copy(update={"weight": weight}))
    return weighed
