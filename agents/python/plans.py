"""Before any report: what a collection's guarantee is, and what its estimates will be worth."""

from collections.abc import Sequence
from pathlib import Path

from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.plan.ask import UNIFORM
from ldpstream.agents.plan.model import PlanDocument
from ldpstream.agents.plan.run import make_plan
from ldpstream.estimators.design.realise import write_channel as write_design
from ldpstream.estimators.planning.choices import LIMIT_SECONDS, SEARCH_SECONDS, Objective
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
    width: float | None = None,
    limit_seconds: float = LIMIT_SECONDS,
) -> PlanDocument:
    """Compare all mechanisms that satisfy the collection's policy, as `ldpstream plan` does.

    `prior` are the design shares: `uniform`, `zipf`, the path of a file of counts, or the counts
    themselves, in the domain's order. `objective` is what mechanisms are sorted by, by default what
    the collection publishes. The best channel of any kind is searched for `search_seconds`, 0 for
    not at all. With a `width` of bounds, low to high, the plan says how many respondents it needs.
    Mechanisms that are not compared within `limit_seconds` are named in `unreached`.

    Raises:
        ValueError: for no respondents or width, a prior that cannot be used, or a limit within
            which no mechanism is compared.
    """
    _check(respondents)
    if width is not None and not width > 0.0:
        raise ValueError(f"width: expected a number above 0, got {width}")
    return make_plan(
        collection,
        respondents=respondents,
        prior=prior,
        objective=objective,
        search_seconds=search_seconds,
        width=width,
        limit_seconds=limit_seconds,
    ).document


def write_channel(
    collection: CollectionConfig,
    file: str | Path,
    *,
    respondents: int,
    prior: str | Sequence[float] = UNIFORM,
    objective: Objective | None = None,
    search_seconds: float = SEARCH_SECONDS,
) -> PlanDocument:
    """Search the best channel for the collection's policy, write it to a file; return the plan.

    A collection of `mechanism="optimal"` and `channel=file` uses it.

    Raises:
        ValueError: for no respondents or seconds, a prior that cannot be used, a policy or domain
            for which there is no such channel.
        OSError: where the file cannot be written.
    """
    _check(respondents)
    if search_seconds <= 0.0:
        raise ValueError(f"search_seconds: expected some, got {search_seconds}")
    planned = make_plan(
        collection,
        respondents=respondents,
        prior=prior,
        objective=objective,
        search_seconds=search_seconds,
        channel=True,
    )
    assert planned.optimum is not None, "it was searched"
    write_design(str(file), planned.optimum.design)
    return planned.document


def _check(respondents: int) -> None:
    if respondents < 1:
        raise ValueError(f"respondents: expected a whole number above 0, got {respondents}")
