"""The largest likelihood of shares that sum to 1, or that give a set of values a fixed share.

A primal-dual interior-point method in `u = A p` (see `line`). There `sum N log u` is separable and
`p = B u` is tridiagonal, so that Newton's matrix `diag(N/u^2) + B diag(s/p) B` (s are the
multipliers of `p >= 0`) is pentadiagonal, and a step takes O(k). Shares stay positive and keep
their sums: every iterate is feasible, and its gradient bounds all others (`Tangent`). The result is
proved however the solver got there; stopping early only leaves a wider gap.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy

from ldpstream.estimators.likelihood.line import Line
from ldpstream.mechanisms.base.arrays import Bools, Floats

CLOSE: Final = 0.02
"""Gap in the log-likelihood at which the solver stops."""
STEPS: Final = 60
_SHORTEN: Final = 0.995
"""Largest fraction of the way to the boundary that a step takes."""
_LEAST: Final = 1e-100


@dataclass(frozen=True)
class Tangent:
    """A bound on the log-likelihood of all shares that give a set of values the share psi.

    It is `start + psi inside + (1 - psi) outside` for any psi, and tightest near its own.
    """

    start: float
    inside: float
    outside: float

    def at(self, psi: float) -> float:
        """Return the bound for a share psi."""
        return self.start + psi * self.inside + (1.0 - psi) * self.outside


@dataclass(frozen=True)
class Fit:
    """Shares, float64 `(k,)`, their log-likelihood `value`, and a bound on that of any others.

    `tangent` is the bound for other shares of the set.
    """

    shares: Floats
    value: float
    bound: float
    tangent: Tangent

    @property
    def gap(self) -> float:
        """How much larger the maximum may be."""
        return self.bound - self.value


def maximise(
    line: Line,
    members: Bools | None = None,
    psi: float = 1.0,
    enough: Callable[[Fit], bool] | None = None,
) -> Fit:
    """Return the best shares found among those whose sum over `members` is psi, in (0, 1).

    Without `members`, among all shares. Stops once the gap is below `CLOSE` or `enough` says so.
    The fit combines the best shares and the best bound of all steps.
    """
    problem = _Problem.of(line, members, psi)
    point = problem.start()
    best: Fit | None = None
    for _ in range(STEPS):
        fit = problem.judge(point)
        if fit is None:
            break
        best = fit if best is None else _better(best, fit, psi)
        if best.gap <= CLOSE or (enough is not None and enough(best)):
            break
        moved = _step(problem, point)
        if moved is None:
            break
        point = moved
    assert best is not None, "uniform shares have a likelihood"
    return best


def _better(best: Fit, fit: Fit, psi: float) -> Fit:
    if fit.value > best.value:
        best = replace(best, shares=fit.shares, value=fit.value)
    if fit.tangent.at(psi) < best.bound:
        best = replace(best, bound=fit.bound, tangent=fit.tangent)
    return best


@dataclass(frozen=True)
class _Point:
    """Shares p, `u = A p`, and multipliers s of `p >= 0`, for counts that sum to 1."""

    p: Floats
    u: Floats
    s: Floats


@dataclass(frozen=True)
class _Problem:
    """A likelihood, and the sets whose shares are fixed: all values, or a set and its complement.

    `sets` are their indicators, float64 `(1 or 2, k)`, `sums` their shares, and `edges` B times the
    indicators, `(k, 1 or 2)`. `seen` are the shares of the reports.
    """

    line: Line
    members: Bools | None
    psi: float
    sets: Floats
    sums: Floats
    edges: Floats
    seen: Floats

    @classmethod
    def of(cls, line: Line, members: Bools | None, psi: float) -> "_Problem":
        if members is None:
            sets, sums = np.ones((1, line.size)), np.ones(1)
        else:
            sets = np.stack([members, ~members]).astype(np.float64)
            sums = np.array([psi, 1.0 - psi])
        edges = np.stack([line.unmix(row) for row in sets], axis=1)
        return cls(line, members, psi, sets, sums, edges, line.counts / line.n)

    def start(self) -> _Point:
        """Return uniform shares in each set, and dual feasible multipliers above 0."""
        p = (self.sums / self.sets.sum(axis=1)) @ self.sets
        u = self.line.mix(p)
        gradient = self.line.gradient(u) / self.line.n
        least = np.array([gradient[members > 0.0].max() for members in self.sets])
        return _Point(p, u, (1.05 * least + 0.05) @ self.sets - gradient)

    def judge(self, point: _Point) -> Fit | None:
        """Return what is proved at a point, or None if it is not finite."""
        value = self.line.value(point.u)
        gradient = self.line.gradient(point.u)
        start = value - self.line.n
        if self.members is None:
            most = float(gradient.max())
            tangent = Tangent(start, most, most)
        else:
            inside = float(gradient.max(where=self.members, initial=0.0))
            outside = float(gradient.max(where=~self.members, initial=0.0))
            tangent = Tangent(start, inside, outside)
        bound = tangent.at(self.psi)
        if not math.isfinite(value + bound):
            return None
        return Fit(point.p, value, bound, tangent)


def _step(problem: _Problem, point: _Point) -> _Point | None:
    """Return the next point, by a predictor-corrector step (Mehrotra 1992), or None if it fails."""
    p, u, s = point.p, point.u, point.s
    pull, weight = problem.seen / u, s / p
    newton = _Newton.of(problem, pull / u, weight)
    if newton is None:
        return None
    centre = float(p @ s) / p.size
    dp = newton.solve(pull)
    ds = -s - weight * dp
    a, b = _reach(p, dp), _reach(s, ds)
    affine = max(float((p + a * dp) @ (s + b * ds)) / p.size, 0.0)
    target = (centre * (affine / centre) ** 3 - dp * ds) / p
    dp = newton.solve(pull + problem.line.unmix(target))
    ds = target - s - weight * dp
    a, b = _SHORTEN * _reach(p, dp), _SHORTEN * _reach(s, ds)
    if not math.isfinite(a + b):
        return None
    moved = np.maximum(p + a * dp, _LEAST)
    moved *= (problem.sums / (problem.sets @ moved)) @ problem.sets
    return _Point(moved, problem.line.mix(moved), np.maximum(s + b * ds, _LEAST))


def _reach(values: Floats, step: Floats) -> float:
    """Return the largest fraction of a step, at most 1, that keeps values nonnegative."""
    return 1.0 / max(float((-step / values).max()), 1.0)


@dataclass(frozen=True)
class _Newton:
    """Newton's matrix, scaled to a unit diagonal and factored, with the constraints of the sets.

    `solved` is its inverse times `edges`, and `inverse` is the inverse of `edges^T solved`.
    """

    problem: _Problem
    factor: Floats
    scale: Floats
    solved: Floats
    inverse: Floats

    @classmethod
    def of(cls, problem: _Problem, curve: Floats, weight: Floats) -> "_Newton | None":
        """Return the matrix for a likelihood diagonal and weights `s/p`; None if it is singular."""
        diagonal, beside = problem.line.bands
        mixed = diagonal * weight
        main = curve + diagonal * mixed
        far = beside**2 * weight
        main[1:] += far[:-1]
        main[:-1] += far[1:]
        # Scale to a unit diagonal: entries differ by orders of magnitude near the solution.
        scale = 1.0 / np.sqrt(main)
        table = np.ones((3, diagonal.size))
        table[1, 1:] = beside * (mixed[:-1] + mixed[1:]) * scale[:-1] * scale[1:]
        table[0, 2:] = far[1:-1] * scale[:-2] * scale[2:]
        factor, failed = scipy.linalg.lapack.dpbtrf(table)
        if failed:
            return None
        edges = problem.edges
        solved = scale[:, None] * scipy.linalg.lapack.dpbtrs(factor, scale[:, None] * edges)[0]
        small = edges.T @ solved
        try:
            inverse = np.linalg.inv(small)
        except np.linalg.LinAlgError:
            return None
        return cls(problem, factor, scale, solved, inverse)

    def solve(self, right: Floats) -> Floats:
        """Return the step of the shares, which keeps the shares of the sets."""
        free = self.scale * scipy.linalg.lapack.dpbtrs(self.factor, self.scale * right)[0].ravel()
        multipliers = self.inverse @ (self.problem.edges.T @ free)
        return self.problem.line.unmix(free - self.solved @ multipliers)
