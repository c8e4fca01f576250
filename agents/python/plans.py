"""Before any report: what a collection's guarantee is, and what its estimates will be worth."""

from collections.abc import Sequence

from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.plan.ask import UNIFORM
from ldpstream.agents.plan.model import PlanDocument
from ldpstream.agents.plan.run import make_plan
from ldpstream.estimators.planning.choices import Objective
from ldpstream.mechanisms.channels.certificate import Certificate


def certify(collection: CollectionConfig) -> Certificate:
    """Prove what the mechanism leaks, in exact arithmetic; `passed` says whether it may.

    `collection.spec.disclosed()` says all that leaves a device in the clear.
    """
    return collection.spec.mechanism.certify()


def plan(
    collection: CollectionConfig,
    *,
    respondents: int,
    prior: str | Sequence[float] = UNIFORM,
    objective: Objective | None = None,
    search_seconds: float | None = None,
) -> PlanDocument:
    """Compare all mechanisms that satisfy the collection's policy, as `ldpstream plan` does.

    `prior` are the design shares: `uniform`, `zipf`, the path of a file of counts, or the counts
    themselves, in the domain's order. `objective` is what mechanisms are sorted by, by default what
    the collection publishes. The best channel of any kind is searched for `search_seconds`, 0 for
    not at all.

    Raises:
        ValueError: for no respondents, or a prior that cannot be used.
    """
    if respondents < 1:
        raise ValueError(f"respondents: expected a whole number above 0, got {respondents}")
    return make_plan(
        collection,
        respondents=respondents,
        prior=prior,
        objective=objective,
        search_seconds=search_seconds,
    ).document
