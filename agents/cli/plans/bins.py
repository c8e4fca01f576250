"""Recommend the number of bins of an interval, in plans and as a warning of `check`."""

import math
from collections.abc import Iterable, Iterator

from ldpstream.agents.cli.plans.model import BinsPart
from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.estimators.planning.bins import NOISE, PEAK, recommended_bins, recommended_tree_bins
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.wire.spec import CollectionSpec


def recommend_bins(spec: CollectionSpec, respondents: int) -> BinsPart | None:
    """Return what is recommended; None unless it is one interval.

    Its numbers are protected by their distance, or any two of them alike.
    """
    domain, policy = spec.domain.estimated, (spec.mechanism.marginal or spec.mechanism).policy
    if len(domain.axes) != 1:
        return None
    bins = domain.axes[0].steps
    blocks = policy.disclosed_blocks
    if blocks is not None and blocks.count == 1:
        epsilon = float(policy.largest_loss())
        recommended = recommended_tree_bins(epsilon, respondents)
    elif isinstance(policy, MetricPolicy) and len(policy.shape) <= 1:
        step = float(policy.step)
        # Numbers that are rounded at random lose `log(1 + epsilon)` a step for epsilon a width.
        budget = bins * (math.expm1(step) if policy.rounded else step)
        recommended = recommended_bins(budget, respondents)
        epsilon = budget / recommended
    else:
        return None
    return BinsPart(configured=bins, recommended=recommended, epsilon=epsilon, peak=PEAK)


def noisy_bins(spec: CollectionSpec, respondents: int) -> str | None:
    """Return the recommendation in words, for whoever has many more bins; otherwise None.

    The noise of `tree` hardly grows with bins.
    """
    if (spec.mechanism.marginal or spec.mechanism).policy.disclosed_blocks is not None:
        return None
    advice = recommend_bins(spec, respondents)
    if advice is None or advice.configured <= NOISE * advice.recommended:
        return None
    return (
        f"{advice.configured:,} bins are noise, not resolution, at {respondents:,} reports: with "
        f"the same budget for the whole interval bins = {advice.recommended} and "
        f"epsilon = {advice.epsilon:.3g} have the least error, unless more than {advice.peak:g} "
        "times the even share of people is in one place"
    )


def bins_warnings(collections: Iterable[CollectionConfig]) -> Iterator[str]:
    """Yield a warning for each collection, or attribute, with far more bins than recommended.

    The reports that are expected in a window are those for which it sets `sharpest`.
    """
    for collection in collections:
        respondents = collection.options.sharpest
        attributes = collection.attributes.items()
        specs = [(f".domain.attributes.{name}", one.spec) for name, one in attributes]
        for path, spec in specs or [("", collection.spec)]:
            if sentence := noisy_bins(spec, respondents):
                yield (
                    f"collection.{collection.name}{path}: warning: {sentence} "
                    "(sharpest: the reports that you expect)"
                )
