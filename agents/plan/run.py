"""A whole plan of a collection: what is asked, the comparison, the best channel, the document."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.plan.ask import UNIFORM, PlanRequest, ask
from ldpstream.agents.plan.build import build_plan
from ldpstream.agents.plan.model import PlanDocument
from ldpstream.estimators.design.errors import DesignError
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

UNKNOWN_WORDS: Final = "{}: expected values that are known: each round asks about other words"


class NothingComparedError(ValueError):
    """A plan of nothing: the message says within how many seconds."""


@dataclass(frozen=True, eq=False)
class Planned:
    """A plan with all that it was made of; `optimum` is None where it was not searched."""

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
    """Return the plan of a collection for this many respondents; `ask` says what the rest is.

    The best channel of any kind is searched for `search_seconds`, 0 for not at all; by default
    where that is soon done, or where `channel` says that it is needed. With a `width` of bounds the
    plan says how many respondents it needs. What is not compared within `limit_seconds` is left out
    by name. `say` is told what goes on.

    Raises:
        PriorError: for a file of counts that cannot be used.
        NothingComparedError: where the time was too short for any mechanism.
        DesignError, SpecError: where the channel is needed, and there is none.
        ValueError: for a collection of records, of which one attribute at a time is planned, and
            for one of unknown words.
    """
    if collection.attributes:
        known = ", ".join(collection.attributes)
        raise ValueError(f"{collection.name}: expected one attribute of records: of {known}")
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
    say(f"searching the best channel: {collection.name}")
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
