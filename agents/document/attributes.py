"""Which part of the exact totals of records is about an attribute, and how it was drawn."""

from dataclasses import replace

from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.config.spread import sampling_between
from ldpstream.agents.query.options import EstimateOptions
from ldpstream.agents.state.context import WindowTotals
from ldpstream.estimators.bounds.sampling import sampling_among
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.sampled.sampled import Sampled


def of_attribute(
    collection: CollectionConfig, name: str, totals: WindowTotals, options: EstimateOptions
) -> tuple[WindowTotals, EstimateOptions]:
    """Return the totals of the reports about an attribute, and what is asked of them.

    Those about it were drawn from all reports, so that its respondents are sampled: they are the
    `active` ones of estimates whose document says respondents.
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
