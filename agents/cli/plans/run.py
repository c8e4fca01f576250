"""Make a plan of a collection: the request, the comparison, the best channel, the document."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ldpstream.agents.cli.plans.ask import UNIFORM, PlanRequest, ask
from ldpstream.agents.cli.plans.build import build_plan
from ldpstream.agents.cli.plans.model import PlanDocument
from ldpstream.agents.config import CollectionConfig
from ldpstream.estimators.design.cone import DesignError
from ldpstream.estimators.planning.choices import (
    LIMIT_SECONDS,
    SEARCH_SECONDS,
    SEARCHED_VALUES,
    Objective,
)
from ldpstream.estimators.planning.compare import Comparison, compare
from ldpstream.estimators.planning.optimum import Optimum, find_optimum
from ldpstream.estimators.planning.progress import Progress
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.words import Words

UNKNOWN_WORDS: Final = "{}: expected known values, got words: each round asks about other ones"


class NothingComparedError(ValueError):
    """The time was too short to compare even one mechanism."""


@dataclass(frozen=True, eq=False)
class Planned:
    """A plan and what it was made from; `optimum` is None if it was not searched for."""

    asked: PlanRequest
    comparison: Comparison
    optimum: Optimum | None
    document: PlanDocument


def make_plan(
    collection: CollectionConfig,
    *,
    respondents: int,
    prior: str | Sequence[float] = UNIFORM,
    objective: Objective | None = None,
    search_seconds: float | None = None,
    channel: bool = False,
    width: float | None = None,
    limit_seconds: float = LIMIT_SECONDS,
    say: Callable[[str], object] = str,
) -> Planned:
    """Return the plan of a collection for this many respondents; see `ask` for the options.

    The search for the best channel of any kind takes `search_seconds`; 0 skips it. By default it
    runs if it is fast, or if `channel` needs it. With `width`, the plan says how many respondents
    bounds of this width need. Mechanisms not compared within `limit_seconds` are only named. `say`
    is called with the progress.

    Raises:
        PriorError: for an invalid file of counts.
        NothingComparedError: where the time was too short for any mechanism.
        DesignError, SpecError: where the channel is needed, and there is none.
        ValueError: for a collection of unknown words, or of records, whose attributes are planned
            one at a time.
    """
    if collection.attributes:
        known = ", ".join(collection.attributes)
        raise ValueError(f"{collection.name}: expected one attribute of the records: {known}")
    unknown = isinstance(collection.spec.domain, Words)
    if unknown:
        raise ValueError(UNKNOWN_WORDS.format(collection.name))
    asked = ask(collection, respondents=respondents, prior=prior, objective=objective)
    say(f"comparing mechanisms: {collection.name}")
    mechanism, domain = asked.spec.mechanism, asked.spec.domain
    progress = Progress(say, seconds=limit_seconds)
    comparison = compare(
        mechanism, domain, asked.workload, asked.objective, asked.estimand, progress=progress
    )
    if not comparison.candidates:
        raise NothingComparedError(f"no mechanism was compared within {limit_seconds:g} s")
    say(f"searching for the best channel: {collection.name}")
    optimum = _search(asked, search_seconds, needed=channel)
    document = build_plan(asked, comparison, optimum, width, limit_seconds)
    return Planned(asked, comparison, optimum, document)


def _search(asked: PlanRequest, seconds: float | None, *, needed: bool) -> Optimum | None:
    policy = asked.spec.mechanism.policy
    if seconds is None:
        seconds = SEARCH_SECONDS if needed or policy.size <= SEARCHED_VALUES else 0.0
    if seconds == 0.0:
        return None
    try:
        return find_optimum(
            policy, asked.workload, asked.objective, asked.estimand, seconds=seconds
        )
    except (DesignError, SpecError):
        if needed:
            raise
        return None
