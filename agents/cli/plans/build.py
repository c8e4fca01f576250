"""Build the plan document from a comparison."""

import math
from statistics import NormalDist

import numpy as np

from ldpstream.agents.cli.plans.ask import PlanRequest
from ldpstream.agents.cli.plans.model import (
    CostPart,
    Errors,
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
from ldpstream.agents.cli.plans.verdict import verdict
from ldpstream.agents.document.entries import Number
from ldpstream.estimators.planning.compare import Candidate, Comparison, Cost, RefusedMechanism
from ldpstream.estimators.planning.optimum import Optimum
from ldpstream.estimators.planning.predictions import prefix_bound, sampling_variances
from ldpstream.estimators.planning.workload import QuerySets
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.wire.spec import CollectionSpec

_ONE_PERCENT = 0.01
_LARGEST_EXACT = 1 << 53


def build_plan(
    asked: PlanRequest,
    comparison: Comparison,
    optimum: Optimum | None,
    width: float | None,
    limit_seconds: float,
) -> PlanDocument:
    """Return the plan document of a comparison with at least one candidate.

    `width` asks how many respondents bounds of this width need; `limit_seconds` was the time limit.
    """
    best = comparison.candidates[0]
    return PlanDocument(
        collection=asked.collection.name,
        fingerprint=asked.collection.spec.fingerprint.hex(),
        respondents=asked.respondents,
        estimand=asked.estimand,
        confidence=asked.collection.options.confidence,
        wanted_width=width,
        policy=asked.spec.mechanism.policy.describe(),
        prior=asked.prior,
        workload=asked.objective,
        workload_text=asked.workload_text,
        verdict=verdict(asked, comparison, optimum, limit_seconds),
        optimum=None if optimum is None else _optimum(asked, optimum),
        mechanisms=[_mechanism(asked, one, best, optimum, width) for one in comparison.candidates],
        refused=[_refused(asked, one) for one in comparison.refused],
        unsuited=[UnsuitedPart(mechanism=u.id, needs=u.needs) for u in comparison.unsuited],
        unreached=[
            ProposalPart(
                mechanism=one.mechanism.id, variant=one.variant, epsilon=epsilon_of(one.mechanism)
            )
            for one in comparison.unreached
        ],
        limit_seconds=limit_seconds if comparison.unreached else None,
    )


def epsilon_of(mechanism: Mechanism) -> Json:
    """Return the value of a mechanism's key `epsilon`; None if it has none."""
    return mechanism.parameters().get("epsilon")


def _mechanism(
    asked: PlanRequest,
    one: Candidate,
    best: Candidate,
    optimum: Optimum | None,
    width: float | None,
) -> MechanismPlan:
    n, workload, found = asked.respondents, asked.workload, one.predictions
    both = 2.0 * NormalDist().inv_cdf(0.5 + asked.collection.options.confidence / 2.0)
    return MechanismPlan(
        mechanism=one.mechanism.id,
        variant=one.variant,
        epsilon=epsilon_of(one.mechanism),
        configured=one.configured,
        error=one.error(n),
        width=both * one.error(n),
        ratio=_ratio(one.variance, best.variance),
        of_optimum=None if optimum is None else _ratio(one.variance, optimum.variance),
        respondents_for_1_percent=_needed(one, _ONE_PERCENT),
        respondents_for_width=None if width is None else _needed(one, width / both),
        total_variation=_total_variation(asked, one),
        ranges=[
            RangeErrors(name=configured.name, **errors.model_dump())
            for configured, errors in zip(
                asked.collection.options.ranges,
                _errors(found.ranges, workload.range_queries, asked),
                strict=True,
            )
        ],
        quantiles=_quantiles(asked, one),
        top=[
            ValueErrors(
                value=asked.domain.label(value),
                share=float(workload.value_shares[value]),
                **errors.model_dump(),
            )
            for value, errors in zip(
                workload.top_values.tolist(),
                _errors(found.top, workload.top_queries, asked),
                strict=True,
            )
        ],
        values=_summary(found.values, workload.values, n),
        all_ranges=_summary(found.boxes, workload.boxes, n) if found.boxes.size else None,
        cost=_cost(one.cost, asked.collection.spec),
    )


def _needed(one: Candidate, error: float) -> int | None:
    needed = one.respondents(error)
    return needed if needed <= _LARGEST_EXACT else None


def _ratio(variance: float, least: float) -> Number:
    if variance == least:
        return 1.0
    return math.sqrt(variance / least) if least > 0.0 else None


def _optimum(asked: PlanRequest, optimum: Optimum) -> OptimumPart:
    return OptimumPart(
        error=optimum.error(asked.respondents),
        bound=optimum.bound(asked.respondents),
        status=optimum.design.status,
        reports=len(optimum.design.weights),
    )


def _errors(variances: Floats, queries: QuerySets, asked: PlanRequest) -> list[Errors]:
    sampled = variances + sampling_variances(queries, asked.workload.shares)
    pairs = np.sqrt(np.stack([variances, sampled], axis=1) / asked.respondents)
    return [Errors(respondents=r, population=p) for r, p in pairs.tolist()]


def _quantiles(asked: PlanRequest, one: Candidate) -> list[QuantileErrors]:
    workload, spread = asked.workload, one.predictions.spread
    bound = None
    if spread is not None:
        confidence = asked.collection.options.confidence
        bound = prefix_bound(spread, workload.size - 1, asked.respondents, confidence)
    errors = _errors(one.predictions.quantiles, workload.quantile_queries, asked)
    positions = workload.quantile_positions.tolist()
    return [
        QuantileErrors(p=p, value=asked.domain.label(position), bound=bound, **found.model_dump())
        for p, position, found in zip(workload.quantiles, positions, errors, strict=True)
    ]


def _summary(variances: Floats, queries: QuerySets, n: int) -> Summary:
    return Summary(
        mean=math.sqrt(float(variances.mean()) / n),
        worst=math.sqrt(float(variances.max()) / n),
        predicted=len(queries.sets),
        total=queries.total,
    )


def _total_variation(asked: PlanRequest, one: Candidate) -> float:
    """Return half the sum of all values' standard errors, an upper bound by Jensen's inequality.

    In a large domain the mean over a sample of values stands for the others.
    """
    queries, variances = asked.workload.values, one.predictions.values
    if asked.estimand == "population":
        variances = variances + sampling_variances(queries, asked.workload.shares)
    return float(np.sqrt(variances / asked.respondents).mean()) * queries.total / 2.0


def _cost(cost: Cost, spec: CollectionSpec) -> CostPart:
    # With `one_report`, a token follows each report, whatever the mechanism.
    token_bytes = spec.report_bytes - spec.mechanism.report_bytes
    return CostPart(
        report_bits=cost.report_bits,
        report_bytes=cost.report_bytes,
        message_bytes=cost.message_bytes + token_bytes,
        statistic=cost.statistic,
        state_bytes=cost.state_bytes,
        decode_ms=1e3 * cost.decode_seconds,
    )


def _refused(asked: PlanRequest, one: RefusedMechanism) -> RefusedPart:
    value, other = one.pair
    given = asked.spec.domain
    return RefusedPart(
        mechanism=one.mechanism.id,
        variant=one.variant,
        epsilon=epsilon_of(one.mechanism),
        value=given.label(value),
        other=given.label(other),
        allowed=one.allowed,
        taken=one.taken,
    )
