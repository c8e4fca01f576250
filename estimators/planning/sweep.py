"""Predicted errors over a range of budgets, with every mechanism proposed for each budget."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ldpstream.estimators.planning.compare import Candidate
from ldpstream.estimators.planning.predictions import mean_variance, query_variances
from ldpstream.estimators.planning.progress import Progress
from ldpstream.estimators.planning.workload import PlannedWorkload
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.implication import implies
from ldpstream.mechanisms.policies.policy import Policy
from ldpstream.mechanisms.registry.proposals import Proposal, propose

SWEPT_QUERIES = 128
"""Most queries of the objective, thinned because a sweep predicts them at every budget."""

Key = tuple[str, str]
"""A mechanism id and the proposal's variant, which identify a mechanism across budgets."""


def sweep(
    policy: Policy,
    domain: Domain,
    workload: PlannedWorkload,
    candidates: Sequence[Candidate],
    *,
    factors: Sequence[float],
    say: Callable[[str], object] = str,
) -> dict[Key, Floats]:
    """Predict the candidates that are proposed for the policy with its budgets times each factor.

    Returns variances for one report by factor, float64 `(factors,)`, NaN if nothing is proposed;
    none at all if the policy's budgets are not free parameters. The objective's queries are
    thinned. Progress is reported to `say`.
    """
    progress = Progress(say)
    thinned = workload.sorting_queries.thin(SWEPT_QUERIES)
    keys = {(c.mechanism.id, c.variant) for c in candidates}
    variances = {key: np.full(len(factors), np.nan) for key in sorted(keys)}
    for place, factor in enumerate(factors):
        try:
            changed = policy.scaled(factor)
        except SpecError:
            return {}
        for proposal in _satisfying(changed, domain):
            key = proposal.mechanism.id, proposal.variant
            if key in variances:
                progress.begin(f"predicting {' '.join(key).rstrip()}, budgets times {factor:.3g}")
                each = query_variances(proposal.mechanism, thinned, workload.shares, progress)
                mean = mean_variance(each, thinned, workload)
                variances[key][place] = mean
    return {key: row for key, row in variances.items() if not np.isnan(row).all()}


def _satisfying(policy: Policy, domain: Domain) -> Iterator[Proposal]:
    for proposal in propose(policy, domain):
        if isinstance(proposal, Proposal) and _satisfies(proposal.mechanism, policy):
            yield proposal


def _satisfies(mechanism: Mechanism, policy: Policy) -> bool:
    try:
        return implies(mechanism.policy, policy) is None
    except SpecError:
        return False
