"""The best channel for a policy, to which mechanisms are compared."""

import math
from dataclasses import dataclass

import numpy as np

from ldpstream.estimators.design.cone import DesignError
from ldpstream.estimators.design.optimise import Design, optimise, sets
from ldpstream.estimators.planning.choices import SEARCH_SECONDS
from ldpstream.estimators.planning.workload import PlannedWorkload
from ldpstream.mechanisms.policies.lip import LipPolicy
from ldpstream.mechanisms.policies.policy import Policy


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best channel found; variances are for one report, averaged over the objective's queries.

    `variance` is that of the channel with the best unbiased linear decoder at the design shares.
    `least` is a lower bound for all channels of the policy, as far as the design's status says.
    """

    design: Design
    variance: float
    least: float

    def error(self, n: int) -> float:
        """Return the root mean square of the objective's standard errors with n reports."""
        return math.sqrt(self.variance / n)

    def bound(self, n: int) -> float:
        """Return a lower bound on the error of any channel with n reports."""
        return math.sqrt(self.least / n)


def find_optimum(
    policy: Policy, workload: PlannedWorkload, *, seconds: float = SEARCH_SECONDS
) -> Optimum:
    """Search for the policy's best channel for the objective's queries and the design shares.

    Every query is decoded by itself without bias, so that no mechanism of the policy has less
    variance if the design shares are true.

    Raises:
        DesignError: if the design shares hold a 0, the policy is that of `lip`, whose channels are
            already optimal, or the queries or the policy do not distinguish all values.
    """
    if isinstance(policy, LipPolicy):
        raise DesignError("no search: the channels of lip are the best of their levels already")
    queries = workload.sorting_queries
    members = [*queries.sets, *queries.prefixes]
    gram = sets(policy.size, members, name=workload.objective)
    if np.linalg.matrix_rank(gram.gram, hermitian=True) < policy.size:
        # The best channel for these alone would distinguish nothing else: not a fair comparison.
        raise DesignError(
            "no search: the published queries do not tell all values apart; "
            "choose --workload values or ranges"
        )
    design = optimise(policy, gram, workload.shares, seconds=seconds)
    total = design.population if workload.estimand == "population" else design.respondents
    variance = max(0.0, total / gram.queries)
    return Optimum(design, variance, max(0.0, variance - design.gap / gram.queries))
