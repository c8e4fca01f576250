"""Before any report: prove a collection's guarantee, and predict its estimates' errors."""

from collections.abc import Sequence
from pathlib import Path

from ldpstream.agents.cli.plans.model import PlanDocument
from ldpstream.agents.cli.plans.planner import make_plan
from ldpstream.agents.cli.plans.request import PlanRequest
from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.estimators.design.realise import write_channel
from ldpstream.estimators.planning.choices import LIMIT_SECONDS, Objective
from ldpstream.mechanisms.channels.certificate import Certificate


def certify(collection: CollectionConfig) -> Certificate:
    """Prove what the mechanism leaks, in exact arithmetic; `passed` if the policy allows it.

    With `hold` that is proved of the permanent `draw`, too. `collection.spec.disclosed()` lists
    what leaves a device in the clear.
    """
    return collection.spec.certify()


def plan(
    collection: CollectionConfig,
    *,
    respondents: int,
    prior: str | Sequence[float] | None = None,
    objective: Objective | None = None,
    search_seconds: float | None = None,
    width: float | None = None,
    limit_seconds: float = LIMIT_SECONDS,
    channel_file: str | Path | None = None,
) -> PlanDocument:
    """Compare all mechanisms that satisfy the collection's policy, as `ldpstream plan` does.

    - `respondents` is the expected number of reports.
    - `prior` are the expected shares: `uniform`, `zipf`, the path of a file of counts, or the
      counts themselves, in the domain's order; by default the collection's prior, or uniform.
    - Mechanisms are sorted by their error in `objective` (`published`, `ranges`, `values`, or
      `mmse`: values estimated with the prior), by default in what the collection publishes.
    - The search for the best channel of any kind takes `search_seconds`; 0 skips it.
    - With `width`, the plan says how many respondents bounds of this width (high - low) need.
    - Mechanisms not reached in `limit_seconds` are named in `unreached`.
    - The best channel is written to `channel_file`. A collection with `mechanism="optimal"` and
      `channel=channel_file` uses it.

    Raises:
        ValueError: for `respondents` or a `width` not above 0, an invalid prior, or a limit too
            short to compare even one mechanism; with a `channel_file`, for `search_seconds` not
            above 0, and for a policy or domain for which no such channel exists.
        OSError: where the file cannot be written.
    """
    made = make_plan(
        PlanRequest(
            collection=collection,
            respondents=respondents,
            prior=prior,
            objective=objective,
            search_seconds=search_seconds,
            width=width,
            limit_seconds=limit_seconds,
            channel_file=channel_file,
        )
    )
    if channel_file is not None:
        assert made.design is not None, "it was searched"
        write_channel(channel_file, made.design)
    return made.document
