"""Before any report: prove a collection's guarantee, and predict its estimates' errors."""

from collections.abc import Sequence
from pathlib import Path

from ldpstream.agents.cli.plans.model import PlanDocument
from ldpstream.agents.cli.plans.planner import make_plan
from ldpstream.agents.cli.plans.request import UNIFORM, PlanRequest
from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.estimators.design.realise import write_channel as write_design
from ldpstream.estimators.planning.choices import LIMIT_SECONDS, SEARCH_SECONDS, Objective
from ldpstream.mechanisms.channels.certificate import Certificate


def certify(collection: CollectionConfig) -> Certificate:
    """Prove what the mechanism leaks, in exact arithmetic; `passed` if the policy allows it.

    `collection.spec.disclosed()` lists what leaves a device in the clear.
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

    `prior` are the expected shares: `uniform`, `zipf`, the path of a file of counts, or the counts
    themselves, in the domain's order. Mechanisms are sorted by their error in `objective`, by
    default in what the collection publishes. The search for the best channel of any kind takes
    `search_seconds`; 0 skips it. With `width`, the plan says how many respondents bounds of this
    width (high - low) need. Mechanisms not reached in `limit_seconds` are named in `unreached`.

    Raises:
        ValueError: for `respondents` or a `width` not above 0, an invalid prior, or a limit too
            short to compare even one mechanism.
    """
    _check(respondents)
    if width is not None and not width > 0.0:
        raise ValueError(f"width: expected a number above 0, got {width}")
    request = PlanRequest(
        collection=collection,
        respondents=respondents,
        prior=prior,
        objective=objective,
        search_seconds=search_seconds,
        width=width,
        limit_seconds=limit_seconds,
    )
    return make_plan(request).document


def write_channel(
    collection: CollectionConfig,
    file: str | Path,
    *,
    respondents: int,
    prior: str | Sequence[float] = UNIFORM,
    objective: Objective | None = None,
    search_seconds: float = SEARCH_SECONDS,
) -> PlanDocument:
    """Search for the best channel under the collection's policy, and write it to a file.

    A collection with `mechanism="optimal"` and `channel=file` uses it. Returns the plan.

    Raises:
        ValueError: for `respondents` or `search_seconds` not above 0, an invalid prior, or a policy
            or domain for which no such channel exists.
        OSError: where the file cannot be written.
    """
    _check(respondents)
    if search_seconds <= 0.0:
        raise ValueError(f"search_seconds: expected a number above 0, got {search_seconds}")
    request = PlanRequest(
        collection=collection,
        respondents=respondents,
        prior=prior,
        objective=objective,
        search_seconds=search_seconds,
        needs_channel=True,
    )
    made = make_plan(request)
    assert made.optimum is not None, "it was searched"
    write_design(str(file), made.optimum.design)
    return made.document


def _check(respondents: int) -> None:
    if respondents < 1:
        raise ValueError(f"respondents: expected a whole number above 0, got {respondents}")
