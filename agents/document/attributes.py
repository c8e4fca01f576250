"""The part of records' exact totals that is about one attribute, and how it was sampled."""

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
