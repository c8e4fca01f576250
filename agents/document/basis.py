"""The input of all estimates in a document, prepared once; of records, that about one attribute."""

from dataclasses import dataclass, replace
from typing import Self

from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.config.spread import sampling_between
from ldpstream.agents.query.options import EstimateOptions
from ldpstream.agents.state.context import WindowTotals
from ldpstream.estimators.bounds.options import OptionKeywords
from ldpstream.estimators.bounds.sampling import sampling_among
from ldpstream.estimators.likelihood.curve import Curve, curve
from ldpstream.estimators.likelihood.line import Line
from ldpstream.mechanisms.base.arrays import Bools, Integers
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
