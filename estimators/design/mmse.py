"""The channel of least Bayesian error under a prior: a linear program over extreme columns.

With the prior p, a report whose column is v, `p.v = 1`, has the posterior `p_x v[x]`. Over reports
with the weights theta, `sum_y theta_y v_y = 1`, the mean squared error of the queries W is

    sum_x p_x |W[:, x]|^2 - sum_y theta_y |W (p * v_y)|^2

which is linear in theta, and convex in v: extreme columns suffice. Where all can be listed, the
best channel of the policy is a linear program, not a search. Its columns may fail to tell all
values apart, so that shares have no unbiased estimate.
"""

import numpy as np
from scipy.optimize import linprog

from ldpstream.estimators.design.cone import DesignError, scaled
from ldpstream.estimators.design.optimise import Design, Workload, cones_of
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.policies.policy import Policy

_MOST_VALUES = 12
_MOST_RAYS = 1 << 17
_NEGLIGIBLE = 1e-12
_INDEPENDENT = 1e-9


def best_mmse(policy: Policy, workload: Workload, prior: Floats) -> tuple[Design, float]:
    """Return the best channel under a prior above 0, and the sum of its queries' squared errors.

    The errors are those of one respondent. The design's variances are those of the best unbiased
    decoder, infinite where there is none.

    Raises:
        DesignError: for more than 12 values, or a policy with too many extreme columns.
    """
    size = policy.size
    if size > _MOST_VALUES:
        raise DesignError(f"workload mmse: expected at most {_MOST_VALUES} values, got {size}")
    every = []
    for values, cone in cones_of(policy):
        rays = cone.rays(_MOST_RAYS)
        if rays is None:
            raise DesignError("workload mmse: expected a policy with fewer extreme columns")
        for chunk in rays:
            wide = np.zeros((len(chunk), size))
            wide[:, values] = chunk
            every.append(scaled(wide, prior))
    columns = np.concatenate(every)
    joint = columns * prior
    worth = np.einsum("ij,ij->i", joint @ workload.gram, joint)
    solution = linprog(-worth, A_eq=columns.T, b_eq=np.ones(size), method="highs")
    if solution.x is None:
        raise DesignError("no convergence: the linear program of the weights")
    used = solution.x > _NEGLIGIBLE
    columns, weights = columns[used], solution.x[used]
    square = float(prior @ np.diag(workload.gram))
    information = (columns.T * weights) @ columns
    trace = np.inf
    if is_estimable(columns):
        trace = float(np.trace(np.linalg.solve(information, workload.gram)))
    design = Design(
        policy=policy,
        workload=workload,
        prior=prior,
        columns=columns,
        weights=weights,
        population=trace - float(prior @ workload.gram @ prior),
        respondents=trace - square,
        gap=None,
        status="proved",
        starts=0,
    )
    return design, square - float(worth[used] @ weights)


def is_estimable(columns: Floats) -> bool:
    """Return whether the columns tell all values apart, so that all shares have an estimate."""
    spectrum = np.linalg.svd(columns, compute_uv=False)
    return len(columns) >= columns.shape[1] and bool(spectrum[-1] > _INDEPENDENT * spectrum[0])
