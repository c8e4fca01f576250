"""What all estimates of a document share: their input, prepared once, and an entry's numbers.

Undefined numbers are null. So are those about a part of merged blocks
(`ldpstream.agents.state.blocks`): these have one common number of reports, which the totals spread
evenly over their values. That concerns a value in merged blocks, a range or linear query that cuts
them, and all quantiles, which need every prefix.
"""

import math
from dataclasses import dataclass, replace
from typing import Final, Self, TypedDict, cast

import numpy as np

from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.document.entries import Number
from ldpstream.agents.privacy.over_time import SpreadConfig
from ldpstream.agents.query.options import EstimateOptions
from ldpstream.agents.state.context import WindowTotals
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.estimators.bounds.bounded import forged_reports
from ldpstream.estimators.bounds.options import (
    ONE_REPORT_EACH,
    Form,
    OptionKeywords,
    Sampling,
    sampling_among,
    sampling_of,
)
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.likelihood.line import Line
from ldpstream.estimators.likelihood.profile import Curve, curve
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic
from ldpstream.mechanisms.wire.spec import CollectionSpec


@dataclass(frozen=True, eq=False)
class Basis:
    """`n` reports of values without weights (summed out, which is exact), and the options.

    Estimates are about `domain`, devices report values in `own`, and `given` maps these to indices
    in `domain`, int64; None if both are the same. `hidden`, bool `(k,)`, marks the values of merged
    blocks, which have `merged_reports`; None without merged blocks. `fitted` is the curve by
    likelihood, if it is asked for.
    """

    mechanism: Mechanism
    statistic: Statistic
    n: int
    options: EstimateOptions
    keywords: OptionKeywords
    domain: Domain
    own: Domain
    given: Integers | None
    hidden: Bools | None
    merged_reports: int
    fitted: Curve | None

    @classmethod
    def of(cls, spec: CollectionSpec, totals: WindowTotals, options: EstimateOptions) -> Self:
        """Return the basis of the reports of a span, without weights."""
        mechanism, statistic, own = spec.mechanism, totals.statistic, spec.domain
        domain, alone = own.estimated, mechanism.marginal(statistic)
        if alone is not None:
            (mechanism, statistic), own = alone, domain
        hidden, merged_reports, fitted = None, 0, None
        if totals.merged is not None:
            decoder = mechanism.decoder()
            groups = decoder.groups()
            assert groups is not None, "only mechanisms that disclose blocks merge them"
            hidden = totals.merged[groups]
            merged_reports = int(decoder.group_reports(statistic)[totals.merged].sum())
        if options.project == "likelihood":
            fitted = curve(Line.of(mechanism, statistic), options.confidence)
        return cls(
            mechanism,
            statistic,
            totals.n,
            options,
            options.keywords(),
            domain,
            own,
            own.estimated_indices,
            hidden,
            merged_reports,
            fitted,
        )


def of_attribute(
    collection: CollectionConfig, name: str, totals: WindowTotals, options: EstimateOptions
) -> tuple[WindowTotals, EstimateOptions]:
    """Return the totals of the reports about an attribute, and the options for them.

    These reports are a random sample of all, so estimates for "respondents" are computed with the
    estimand `active`.
    """
    mechanism = collection.spec.mechanism
    assert isinstance(mechanism, Sampled)
    number = mechanism.names.index(name)
    statistic = totals.statistic[mechanism.slices[number]]
    n = mechanism.parts[number].count(statistic)
    sampling = sampling_between(
        collection.spread,
        collection.window,
        totals.start_ms,
        totals.end_ms,
        part=mechanism.probabilities[number] / WORD,
    )
    if options.estimand == "respondents":
        sampling = sampling_among(sampling, n, totals.n)
        options = replace(options, estimand="active")
    return replace(totals, statistic=statistic, n=n), replace(options, sampling=sampling)


def sampling_between(
    spread: SpreadConfig | None,
    window: WindowSpec,
    start_ms: int,
    end_ms: int,
    *,
    held: int = 1,
    part: float = 1.0,
) -> Sampling:
    """Return how devices' reports in a span of whole panes are drawn; one each if it is empty.

    `held` and `part`: as in `sampling_of`.
    """
    first, panes = start_ms // window.pane_ms, (end_ms - start_ms) // window.pane_ms
    if panes < 1:
        return ONE_REPORT_EACH
    if spread is None:
        return sampling_of(first, panes, windows=None, held=held, part=part)
    return sampling_of(
        first,
        panes,
        windows=spread.windows,
        reports=spread.reports,
        rolling=spread.rolling,
        part=part,
    )


class Numbers(TypedDict):
    """The columns of one entry."""

    share: Number
    count: Number
    se: Number
    low: Number
    high: Number
    influence: Number
    forged: int | None
    bound: Form | None


_NOTHING: Final = cast("Numbers", dict.fromkeys(Numbers.__annotations__))


def numbers(
    estimate: Estimate, n: int, projected: Floats | None, shown: Bools | None = None
) -> list[Numbers]:
    """Return each entry's numbers; a projected share has bounds, but no error of its own.

    `shown`, bool `(q,)`, says which entries have numbers; by default all have.
    """
    shares = estimate.value if projected is None else projected
    arrays = (shares, shares * n, estimate.se, estimate.low, estimate.high, estimate.influence)
    together = np.stack(arrays)
    found = together.astype(object)
    found[~np.isfinite(together)] = None
    columns = found.tolist()
    forms = [form or None for form in estimate.form.tolist()]
    forged = [int(m) if math.isfinite(m) else None for m in forged_reports(estimate).tolist()]
    if projected is not None:
        columns[2] = columns[5] = [None] * estimate.value.size
        forged = [None] * estimate.value.size
    rows = [
        Numbers(share=s, count=c, se=e, low=low, high=high, influence=i, forged=m, bound=b)
        for s, c, e, low, high, i, m, b in zip(*columns, forged, forms, strict=True)
    ]
    for place in [] if shown is None else np.flatnonzero(~shown).tolist():
        rows[place] = _NOTHING
    return rows
