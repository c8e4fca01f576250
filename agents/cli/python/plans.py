"""Before any report: prove a collection's guarantee, and predict its estimates' errors."""

from pathlib import Path
from typing import Unpack

from ldpstream.agents.cli.plans.model import PlanDocument
from ldpstream.agents.cli.plans.planner import make_plan
from ldpstream.agents.cli.plans.request import PlanKeywords, PlanRequest
from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.estimators.design.realise import write_channel as write_design
from ldpstream.mechanisms.channels.certificate import Certificate


def certify(collection: CollectionConfig) -> Certificate:
    """Prove what the mechanism leaks, in exact arithmetic; `passed` if the policy allows it.

    `collection.spec.disclosed()` lists what leaves a device in the clear.
    """
    return collection.spec.mechanism.certify()


def plan(collection: CollectionConfig, **options: Unpack[PlanKeywords]) -> PlanDocument:
    """Compare all mechanisms that satisfy the collection's policy, as `ldpstream plan` does.

    - `respondents`, which is required, is the expected number of reports.
    - `prior` are the expected shares: `uniform` (the default), `zipf`, the path of a file of
      counts, or the counts themselves, in the domain's order.
    - Mechanisms are sorted by their error in `objective` (`published`, `ranges` or `values`), by
      default in what the collection publishes.
    - The search for the best channel of any kind takes `search_seconds`; 0 skips it.
    - With `width`, the plan says how many respondents bounds of this width (high - low) need.
    - Mechanisms not reached in `limit_seconds` are named in `unreached`.

    Raises:
        ValueError: for `respondents` or a `width` not above 0, an invalid prior, or a limit too
            short to compare even one mechanism.
    """
    return make_plan(PlanRequest(collection=collection, **options)).document


def write_channel(
    collection: CollectionConfig, file: str | Path, **options: Unpack[PlanKeywords]
) -> PlanDocument:
    """Search for the best channel under the collection's policy, and write it to a file.

    A collection with `mechanism="optimal"` and `channel=file` uses it. Options are those of `plan`,
    which is returned.

    Raises:
        ValueError: as `plan` does; for `search_seconds` not above 0, and for a policy or domain for
            which no such channel exists.
        OSError: where the file cannot be written.
    """
    made = make_plan(PlanRequest(collection=collection, needs_channel=True, **options))
    assert made.optimum is not None, "it was searched"
    write_design(str(file), made.optimum.design)
    return made.document
