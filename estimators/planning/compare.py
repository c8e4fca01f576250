"""Every mechanism that satisfies a policy, compared on a workload by its errors and its costs."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ldpstream.estimators.lip.known_prior import Bayes
from ldpstream.estimators.planning.cost import Cost
from ldpstream.estimators.planning.predictions import Predictions, mean_variance
from ldpstream.estimators.planning.progress import UNLIMITED, Progress, TimeUpError
from ldpstream.estimators.planning.workload import PlannedWorkload
from ldpstream.mechanisms.base.canonical import canonical_json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.implication import implies
from ldpstream.mechanisms.policies.policy import Policy
from ldpstream.mechanisms.registry.proposals import Proposal, Unsuited, propose

_DIGITS = 9
"""Errors that agree in this many digits are equal; the shorter report then comes first."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A mechanism that satisfies the policy, with the objective's `variance` for one report."""

    mechanism: Mechanism
    variant: str
    configured: bool
    predictions: Predictions
    cost: Cost
    variance: float

    def error(self, n: int) -> float:
        """Return the root mean square of the objective's standard errors with n reports."""
        return math.sqrt(self.variance / n)

    def respondents(self, error: float) -> int:
        """Return the number of respondents with which the objective has this standard error."""
        return max(1, math.ceil(self.variance / error**2))


@dataclass(frozen=True)
class RefusedMechanism:
    """A mechanism that does not satisfy the policy at a pair of values, "from" and "to".

    The policy allows `allowed` there and the mechanism realises `taken`, None being infinity.
    """

    mechanism: Mechanism
    variant: str
    pair: tuple[int, int]
    allowed: float | None
    taken: float | None


@dataclass(frozen=True, eq=False)
class Comparison:
    """Candidates, best first, and the mechanisms that were left out, by reason.

    `refused` do not satisfy the policy, `unsuited` cannot be proposed for it, and for `unreached`
    there was no time.
    """

    candidates: tuple[Candidate, ...]
    refused: tuple[RefusedMechanism, ...]
    unsuited: tuple[Unsuited, ...]
    unreached: tuple[Proposal, ...]


def compare(
    configured: Mechanism,
    domain: Domain,
    workload: PlannedWorkload,
    *,
    progress: Progress = UNLIMITED,
    policy: Policy | None = None,
) -> Comparison:
    """Compare the configured mechanism with all proposals for a policy, by default its own.

    Candidates are sorted by the mean variance of the objective's queries.
    `progress` is told which mechanism is predicted, and limits the time.
    """
    policy = (policy or configured.policy).by_entries()
    candidates, refused, unsuited, unreached = [], [], [], []
    for proposal in _proposals(configured, policy, domain):
        if isinstance(proposal, Unsuited):
            unsuited.append(proposal)
            continue
        mechanism = proposal.mechanism
        if mechanism.unanswered(None) is not None:
            unsuited.append(Unsuited(mechanism.id, "rows that answer every single value"))
            continue
        if workload.objective == "mmse" and mechanism.table is None:
            unsuited.append(Unsuited(mechanism.id, "a statistic that counts few enough reports"))
            continue
        try:
            progress.check()
            pair = None if mechanism is configured else implies(mechanism.policy, policy)
        except SpecError as error:
            unsuited.append(Unsuited(mechanism.id, error.expected))
            continue
        except TimeUpError:
            unreached.append(proposal)
            continue
        if pair is not None:
            entries = (policy.entry(*pair), mechanism.policy.entry(*pair))
            allowed, spent = (None if e is None else float(e) for e in entries)
            refused.append(RefusedMechanism(mechanism, proposal.variant, pair, allowed, spent))
            continue
        try:
            progress.begin(f"predicting {mechanism.id} {proposal.variant}".rstrip())
            predictions = Predictions.of(mechanism, workload, progress)
            variance = _objective(mechanism, predictions, workload)
        except TimeUpError:
            unreached.append(proposal)
            continue
        candidates.append(
            Candidate(
                mechanism=mechanism,
                variant=proposal.variant,
                configured=mechanism is configured,
                predictions=predictions,
                cost=Cost.of(mechanism),
                variance=variance,
            )
        )
    candidates.sort(key=_rank)
    return Comparison(tuple(candidates), tuple(refused), tuple(unsuited), tuple(unreached))


def _objective(mechanism: Mechanism, predictions: Predictions, workload: PlannedWorkload) -> float:
    """Return the mean variance of the objective's queries, or their mean squared error."""
    if workload.objective == "mmse":
        bayes = Bayes.of(mechanism, workload.shares)
        return float(bayes.errors(np.eye(mechanism.size)).mean())
    variances = predictions.objective(workload)
    return mean_variance(variances, workload.sorting_queries, workload)


def _proposals(
    configured: Mechanism, policy: Policy, domain: Domain
) -> Iterator[Proposal | Unsuited]:
    """Yield the configured mechanism, then all others that are proposed for the policy."""
    proposals = list(propose(policy, domain))
    configured_identity = identity(configured)
    variants = [
        p.variant
        for p in proposals
        if isinstance(p, Proposal) and identity(p.mechanism) == configured_identity
    ]
    yield Proposal(configured, variants[0] if variants else "")
    for proposal in proposals:
        if isinstance(proposal, Unsuited):
            if proposal.id != configured.id:
                yield proposal
        elif identity(proposal.mechanism) != configured_identity:
            yield proposal


def identity(mechanism: Mechanism) -> tuple[str, bytes]:
    """Return what identifies a channel: the mechanism's id and its realised parameters.

    The configured budget is left out, since the parameters include what realises it.
    """
    asked_for = ("epsilon", "p", "policy")
    realised = {k: v for k, v in mechanism.parameters().items() if k not in asked_for}
    return mechanism.id, canonical_json(realised)


def _rank(candidate: Candidate) -> tuple[float, float, int, str]:
    rounded = float(f"{candidate.variance:.{_DIGITS}g}")
    # If several answer the queries exactly, such as whole blocks, the other values decide.
    of_values = 0.0 if rounded else float(f"{candidate.predictions.values.mean():.{_DIGITS}g}")
    return rounded, of_values, candidate.cost.report_bits, candidate.mechanism.id
