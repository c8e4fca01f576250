"""The winner of a plan, in plain sentences."""

import math
from collections.abc import Iterator

from ldpstream.agents.plan.ask import Asked
from ldpstream.estimators.plan.compare import Candidate, Comparison, cheaper_rivals


def named(candidate: Candidate) -> str:
    """Return a candidate's id with its variant."""
    return title(candidate.mechanism.id, candidate.variant)


def title(mechanism_id: str, variant: str) -> str:
    """Return a mechanism's id with its variant, where it has one."""
    return f"{mechanism_id}, {variant}" if variant else mechanism_id


def verdict(asked: Asked, comparison: Comparison) -> str:
    """Say which mechanism is best for what, by how much, and which nearly is for less."""
    return " ".join(_sentences(asked, comparison))


def _sentences(asked: Asked, comparison: Comparison) -> Iterator[str]:
    best, *others = comparison.candidates
    n = asked.respondents
    lead = (
        f"{named(best)} is best for {asked.workload_text}: "
        f"predicted standard error {best.error(n):.3g} at {n:,} respondents"
    )
    if others:
        yield f"{lead}. The next, {named(others[0])}, has {times(others[0], best)}."
    else:
        yield f"{lead}; nothing else is proposed."
    for candidate in others[1:]:
        if candidate.configured:
            yield f"The configured one, {named(candidate)}, has {times(candidate, best)}."
    for rival in cheaper_rivals(comparison.candidates):
        bits = f"{rival.cost.report_bits:,} instead of {best.cost.report_bits:,} bits a report"
        yield f"{named(rival)} needs {bits}, for {times(rival, best)}."


def times(candidate: Candidate, best: Candidate) -> str:
    """Return a candidate's error beside the best one's, such as `1.27 times that error`."""
    if best.variance <= 0.0:
        return "the same error" if candidate.variance <= 0.0 else "an error at all"
    ratio = ratio_text(math.sqrt(candidate.variance / best.variance))
    return "the same error" if ratio == "1" else f"{ratio} times that error"


def ratio_text(ratio: float) -> str:
    """Return a ratio of errors with three digits."""
    return f"{ratio:,.0f}" if ratio >= 100.0 else f"{ratio:.3g}"
