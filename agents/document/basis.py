"""What all parts of a document are estimated from, found out once for all of them."""

from dataclasses import dataclass
from typing import Self

from ldpstream.agents.query.options import EstimateOptions
from ldpstream.agents.state.context import WindowTotals
from ldpstream.estimators.bounds.options import OptionKeywords
from ldpstream.estimators.likelihood.curve import Curve, curve
from ldpstream.estimators.likelihood.line import Line
from ldpstream.mechanisms.base.arrays import Bools, Integers
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic
from ldpstream.mechanisms.wire.spec import CollectionSpec


@dataclass(frozen=True, eq=False)
class Basis:
    """`n` reports of the values alone (weights are summed out, which is exact), and what is asked.

    `domain` is what estimates are about, `own` that of the values that devices give, and `given`
    the index in `domain` of each of these, int64; None where both are the same. `hidden`, bool
    `(k,)`, are the values of merged blocks, which hold `merged_reports`; None where none are.
    `fitted` is the curve by likelihood, where it is asked for.
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
        """Return what the reports of a span say of the values alone."""
        mechanism, statistic, own = spec.mechanism, totals.statistic, spec.domain
        domain, alone = own.estimated, mechanism.marginal(statistic)
        if alone is not None:
            (mechanism, statistic), own = alone, domain
        hidden, merged_reports, fitted = None, 0, None
        if totals.merged is not None:
            decoder = mechanism.decoder()
            groups = decoder.groups()
            assert groups is not None, "only what discloses blocks merges them"
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
