"""The winner of a plan, in plain sentences."""

import math
from collections.abc import Iterator
from itertools import islice
from typing import Final

from ldpstream.agents.cli.plans.ask import PlanRequest
from ldpstream.estimators.planning.compare import Candidate, Comparison, cheaper_rivals
from ldpstream.estimators.planning.optimum import Optimum


def named(candidate: Candidate) -> str:
    """Return a candidate's id with its variant."""
    return title(candidate.mechanism.id, candidate.variant)


def title(mechanism_id: str, variant: str) -> str:
    """Return a mechanism's id, with its variant if it has one."""
    return f"{mechanism_id}, {variant}" if variant else mechanism_id


def verdict(
    asked: PlanRequest, comparison: Comparison, optimum: Optimum | None, limit_seconds: float
) -> str:
    """Say which mechanism is best, by how much, and which costs less for nearly the same error.

    Also names the mechanisms that were not compared within the limit.
    """
    sentences = [*_sentences(asked, comparison)]
    if comparison.unreached:
        names = "; ".join(title(one.mechanism.id, one.variant) for one in comparison.unreached)
        sentences.append(f"Not compared within {limit_seconds:g} s, so maybe better: {names}.")
    if optimum is not None:
        sentences.append(_nearness(asked, comparison.candidates[0], optimum))
    return " ".join(sentences)


def _sentences(asked: PlanRequest, comparison: Comparison) -> Iterator[str]:
    best, *others = comparison.candidates
    n = asked.respondents
    lead = (
        f"{named(best)} is best for {asked.workload_text}: "
        f"predicted standard error {best.error(n):.3g} at {n:,} respondents"
    )
    if others:
        yield f"{lead}. The next, {named(others[0])}, has {times(others[0], best)}."
    else:
        yield f"{lead}; nothing else is {'compared' if comparison.unreached else 'proposed'}."
    for candidate in others[1:]:
        if candidate.configured:
            yield f"The configured one, {named(candidate)}, has {times(candidate, best)}."
    for rival in islice(cheaper_rivals(comparison.candidates), 1):
        bits = f"{rival.cost.report_bits:,} instead of {best.cost.report_bits:,} bits per report"
        yield f"{named(rival)} needs {bits}, for {times(rival, best)}."


_FOUND: Final = {
    "proved": "has an error of {error:.3g}",
    "searched": "has an error of {error:.3g}, as far as a search can tell",
    "unfinished": "found in time has an error of {error:.3g}, and none is below {bound:.3g}",
}


def _nearness(asked: PlanRequest, best: Candidate, optimum: Optimum) -> str:
    n = asked.respondents
    found = _FOUND[optimum.design.status].format(error=optimum.error(n), bound=optimum.bound(n))
    lead = f"The best channel of any kind for this policy, workload and design shares {found}"
    ratio = math.sqrt(best.variance / optimum.variance) if optimum.variance > 0.0 else 1.0
    if ratio_text(ratio) == "1":
        return f"{lead}; {named(best)} is as good."
    return f"{lead}; {named(best)} has {ratio_text(ratio)} times that."


def times(candidate: Candidate, best: Candidate) -> str:
    """Return a candidate's error compared with the best one's, such as `1.27 times that error`."""
    if best.variance <= 0.0:
        return "the same error" if candidate.variance <= 0.0 else "an error at all"
    ratio = ratio_text(math.sqrt(candidate.variance / best.variance))
    return "the same error" if ratio == "1" else f"{ratio} times that error"


def ratio_text(ratio: float) -> str:
    """Return a ratio of errors with three digits."""
    return f"{ratio:,.0f}" if ratio >= 100.0 else f"{ratio:.3g}"
