"""The best channel for a policy, to which mechanisms are compared."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldpstream.estimators.design.cone import DesignError
from ldpstream.estimators.design.mmse import best_mmse
from ldpstream.estimators.design.optimise import (
    Design,
    Status,
    Workload,
    least_trace,
    optimise,
    sets,
)
from ldpstream.estimators.planning.choices import SEARCH_SECONDS
from ldpstream.estimators.planning.compare import Candidate
from ldpstream.estimators.planning.workload import PlannedWorkload
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.policies.lip import LipPolicy
from ldpstream.mechanisms.policies.policy import Policy

_ROUNDING = 1e-7
"""Part of the trace by which rounding may place a bound above a channel that attains it."""
_MOST_BITS = 9
"""Longest reports of candidates from whose columns a search begins."""
_MOST_BOUNDED = 256
"""Most values for which a bound is computed without a search, in about a second."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best channel found; variances are for one report, averaged over the objective's queries.

    `variance` is that of the best candidate or, if less, of the design that was searched, with the
    best unbiased linear decoder at the design shares. `design` is None without a search. `least` is
    a lower bound for all channels of the policy, None if none is known.
    """

    design: Design | None
    status: Status
    variance: float
    least: float | None

    def error(self, n: int) -> float:
        """Return the root mean square of the objective's standard errors with n reports."""
        return math.sqrt(self.variance / n)

    def bound(self, n: int) -> float | None:
        """Return a lower bound on the error of any channel with n reports."""
        return None if self.least is None else math.sqrt(self.least / n)


def find_optimum(
    policy: Policy,
    workload: PlannedWorkload,
    candidates: Sequence[Candidate] = (),
    *,
    seconds: float = SEARCH_SECONDS,
) -> Optimum:
    """Search for the policy's best channel for the objective's queries and the design shares.

    Every query is decoded by itself without bias, so that no mechanism of the policy has less
    variance than the bound if the design shares are true. `candidates` satisfy the policy; the
    search begins with their columns, if these are few.

    Raises:
        DesignError: if the design shares hold a 0, the policy is that of `lip`, whose channels are
            already optimal, or the policy does not distinguish all values.
    """
    gram = _gram(policy, workload)
    if workload.objective == "mmse":
        return _find_mmse(policy, gram, workload, candidates)
    columns = [
        _columns(candidate)
        for candidate in candidates
        if candidate.mechanism.report_bits <= _MOST_BITS
    ]
    known = np.concatenate([np.zeros((0, policy.size)), *columns])
    design = optimise(policy, gram, workload.shares, seconds=seconds, columns=known)
    variance = design.population if workload.estimand == "population" else design.respondents
    bound = None if design.gap is None else variance - design.gap
    best = min([variance / gram.queries, *(candidate.variance for candidate in candidates)])
    least = None if bound is None else max(0.0, bound / gram.queries)
    _check_bound(least, candidates, _offset(gram, workload))
    return Optimum(design, design.status, max(0.0, best), least)


def find_bound(
    policy: Policy, workload: PlannedWorkload, candidates: Sequence[Candidate]
) -> Optimum | None:
    """Return the best candidate with a proved bound for all channels, without a search.

    None if that is not possible: for more than 256 values, if many values differ in their shares,
    budgets or queries, or where `find_optimum` finds none.
    """
    if policy.size > _MOST_BOUNDED or workload.objective == "mmse":
        return None
    try:
        gram = _gram(policy, workload)
        trace = least_trace(policy, gram, workload.shares)
    except DesignError:
        return None
    if trace is None:
        return None
    offset = _offset(gram, workload)
    least = max(0.0, trace / gram.queries - offset)
    _check_bound(least, candidates, offset)
    return Optimum(None, "proved", min(candidate.variance for candidate in candidates), least)


def _find_mmse(
    policy: Policy, gram: Workload, workload: PlannedWorkload, candidates: Sequence[Candidate]
) -> Optimum:
    """Return the channel of least mean squared error: proved by a linear program."""
    design, error = best_mmse(policy, gram, workload.shares)
    least = max(0.0, error / gram.queries)
    _check_bound(least, candidates, _offset(gram, workload))
    best = min([least, *(candidate.variance for candidate in candidates)])
    return Optimum(design, design.status, best, least)


def _gram(policy: Policy, workload: PlannedWorkload) -> Workload:
    """Return the objective's queries, or say why no channel is best for them."""
    if isinstance(policy, LipPolicy):
        raise DesignError("no search: the channels of lip are the best of their levels already")
    queries = workload.sorting_queries
    members = [*queries.sets, *queries.prefixes]
    return sets(policy.size, members, name=workload.objective)


def _offset(gram: Workload, workload: PlannedWorkload) -> float:
    """Return `tr(G I^-1)` less the total variance, for one query."""
    p = workload.shares
    of_values = np.diag(gram.gram) if workload.estimand == "respondents" else gram.gram @ p
    return float(p @ of_values) / gram.queries


def _columns(candidate: Candidate) -> Floats:
    """Return the columns of a candidate's channel, `(outputs, k)`."""
    channel = candidate.mechanism.channel()
    columns = np.zeros((channel.outputs, channel.size))
    for value, row in enumerate(channel.rows):
        columns[list(row), value] = [float(probability) for probability in row.values()]
    return columns[columns.any(axis=1)]


def _check_bound(least: float | None, candidates: Sequence[Candidate], offset: float) -> None:
    """Check that no candidate is better than a bound for all channels: one of both were wrong."""
    for candidate in candidates:
        if least is not None and candidate.variance < least - _ROUNDING * (least + offset):
            raise AssertionError(
                f"the bound {least:.9g} for all channels is above the variance "
                f"{candidate.variance:.9g} of {candidate.mechanism.id} {candidate.variant}".rstrip()
            )
