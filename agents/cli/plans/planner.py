"""Make a plan of a collection: compare mechanisms, search for the best channel, say which wins."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
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
from ldpstream.estimators.design.optimise import Design
from ldpstream.estimators.planning.atoms import best_on_atoms
from ldpstream.estimators.planning.choices import SEARCH_SECONDS, SEARCHED_VALUES
from ldpstream.estimators.planning.compare import Candidate, Comparison, RefusedMechanism, compare
from ldpstream.estimators.planning.optimum import Optimum, find_bound, find_optimum
from ldpstream.estimators.planning.predictions import prefix_bound, sampling_variances
from ldpstream.estimators.planning.progress import Progress
from ldpstream.estimators.planning.workload import QuerySets
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.channels.information import mutual_information
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.registry.attributes import default_weights, worst_variance
from ldpstream.mechanisms.registry.proposals import Proposal

UNKNOWN_WORDS: Final = "{}: expected known values, got words: each round asks about other ones"

_ONE_PERCENT: Final = 0.01
_NEARLY: Final = 1.1
"""Errors up to this many times the best one are nearly as good."""
_LARGEST_EXACT: Final = 1 << 53
_MOST_INFORMED: Final = 1 << 18
"""Most entries of a channel whose mutual information is computed."""


class NothingComparedError(ValueError):
    """The time was too short to compare even one mechanism."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The document of a plan, and the best channel; `design` is None without a search."""

    document: PlanDocument
    design: Design | None


@np.errstate(under="ignore")  # As in documents: a program may have made numpy raise.
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
    design = None if optimum is None else optimum.design
    return Plan(_document(request, comparison, optimum), design)


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
    n, best = request.respondents, comparison.candidates[0]
    mechanisms = [_mechanism(request, one, best, optimum) for one in comparison.candidates]
    unreached = [ProposalPart(**_names(one)) for one in comparison.unreached]
    label, order = request.spec.domain.label, request.policy.reports_per_error()
    atoms, found = _atoms(request, best), None
    if optimum is not None:
        found = OptimumPart(
            error=optimum.error(n),
            bound=optimum.bound(n),
            status=optimum.status,
            reports=None if optimum.design is None else len(optimum.design.weights),
        )
    return PlanDocument(
        collection=request.collection.name,
        fingerprint=request.collection.spec.fingerprint.hex(),
        respondents=n,
        estimand=request.workload.estimand,
        confidence=request.collection.options.confidence,
        wanted_width=request.width,
        policy=request.policy.describe(),
        prior=request.shares[1],
        workload=request.workload.objective,
        workload_text=request.workload_text,
        verdict=" ".join(_verdict(request, mechanisms, unreached, atoms, found)),
        bins=recommend_bins(request.spec, n),
        atoms=atoms,
        optimum=found,
        order=None if order is None else math.sqrt(order / n),
        mechanisms=mechanisms,
        refused=[
            RefusedPart(
                **_names(one),
                value=label(one.pair[0]),
                other=label(one.pair[1]),
                allowed=one.allowed,
                taken=one.taken,
            )
            for one in comparison.refused
        ],
        unsuited=[UnsuitedPart(mechanism=one.id, needs=one.needs) for one in comparison.unsuited],
        unreached=unreached,
        limit_seconds=request.limit_seconds if unreached else None,
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
    label, shares = request.domain.label, workload.value_shares
    positions, top = workload.quantile_positions.tolist(), workload.top_values.tolist()
    of_ranges = _errors(request, found.ranges, workload.range_queries)
    of_quantiles = _errors(request, found.quantiles, workload.quantile_queries)
    of_top = _errors(request, found.top, workload.top_queries)
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
            for configured, errors in zip(options.ranges, of_ranges, strict=True)
        ],
        quantiles=[
            QuantileErrors(p=p, value=label(position), bound=bound, **errors)
            for p, position, errors in zip(workload.quantiles, positions, of_quantiles, strict=True)
        ],
        top=[
            ValueErrors(value=label(value), share=float(shares[value]), **errors)
            for value, errors in zip(top, of_top, strict=True)
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


def _information(request: PlanRequest, one: Candidate) -> float | None:
    table = one.mechanism.table
    if table is None or table.size > _MOST_INFORMED:
        return None
    return mutual_information(table, request.workload.shares) / math.log(2)


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
    workload = request.workload
    errors = _errors(request, one.predictions.values, workload.values)
    return float(np.mean([of[workload.estimand] for of in errors])) * workload.values.total / 2.0


def _verdict(
    request: PlanRequest,
    mechanisms: Sequence[MechanismPlan],
    unreached: Sequence[ProposalPart],
    atoms: AtomsPart | None,
    optimum: OptimumPart | None,
) -> Iterator[str]:
    """Say which mechanism is best, by how much, and which costs less for nearly the same error.

    Also names the mechanisms that were not compared within the limit.
    """
    best, *others = mechanisms
    n = request.respondents
    lead = (
        f"{best.title} is best for {request.workload_text}: "
        f"predicted standard error {best.error:.3g} at {n:,} respondents"
    )
    if others:
        yield f"{lead}. The next, {others[0].title}, has {_times(others[0].ratio)}."
    else:
        yield f"{lead}; nothing else is {'compared' if unreached else 'proposed'}."
    for one in others[1:]:
        if one.configured:
            yield f"The configured one, {one.title}, has {_times(one.ratio)}."
    if (cheaper := cheaper_mechanism(mechanisms)) is not None:
        bits = f"{cheaper.cost.report_bits:,} instead of {best.cost.report_bits:,} bits per report"
        yield f"{cheaper.title} needs {bits}, for {_times(cheaper.ratio)}."
    if atoms is not None:
        yield (
            f'With workload = "published" {atoms.mechanism} reports about the {atoms.atoms:,} sets '
            f"of values that the published queries tell apart, and has "
            f"{_times(_ratio(atoms.error**2, best.error**2))}; nothing else is answered then."
        )
    if sentence := noisy_bins(request.spec, n):
        yield f"{sentence}."
    if unreached:
        names = "; ".join(one.title for one in unreached)
        yield f"Not compared within {request.limit_seconds:g} s, so maybe better: {names}."
    if optimum is not None:
        yield from _limits(best, optimum)


def cheaper_mechanism(mechanisms: Sequence[MechanismPlan]) -> MechanismPlan | None:
    """Return the next one with nearly the best error and at most half the bits in a report."""
    best, *others = mechanisms
    for one in others:
        near = one.ratio is not None and one.ratio <= _NEARLY
        if near and 2 * one.cost.report_bits <= best.cost.report_bits:
            return one
    return None


def _limits(best: MechanismPlan, optimum: OptimumPart) -> Iterator[str]:
    """Compare the best mechanism with the bound for all channels, and with the best one found."""
    about = "for this policy, workload and design shares"
    bound, error = optimum.bound, f"{optimum.error:.3g}"
    if bound is not None:
        relaxed = ", from a relaxation" * (optimum.status == "relaxed")
        lead = f"No channel {about} has an error below the bound {bound:.3g}{relaxed}"
        yield f"{lead}; {best.title} has {_times(_ratio(best.error**2, bound**2))}."
        if optimum.reports is None or error == f"{bound:.3g}":
            return
        about = "for them"
    times = _times(best.of_optimum)
    yield f"Best found of any kind {about}: error {error}; {best.title} has {times}."


def _times(ratio: float | None) -> str:
    """Return an error compared with the least one, such as `1.27 times that error`."""
    if ratio is None:
        return "an error at all"
    text = ratio_text(ratio)
    return "the same error" if text == "1" else f"{text} times that error"


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
