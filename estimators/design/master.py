"""The weights of given columns that minimise a workload's variance: A-optimal design.

For columns `v_y` with `p.v_y = 1` the variance falls with `f(theta) = tr(G I^-1)`,
`I = sum_y theta_y v_y v_y^T`, over `theta >= 0` with `sum_y theta_y v_y = 1` (`optimise`). f is
convex, its gradient `-g`, `g_y = v_y^T M v_y`, `M = I^-1 G I^-1`. The optimum has multipliers
lambda with slacks `s_y = lambda.v_y - g_y >= 0` and `theta_y s_y = 0`. Of all optimal weights,
`thin` finds some with few columns.

A primal-dual interior-point method with Mehrotra's centring. The Hessian is
`2 (V I^-1 V^T) * (V M V^T)`, entry by entry, for columns in the rows of V: a step costs one
Cholesky factor of as many rows as there are columns, a second's work in all for several hundred.

Columns that would improve a design are those with the largest `v^T M v - lambda.v` in a cone
(`search`). A convex function is largest at an extreme ray. From many starts, each step moves to the
column that is best for the gradient at the last one, followed by the cone's own search, if it has
one. This finds local optima. If all extreme rays can be enumerated, the largest gain is known.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import linprog

from ldpstream.estimators.design.cone import Cone, DesignError, gains, scaled
from ldpstream.mechanisms.base.arrays import Floats

_MOST_STEPS = 150
_SHORT_OF_BOUNDARY = 0.995
_FEASIBLE = 1e-10
_LEAST_CENTRING = 1e-3
_NEGLIGIBLE = 1e-10
_MOST_VALUES = 32
"""Most values, beyond which the linear program takes longer than a shorter table is worth."""

_MOST_MOVES = 50
_ROUNDING = 1e-10
_DIGITS = 9
"""Columns that agree in this many digits are considered equal."""


@dataclass(frozen=True, eq=False)
class Master:
    """Weights theta and slacks s of columns `(n, k)`: `(n,)` each; lambda `(k,)`; M `(k, k)`.

    `trace` is f.
    """

    columns: Floats
    weights: Floats
    slacks: Floats
    multipliers: Floats
    trace: float
    form: Floats


def solve(
    gram: Floats,
    columns: Floats,
    weights: Floats,
    multipliers: Floats | None,
    tolerance: float,
    target: Floats | float = 1.0,
) -> Master:
    """Return the best weights of columns, from given positive ones, `(n,)`.

    `target` is `sum_y theta_y v_y`.

    `multipliers` are those of a solution for nearly the same columns, None at first. Stops once the
    complementarity `sum_y theta_y s_y`, which bounds how far f is above the optimum for these
    columns, and the dual residual are below `tolerance`, relative to f.
    """
    theta, least = np.maximum(weights, 1e-12), 0.1 if multipliers is None else tolerance
    s = np.zeros(0)
    lam = multipliers
    for _ in range(_MOST_STEPS):
        solved, form = _information(gram, columns, theta)
        g = np.einsum("ij,ij->i", columns @ form, columns)
        f = float(theta @ g)
        if lam is None:
            lam = _fit_multipliers(columns, theta, g)
        if not s.size:
            s = np.maximum(columns @ lam - g, least * f)
        dual = columns @ lam - g - s
        primal = target - theta @ columns
        gap = float(theta @ s)
        if not np.isfinite(f):
            break
        if max(gap, np.abs(dual).max()) <= tolerance * f and np.abs(primal).max() <= _FEASIBLE:
            return Master(columns, theta, s, lam, f, form)
        newton = _Newton.of(columns, solved, form, theta, s)
        steps = newton.step(dual, primal, -theta * s)
        reached = _length(theta, steps[0]), _length(s, steps[2])
        ahead = float((theta + reached[0] * steps[0]) @ (s + reached[1] * steps[2]))
        centre = max((ahead / gap) ** 3, _LEAST_CENTRING) * gap / len(theta)
        steps = newton.step(dual, primal, centre - theta * s)
        length = min(_length(theta, steps[0]), _length(s, steps[2]))
        length = min(1.0, _SHORT_OF_BOUNDARY * length)
        theta, lam, s = theta + length * steps[0], lam + length * steps[1], s + length * steps[2]
    raise DesignError(f"no convergence: the weights of {len(columns)} columns")


def judge(gram: Floats, master: Master) -> Master:
    """Return the same weights and multipliers, with the trace and the form of another G."""
    _, form = _information(gram, master.columns, master.weights)
    gain = np.einsum("ij,ij->i", master.columns @ form, master.columns)
    return replace(master, trace=float(master.weights @ gain), form=form)


def thin(gram: Floats, master: Master, tolerance: float) -> Master:
    """Return a solution with at most `k (k + 1)/2` columns, or the given one if that fails.

    The interior-point method ends in the middle of all optimal weights, which may use many more
    columns than necessary; fewer make shorter files and reports. I has `k (k + 1)/2` different
    entries, so that by Caratheodory's theorem as many columns suffice for it, and hence for the
    equality `sum_y theta_y v_y = I p = 1`. They are a vertex of the linear program over all weights
    with the same I. The trace is larger by at most `tolerance`, relatively.
    """
    size = len(master.multipliers)
    first, second = np.triu_indices(size)
    if size > _MOST_VALUES or len(master.weights) <= first.size:
        return master
    entries = (master.columns[:, first] * master.columns[:, second]).T
    scale = np.maximum(entries @ master.weights, 1e-300)
    solution = linprog(
        master.slacks / master.trace,
        A_eq=entries / scale[:, None],
        b_eq=np.ones(first.size),
        method="highs-ds",
    )
    if solution.x is None:
        return master
    positive = solution.x > _NEGLIGIBLE
    try:
        fewer = solve(
            gram, master.columns[positive], solution.x[positive], master.multipliers, tolerance
        )
    except DesignError:
        return master
    return fewer if fewer.trace <= master.trace * (1.0 + tolerance) else master


def _information(gram: Floats, columns: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """Return `I^-1 V^T`, `(k, n)`, and M."""
    information = (columns.T * theta) @ columns
    try:
        factor = cho_factor(information)
        inverse = cho_solve(factor, np.eye(len(information)))
    except LinAlgError:
        raise DesignError(
            "no invertible channel: the columns do not distinguish all values"
        ) from None
    form = inverse @ gram @ inverse
    return inverse @ columns.T, (form + form.T) / 2.0


def _fit_multipliers(columns: Floats, theta: Floats, g: Floats) -> Floats:
    """Return the lambda for which `lambda.v_y` is closest to `g_y`, weighted by theta."""
    root = np.sqrt(theta)
    fitted = np.linalg.lstsq(columns * root[:, None], g * root, rcond=None)[0]
    return np.asarray(fitted, dtype=np.float64)


def _length(position: Floats, step: Floats) -> float:
    """Return the largest fraction of a step, at most 1, that keeps a position nonnegative."""
    falling = step < 0.0
    if not falling.any():
        return 1.0
    return min(1.0, float((-position[falling] / step[falling]).min()))


@dataclass(frozen=True, eq=False)
class _Newton:
    """Newton's equations at one point, with their factorisation."""

    factor: tuple[Floats, bool]
    solved: Floats
    schur: Floats
    columns: Floats
    theta: Floats
    s: Floats

    @classmethod
    def of(
        cls, columns: Floats, whitened: Floats, form: Floats, theta: Floats, s: Floats
    ) -> "_Newton":
        hessian = 2.0 * (columns @ whitened) * (columns @ form @ columns.T)
        hessian[np.diag_indices(len(theta))] += s / theta
        try:
            factor = cho_factor(hessian)
        except LinAlgError:
            raise DesignError(f"no convergence: the weights of {len(theta)} columns") from None
        solved = cho_solve(factor, columns)
        return cls(factor, solved, columns.T @ solved, columns, theta, s)

    def step(
        self, dual: Floats, primal: Floats, complementary: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return the steps of theta, lambda and s that cancel the residuals to first order."""
        right = complementary / self.theta - dual
        direct = cho_solve(self.factor, right)
        multipliers = np.linalg.solve(self.schur, self.columns.T @ direct - primal)
        weights = direct - self.solved @ multipliers
        return weights, multipliers, (complementary - self.s * weights) / self.theta


@dataclass(frozen=True, eq=False)
class SearchResult:
    """New columns `(n, k)` with positive gain, best first, and the largest gain found.

    `starts` is the number of columns from which a search began.
    """

    columns: Floats
    largest: float
    starts: int = 0


def search(
    cone: Cone,
    prior: Floats,
    master: Master,
    seeds: Floats,
    rng: np.random.Generator,
    *,
    effort: int,
    most: int,
) -> SearchResult:
    """Return at most `most` columns of positive gain; `effort` multiplies the starts.

    The seeds are looked at again: one that left the design may be worth its place by now.
    """
    starts = directions(master, rng, effort * cone.climbs)
    climbed = _climb(cone, prior, master, starts)
    shares = master.weights / master.weights.sum()
    chosen = rng.choice(len(shares), effort * cone.perturbations, p=shares)
    columns = np.concatenate([climbed, cone.perturb(master.columns[chosen], prior, rng)])
    columns = cone.improve(columns, prior, master.form, master.multipliers)
    best = _best(np.concatenate([columns, seeds]), master, most)
    return replace(best, starts=len(starts) + len(chosen))


def search_all(
    cone: Cone, prior: Floats, master: Master, *, most: int, most_rays: int
) -> SearchResult | None:
    """Do the same over all extreme rays, so that `largest` is exact; None if they are too many."""
    rays = cone.rays(most_rays)
    if rays is None:
        return None
    best = SearchResult(np.zeros((0, prior.size)), -np.inf)
    for chunk in rays:
        columns = scaled(chunk, prior)
        gain = gains(columns, master.form, master.multipliers)
        top = columns[np.argsort(-gain)[:most]]
        best = _best(np.concatenate([best.columns, top]), master, most, best.largest)
    return best


def _climb(cone: Cone, prior: Floats, master: Master, starts: Floats) -> Floats:
    """Return local optima, one for each initial direction, `(n, k)`."""
    columns = cone.best(starts, prior)
    gain = gains(columns, master.form, master.multipliers)
    moving = np.arange(len(columns))
    for _ in range(_MOST_MOVES):
        gradient = 2.0 * columns[moving] @ master.form - master.multipliers
        ahead = cone.best(gradient, prior)
        reached = gains(ahead, master.form, master.multipliers)
        better = reached > gain[moving] + _ROUNDING * master.trace
        moving = moving[better]
        if not moving.size:
            break
        columns[moving], gain[moving] = ahead[better], reached[better]
    return columns


def directions(master: Master, rng: np.random.Generator, starts: int) -> Floats:
    """Return random directions, and noisy gradients at columns of the design.

    `v^T M v` is the largest squared projection of `M^(1/2) v`, so that random ones are drawn there.
    """
    size, random = len(master.multipliers), starts // 2
    values, vectors = np.linalg.eigh(master.form)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    # At columns of the design v^T M v equals lambda.v, which is f on average.
    drawn = 2.0 * np.sqrt(master.trace) * rng.normal(size=(random, size)) @ root.T
    shares = master.weights / master.weights.sum()
    chosen = rng.choice(len(shares), starts - random, p=shares)
    gradient = 2.0 * master.columns[chosen] @ master.form - master.multipliers
    spread = np.abs(gradient).mean(axis=1, keepdims=True) * rng.exponential(0.5, (len(gradient), 1))
    noise = rng.normal(size=gradient.shape) * spread
    return np.concatenate([drawn - master.multipliers, gradient + noise])


def _best(columns: Floats, master: Master, most: int, before: float = -np.inf) -> SearchResult:
    """Return the different columns of positive gain, best first."""
    gain = gains(columns, master.form, master.multipliers)
    largest = max(before, float(gain.max())) if gain.size else before
    ranking = np.argsort(-gain)
    ranking = ranking[gain[ranking] > 0.0]
    _, first = np.unique(columns[ranking].round(_DIGITS), axis=0, return_index=True)
    return SearchResult(columns[ranking[np.sort(first)]][:most], largest)
