"""The convex problem of the scales: minimise `sum_j b_j / u_j^2` under `C u <= e` ([ML] III-A).

Solved by the barrier method: Newton's method on `t sum_j b_j/u_j^2 - sum_p log(e_p - (C u)_p)` for
growing t. The slacks give prices `y_p = 1/(t (e_p - (C u)_p))` of the constraints, and any prices
prove a bound: no feasible u has an objective below `sum_j 3 b_j^(1/3) (c_j/2)^(2/3) - y.e` with
`c = C^T y`, the least of `sum b/u^2 + y.(C u - e)` over all u. A solution therefore comes with a
proof of its distance from the optimum, which scipy's general solvers do not give. Matrices are
dense, since P times m is small.
"""

from dataclasses import dataclass

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats

_GROWTH = 20.0
_STEPS = 400
_CENTRED = 1e-6
_SHRINKS = 60
_TOLERANCE = 1e-6


class ConvergenceError(RuntimeError):
    """A solver stopped too far from the optimum; the message says why."""


@dataclass(frozen=True)
class ScaleSolution:
    """`rates` u, float64 `(m,)`, strictly within the constraints; `objective` is `sum b/u^2`.

    No feasible u has an objective below `objective - gap`.
    """

    rates: Floats
    objective: float
    gap: float
    steps: int


def solve_rates(
    weights: Floats,
    constraints: Floats,
    budgets: Floats,
    start: Floats,
    *,
    steps: int = _STEPS,
) -> ScaleSolution:
    """Return the rates of least `sum_j b_j / u_j^2`, up to a relative gap of 1e-6.

    `weights` is b, `(m,)`, > 0; `constraints` C, `(P, m)`, >= 0, without a column of zeros;
    `budgets` e, `(P,)`, > 0; `start` any u > 0 with `C u < e`.

    Raises:
        ConvergenceError: if this takes more than `steps` Newton steps, or one fails.
    """
    rates = start.astype(np.float64)
    sharpness = len(budgets) / _objective(weights, rates)
    taken = 0
    while True:
        while taken < steps:
            taken += 1
            rates, decrement = _newton(weights, constraints, budgets, rates, sharpness)
            if decrement < _CENTRED:
                break
        else:
            raise ConvergenceError(
                f"scales: expected a relative gap of {_TOLERANCE:g} within {steps} Newton steps, "
                f"got {_gap(weights, constraints, budgets, rates, sharpness):.3g}"
            )
        objective = _objective(weights, rates)
        gap = objective * _gap(weights, constraints, budgets, rates, sharpness)
        if gap <= _TOLERANCE * objective:
            return ScaleSolution(rates, objective, gap, taken)
        sharpness *= _GROWTH


def _newton(
    weights: Floats, constraints: Floats, budgets: Floats, rates: Floats, sharpness: float
) -> tuple[Floats, float]:
    """Return the rates after a damped Newton step, and half the squared decrement before it."""
    slack = budgets - constraints @ rates
    gradient = -2.0 * sharpness * weights / rates**3 + constraints.T @ (1.0 / slack)
    scaled = constraints / slack[:, None]
    curvature = scaled.T @ scaled
    curvature[np.diag_indices_from(curvature)] += 6.0 * sharpness * weights / rates**4
    try:
        direction = -np.linalg.solve(curvature, gradient)
    except np.linalg.LinAlgError as error:
        raise ConvergenceError("scales: expected a Newton step, got a singular system") from error
    slope = float(gradient @ direction)
    here, length = _barrier(weights, constraints, budgets, rates, sharpness), 1.0
    for _ in range(_SHRINKS):
        there = rates + length * direction
        after = _barrier(weights, constraints, budgets, there, sharpness)
        if after <= here + 0.25 * length * slope:
            return there, -slope / 2.0
        length /= 2.0
    raise ConvergenceError(f"scales: expected a step that improves, got none in {_SHRINKS}")


def _gap(
    weights: Floats, constraints: Floats, budgets: Floats, rates: Floats, sharpness: float
) -> float:
    """Return the relative distance of the objective from the bound that the prices prove."""
    prices = 1.0 / (sharpness * (budgets - constraints @ rates))
    costs = constraints.T @ prices
    bound = (3.0 * np.cbrt(weights) * np.cbrt(costs / 2.0) ** 2).sum() - prices @ budgets
    return 1.0 - float(bound) / _objective(weights, rates)


def _barrier(
    weights: Floats, constraints: Floats, budgets: Floats, rates: Floats, sharpness: float
) -> float:
    slack = budgets - constraints @ rates
    if rates.min() <= 0.0 or slack.min() <= 0.0:
        return np.inf
    return sharpness * _objective(weights, rates) - float(np.log(slack).sum())


def _objective(weights: Floats, rates: Floats) -> float:
    return float((weights / rates**2).sum())
