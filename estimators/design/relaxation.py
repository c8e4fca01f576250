"""A bound for all channels under one budget per row, where the extreme rays are too many to list.

`optimise` bounds every channel by a number c that no mean of `v^T M v` over a channel's columns
exceeds. Extreme rays have entries 1 and `E_x`, so that `(v[x] - 1)(v[x] - E_x) = 0`. If delta and
lambda, `(k,)` each, make

    B = [ diag(delta) - M + (lambda q^T + q lambda^T)/2    -(1 + E) delta/2 ]
        [ the same, transposed                                   E.delta    ]

positive definite, then `0 <= (v, 1)^T B (v, 1) = (lambda.v)(q.v) - v^T M v`. At `q.v = 1`, q the
shares, this is `v^T M v <= lambda.v`, whose mean over a channel is `lambda.1`. The unit column of a
value that no budget protects needs `M[b, b] <= lambda_b q_b` as well. The least `lambda.1` is a
semidefinite program in 2k variables, here solved by Newton's method with a barrier.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ldpstream.mechanisms.base.arrays import Floats, Integers

_ACCURACY = 1e-8
_GROWTH = 10.0
_CENTRED = 0.1
_MOST_STEPS = 300
_MOST_HALVINGS = 40


def largest_mean(form: Floats, prior: Floats, high: Floats, units: Integers) -> float:
    """Return a number that the mean of `v^T M v` exceeds for no channel; `inf` if none is found.

    `high` are the levels `E_x`, 1 for values without a choice, of which `units` have unit columns.
    """
    program = _Program.of(form, prior, high, units)
    point = program.start()
    if point is None:
        return np.inf
    cost = np.repeat([0.0, 1.0], len(prior))
    degree = 1 + len(prior) + len(units)
    scale = degree / (cost @ point)
    value, gradient, hessian = program.barrier(point)
    for _ in range(_MOST_STEPS):
        slope = scale * cost + gradient
        step = -np.linalg.lstsq(hessian, slope, rcond=None)[0]
        decrease = -float(slope @ step)
        if decrease < _CENTRED:
            if degree < _ACCURACY * scale * (cost @ point):
                break
            scale *= _GROWTH
            continue
        for halvings in range(_MOST_HALVINGS):
            ahead = point + 0.5**halvings * step
            reached, gradient_ahead, hessian_ahead = program.barrier(ahead)
            if reached + scale * (cost @ (ahead - point)) < value:
                point, value = ahead, reached
                gradient, hessian = gradient_ahead, hessian_ahead
                break
        else:
            # Rounding hides the way on. Every point on it is a bound.
            break
    return float(cost @ point)


@dataclass(frozen=True, eq=False)
class _Program:
    """`B = constant + sym(first diag(point) second^T)` for a point `(delta, lambda)`."""

    constant: Floats
    first: Floats
    second: Floats
    prior: Floats
    high: Floats
    units: Integers

    @classmethod
    def of(cls, form: Floats, prior: Floats, high: Floats, units: Integers) -> "_Program":
        size = len(prior)
        unit, none = np.eye(size), np.zeros((1, size))
        constant = np.zeros((size + 1, size + 1))
        constant[:size, :size] = -form
        first = np.block([[unit, unit], [none - 1.0, none]])
        second = np.block([[unit, np.tile(prior[:, None], size)], [-high[None], none]])
        return cls(constant, first, second, prior, high, units)

    def start(self) -> Floats | None:
        """Return a point inside: delta in proportion to `2 q/(1 + E)` and lambda to q, both large.

        Without M, B is positive definite there if lambda is large enough.
        """
        delta = 2.0 * self.prior / (1.0 + self.high)
        size = 1.0
        for _ in range(_MOST_HALVINGS):
            size *= 4.0
            larger = size
            for _ in range(_MOST_HALVINGS):
                larger *= 4.0
                point = np.concatenate([size * delta, larger * self.prior])
                if np.isfinite(self.barrier(point)[0]):
                    return point
        return None

    def barrier(self, point: Floats) -> tuple[float, Floats, Floats]:
        """Return `-log det B`, less the logarithms of the units' slacks, and its derivatives."""
        size = len(self.prior)
        half = (self.first * point) @ self.second.T
        matrix = self.constant + (half + half.T) / 2.0
        of_units = self.prior[self.units]
        slack = point[size + self.units] * of_units + np.diag(self.constant)[self.units]
        nothing = np.empty(0)
        if slack.min(initial=1.0) <= 0.0:
            return np.inf, nothing, nothing
        try:
            factor = cho_factor(matrix, lower=True)
        except LinAlgError:
            return np.inf, nothing, nothing
        solved = cho_solve(factor, np.hstack([self.first, self.second]))
        solved_first, solved_second = solved[:, : 2 * size], solved[:, 2 * size :]
        cross = self.first.T @ solved_second
        gradient = -np.diag(cross).copy()
        hessian = (
            (self.first.T @ solved_first) * (self.second.T @ solved_second) + cross * cross.T
        ) / 2.0
        places = size + self.units
        gradient[places] -= of_units / slack
        hessian[places, places] += (of_units / slack) ** 2
        value = -2.0 * np.log(np.diag(factor[0])).sum() - np.log(slack).sum()
        return float(value), gradient, hessian
