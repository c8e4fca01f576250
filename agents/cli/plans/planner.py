"""Make a plan of a collection: compare mechanisms, search for the best channel, say which wins."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from ldpstream.agents.cli.plans.bins import noisy_bins, recommend_bins
from ldpstream.agents.cli.plans.model import (
    AtomsPart,
    AttributePlan,
    AttributesPlan,
    MechanismPlan,
    OptimumPart,
    PlanDocument,
    ProposalPart,
    QuantileErrors,
    RangeErrors,
    RefusedPart,
    Summary,
    UnsuitedPart,
    ValueErrors,
)
from ldpstream.agents.cli.plans.request import PlanRequest
from ldpstream.agents.config import CollectionConfig
from ldpstream.estimators.design.cone import DesignError
from ldpstream.estimators.planning.atoms import best_on_atoms
from ldpstream.estimators.planning.choices import SEARCH_SECONDS, SEARCHED_VALUES
from ldpstream.estimators.planning.compare import (
    Candidate,
    Comparison,
    RefusedMechanism,
    cheaper_rivals,
    compare,
)
from ldpstream.estimators.planning.optimum import Optimum, find_bound, find_optimum
from ldpstream.estimators.planning.predictions import prefix_bound, sampling_variances
from ldpstream.estimators.planning.progress import Progress
from ldpstream.estimators.planning.workload import QuerySets
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.channels.information import Information
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.registry.attributes import default_weights, worst_variance
from ldpstream.mechanisms.registry.proposals import Proposal

UNKNOWN_WORDS: Final = "{}: expected known values, got words: each round asks about other ones"

_ONE_PERCENT: Final = 0.01
_LARGEST_EXACT: Final = 1 << 53
_MOST_INFORMED: Final = 1 << 18
"""Most entries of a channel whose mutual information is computed."""


class NothingComparedError(ValueError):
    """The time was too short to compare even one mechanism."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan with its document; `optimum` is None if it was not searched for."""

    request: PlanRequest
    comparison: Comparison
    optimum: Optimum | None
    document: PlanDocument


def make_plan(request: PlanRequest, *, say: Callable[[str], object] = str) -> Plan:
    """Return the plan that is requested; `say` is called with the progress.

    Raises:
        PriorError: for an invalid prior.
        NothingComparedError: where the time was too short for any mechanism.
        DesignError, SpecError: where a channel is to be written, and there is none.
        ValueError: for a collection of unknown words, or of records, whose attributes are planned
            one at a time.
    """
    collection = request.collection
    if collection.attributes:
        known = ", ".join(collection.attributes)
        raise ValueError(f"{collection.name}: expected one attribute of the records: {known}")
    if collection.spec.words is not None:
        raise ValueError(UNKNOWN_WORDS.format(collection.name))
    spec, workload = request.spec, request.workload
    say(f"comparing mechanisms: {collection.name}")
    progress = Progress(say, seconds=request.limit_seconds)
    comparison = compare(
        spec.mechanism, spec.domain, workload, progress=progress, policy=request.policy
    )
    if not comparison.candidates:
        raise NothingComparedError(f"no mechanism was compared within {request.limit_seconds:g} s")
    say(f"searching for the best channel: {collection.name}")
    optimum = _search(request, comparison)
    return Plan(request, comparison, optimum, _document(request, comparison, optimum))


def _search(request: PlanRequest, comparison: Comparison) -> Optimum | None:
    seconds, needed = request.search_seconds, request.channel_file is not None
    policy, workload, candidates = request.policy, request.workload, comparison.candidates
    if seconds is None and not needed and policy.size > SEARCHED_VALUES:
        return find_bound(policy, workload, candidates)
    if seconds == 0.0:
        return None
    try:
        return find_optimum(policy, workload, candidates, seconds=seconds or SEARCH_SECONDS)
    except (DesignError, SpecError):
        if needed:
            raise
        return None


def _document(
    request: PlanRequest, comparison: Comparison, optimum: Optimum | None
) -> PlanDocument:
    best = comparison.candidates[0]
    atoms = _atoms(request, best)
    return PlanDocument(
        collection=request.collection.name,
        fingerprint=request.collection.spec.fingerprint.hex(),
        respondents=request.respondents,
        estimand=request.workload.estimand,
        confidence=request.collection.options.confidence,
        wanted_width=request.width,
        policy=request.policy.describe(),
        prior=request.shares[1],
        workload=request.workload.objective,
        workload_text=request.workload_text,
        verdict=" ".join(_verdict(request, comparison, optimum, atoms)),
        bins=recommend_bins(request.spec, request.respondents),
        atoms=atoms,
        optimum=None if optimum is None else _optimum(request, optimum),
        order=_order(request),
        mechanisms=[_mechanism(request, one, best, optimum) for one in comparison.candidates],
        refused=[_refused(request, one) for one in comparison.refused],
        unsuited=[UnsuitedPart(mechanism=one.id, needs=one.needs) for one in comparison.unsuited],
        unreached=[ProposalPart(**_names(one)) for one in comparison.unreached],
        limit_seconds=request.limit_seconds if comparison.unreached else None,
    )


def _names(one: Candidate | RefusedMechanism | Proposal) -> dict[str, Any]:
    epsilon = one.mechanism.parameters().get("epsilon")
    return {"mechanism": one.mechanism.id, "variant": one.variant, "epsilon": epsilon}


def _mechanism(
    request: PlanRequest, one: Candidate, best: Candidate, optimum: Optimum | None
) -> MechanismPlan:
    n, workload, found = request.respondents, request.workload, one.predictions
    options, spec = request.collection.options, request.collection.spec
    both = 2.0 * NormalDist().inv_cdf(0.5 + options.confidence / 2.0)
    bound = None
    if found.spread is not None:
        bound = prefix_bound(found.spread, workload.size - 1, n, options.confidence)
    # With `one_report`, a token follows each report, whatever the mechanism.
    token_bytes = spec.report_bytes - spec.mechanism.report_bytes
    return MechanismPlan(
        **_names(one),
        configured=one.configured,
        error=one.error(n),
        width=both * one.error(n),
        ratio=_ratio(one.variance, best.variance),
        of_optimum=None
        if optimum is None or optimum.design is None
        else _ratio(one.variance, optimum.variance),
        respondents_for_1_percent=_needed(one, _ONE_PERCENT),
        respondents_for_width=None if request.width is None else _needed(one, request.width / both),
        total_variation=_total_variation(request, one),
        information=_information(request, one),
        ranges=[
            RangeErrors(name=configured.name, **errors)
            for configured, errors in zip(
                options.ranges, _errors(request, found.ranges, workload.range_queries), strict=True
            )
        ],
        quantiles=[
            QuantileErrors(p=p, value=request.domain.label(position), bound=bound, **errors)
            for p, position, errors in zip(
                workload.quantiles,
                workload.quantile_positions.tolist(),
                _errors(request, found.quantiles, workload.quantile_queries),
                strict=True,
            )
        ],
        top=[
            ValueErrors(
                value=request.domain.label(value),
                share=float(workload.value_shares[value]),
                **errors,
            )
            for value, errors in zip(
                workload.top_values.tolist(),
                _errors(request, found.top, workload.top_queries),
                strict=True,
            )
        ],
        values=_summary(found.values, workload.values, n),
        all_ranges=_summary(found.boxes, workload.boxes, n) if found.boxes.size else None,
        cost=replace(one.cost, message_bytes=one.cost.message_bytes + token_bytes),
    )


def _atoms(request: PlanRequest, best: Candidate) -> AtomsPart | None:
    """Return what `workload = "published"` achieves, where the collection could take it and gains.

    Numbers that are rounded at random, and priors, are of values.
    """
    spec, domain, options = request.spec, request.spec.domain, request.collection.options
    merged = domain.written is not domain
    if merged or domain.rounded or spec.prior.shares or request.workload.objective != "published":
        return None
    linear = [one.weights for one in options.linear]
    reached = best_on_atoms(request.policy, domain, request.workload, linear)
    if reached is None or reached.variance >= best.variance:
        return None
    error = math.sqrt(reached.variance / request.respondents)
    return AtomsPart(atoms=reached.atoms.size, mechanism=reached.mechanism.id, error=error)


def _order(request: PlanRequest) -> float | None:
    order = request.policy.reports_per_error()
    return None if order is None else math.sqrt(order / request.respondents)


def _information(request: PlanRequest, one: Candidate) -> float | None:
    table = one.mechanism.table
    if table is None or table.size > _MOST_INFORMED:
        return None
    return Information.of(table, request.workload.shares).bits


def _needed(one: Candidate, error: float) -> int | None:
    needed = one.respondents(error)
    return needed if needed <= _LARGEST_EXACT else None


def _ratio(variance: float, least: float) -> float | None:
    if variance == least:
        return 1.0
    return math.sqrt(variance / least) if least > 0.0 else None


def _errors(request: PlanRequest, variances: Floats, queries: QuerySets) -> list[dict[str, float]]:
    sampled = variances + sampling_variances(queries, request.workload.shares)
    pairs = np.sqrt(np.stack([variances, sampled], axis=1) / request.respondents)
    return [{"respondents": r, "population": p} for r, p in pairs.tolist()]


def _summary(variances: Floats, queries: QuerySets, n: int) -> Summary:
    return Summary(
        mean=math.sqrt(float(variances.mean()) / n),
        worst=math.sqrt(float(variances.max()) / n),
        predicted=len(queries.sets),
        total=queries.total,
    )


def _total_variation(request: PlanRequest, one: Candidate) -> float:
    """Return half the sum of all values' standard errors, an upper bound by Jensen's inequality.

    In a large domain the mean over a sample of values stands for the others.
    """
    workload, variances = request.workload, one.predictions.values
    if workload.estimand == "population":
        variances = variances + sampling_variances(workload.values, workload.shares)
    return float(np.sqrt(variances / request.respondents).mean()) * workload.values.total / 2.0


def _optimum(request: PlanRequest, optimum: Optimum) -> OptimumPart:
    return OptimumPart(
        error=optimum.error(request.respondents),
        bound=optimum.bound(request.respondents),
        status=optimum.status,
        reports=None if optimum.design is None else len(optimum.design.weights),
    )


def _refused(request: PlanRequest, one: RefusedMechanism) -> RefusedPart:
    value, other = map(request.spec.domain.label, one.pair)
    return RefusedPart(
        **_names(one), value=value, other=other, allowed=one.allowed, taken=one.taken
    )


def named(candidate: Candidate | Proposal) -> str:
    """Return a candidate's id with its variant."""
    return title(candidate.mechanism.id, candidate.variant)


def title(mechanism_id: str, variant: str) -> str:
    """Return a mechanism's id, with its variant if it has one."""
    return f"{mechanism_id}, {variant}" if variant else mechanism_id


def _verdict(
    request: PlanRequest,
    comparison: Comparison,
    optimum: Optimum | None,
    atoms: AtomsPart | None,
) -> Iterator[str]:
    """Say which mechanism is best, by how much, and which costs less for nearly the same error.

    Also names the mechanisms that were not compared within the limit.
    """
    best, *others = comparison.candidates
    n = request.respondents

    def times(one: Candidate) -> str:
        return _times(one.variance, best.variance)

    lead = (
        f"{named(best)} is best for {request.workload_text}: "
        f"predicted standard error {best.error(n):.3g} at {n:,} respondents"
    )
    if others:
        yield f"{lead}. The next, {named(others[0])}, has {times(others[0])}."
    else:
        yield f"{lead}; nothing else is {'compared' if comparison.unreached else 'proposed'}."
    for candidate in others[1:]:
        if candidate.configured:
            yield f"The configured one, {named(candidate)}, has {times(candidate)}."
    for rival in islice(cheaper_rivals(comparison.candidates), 1):
        bits = f"{rival.cost.report_bits:,} instead of {best.cost.report_bits:,} bits per report"
        yield f"{named(rival)} needs {bits}, for {times(rival)}."
    if atoms is not None:
        yield (
            f'With workload = "published" {atoms.mechanism} reports about the {atoms.atoms:,} sets '
            f"of values that the published queries tell apart, and has "
            f"{_times(atoms.error**2 * n, best.variance)}; nothing else is answered then."
        )
    if sentence := noisy_bins(request.spec, n):
        yield f"{sentence}."
    if comparison.unreached:
        names = "; ".join(map(named, comparison.unreached))
        yield f"Not compared within {request.limit_seconds:g} s, so maybe better: {names}."
    if optimum is not None:
        yield from _limits(best, optimum, n)


def _limits(best: Candidate, optimum: Optimum, n: int) -> Iterator[str]:
    """Compare the best mechanism with the bound for all channels, and with the best one found."""
    about = "for this policy, workload and design shares"
    bound, error = optimum.bound(n), f"{optimum.error(n):.3g}"
    if optimum.least is not None and bound is not None:
        relaxed = ", from a relaxation" * (optimum.status == "relaxed")
        times = _times(best.variance, optimum.least)
        lead = f"No channel {about} has an error below the bound {bound:.3g}{relaxed}"
        yield f"{lead}; {named(best)} has {times}."
        if optimum.design is None or error == f"{bound:.3g}":
            return
        about = "for them"
    times = _times(best.variance, optimum.variance)
    yield f"Best found of any kind {about}: error {error}; {named(best)} has {times}."


def _times(variance: float, least: float) -> str:
    """Return an error compared with the least one, such as `1.27 times that error`."""
    if least <= 0.0:
        return "the same error" if variance <= 0.0 else "an error at all"
    ratio = ratio_text(math.sqrt(variance / least))
    return "the same error" if ratio == "1" else f"{ratio} times that error"


def ratio_text(ratio: float) -> str:
    """Return a ratio of errors with three digits."""
    return f"{ratio:,.0f}" if ratio >= 100.0 else f"{ratio:.3g}"


def plan_attributes(collection: CollectionConfig, respondents: int) -> AttributesPlan:
    """Return the plan of a collection of records for this many respondents of all attributes.

    Errors are for the population estimand, in the worst case over devices' values.
    """
    mechanism = collection.spec.mechanism
    assert isinstance(mechanism, Sampled)
    weights = default_weights(mechanism.parts)
    total = sum(weights)
    rows = []
    for name, part, units, weight in zip(
        mechanism.names, mechanism.parts, mechanism.probabilities, weights, strict=True
    ):
        variance, proposed = worst_variance(part) / respondents, float(weight / total)
        rows.append(
            AttributePlan(
                attribute=name,
                mechanism=part.id,
                probability=units / WORD,
                proposed=proposed,
                error=math.sqrt(variance * WORD / units),
                proposed_error=math.sqrt(variance / proposed),
            )
        )
    return AttributesPlan(collection=collection.name, respondents=respondents, attributes=rows)


def expected_respondents(collection: CollectionConfig, attribute: str, respondents: int) -> int:
    """Return how many respondents report about an attribute on average, at least 1."""
    mechanism = collection.spec.mechanism
    assert isinstance(mechanism, Sampled)
    units = mechanism.probabilities[mechanism.names.index(attribute)]
    return max(1, round(respondents * units / WORD))
