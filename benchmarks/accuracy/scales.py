"""The scales with the least total error for a strategy (docs/theory.md section 4).

    python -m benchmarks.accuracy.scales ldpstream.toml COLLECTION

prints them as a line of the configuration. All devices read the same numbers from there, and check
exactly that they keep the policy.
"""

import argparse
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from pathlib import Path

import numpy as np

from benchmarks.accuracy.scale_solver import ConvergenceError, solve_rates
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.noise import LaplaceRows
from ldpstream.mechanisms.families.matrix.pairs import harmless_rows
from ldpstream.mechanisms.families.matrix.strategy import WORKLOADS, Strategy
from ldpstream.mechanisms.policies.policy import Policy
from ldpstream.mechanisms.wire.spec import load_spec

_MOST_CELLS = 1 << 23
_SLACK = 1e-9
_ROUNDS = 8
_ENOUGH = 1e-4
_DIGITS = 6


def gram_of(workload: str | Floats, size: int) -> Floats:
    """Return `W^T W`, float64 `(k, k)`, of a workload by name or of its queries, `(q, k)`.

    Raises:
        ValueError: if the name is unknown, the shape is wrong, or weights are not finite.
    """
    if isinstance(workload, str):
        if workload not in WORKLOADS:
            raise ValueError(f"workload: expected one of {', '.join(WORKLOADS)}, got {workload!r}")
        return WORKLOADS[workload](size)
    if workload.ndim != 2 or workload.shape[1] != size or not np.isfinite(workload).all():
        raise ValueError(f"workload: expected finite weights of shape (q, {size})")
    return np.asarray(workload.T @ workload, dtype=np.float64)


def alphas_of(rows: LaplaceRows) -> Floats:
    """Return `a = e^(-1/s)` of each noisy row, float64 `(m,)`."""
    return np.array([threshold / WORD for threshold in rows.thresholds])[rows.kinds]


@dataclass(frozen=True)
class ScalePlan:
    """`scales` for each row of a strategy, with the total error that one respondent adds.

    `scales` is None if nothing is better than the default, one scale for all noisy rows. `error` is
    predicted with these rounded scales, and `uniform` with the default. `optimum` is that of the
    convex optimum for the default's decoder B ([ML] III-A) with discrete noise, and `gap` its
    relative duality gap.
    """

    scales: tuple[float, ...] | None
    error: float
    uniform: float
    optimum: float
    gap: float


def optimal_scales(
    policy: Policy, strategy: Strategy, workload: str | Floats, *, rounds: int = _ROUNDS
) -> ScalePlan:
    """Return scales of small total error for a workload (a name, or queries `(q, k)`).

    For a fixed decoder B the best scales are a convex optimum ([ML] III-A); for given scales the
    best B is weighted least squares. The two alternate for at most `rounds` rounds, none of which
    increases the error; one round is the paper's optimum. Scales are rounded up to six digits,
    toward privacy, and checked against the policy exactly.

    Raises:
        SpecError: as for `Matrix`, and if there are too many pairs times rows for the solver.
        ConvergenceError: if the solver does not converge.
        ValueError: as for `gram_of`.
    """
    gram = gram_of(workload, policy.size)
    best = Matrix(policy, strategy)
    uniform = best.decoder.total_error(gram)
    noisy = ~harmless_rows(strategy.entries, best.pairs)
    constraints, budgets = _constraints(best)
    rates = -np.log(alphas_of(best.rows))
    error, optimum, gap = uniform, uniform, 0.0
    for turn in range(rounds):
        weights = best.decoder.row_weights(gram)
        # A row that the decoder does not use needs some weight: without it u = 0 would be optimal.
        weights = np.maximum(weights / weights.max(), 1e-9)
        start = rates * (1.0 - 1e-3) / (constraints @ rates / budgets).max()
        solved = solve_rates(weights, constraints, budgets, start)
        rates = solved.rates
        scales = np.zeros(strategy.rows)
        scales[noisy] = [_round_up(scale) for scale in 1.0 / rates]
        found = Matrix(policy, strategy, tuple(scales.tolist()))
        reached = found.decoder.total_error(gram)
        if turn == 0:
            gap = solved.gap / solved.objective
            optimum = float((best.decoder.row_weights(gram) * found.rows.variances).sum())
        if reached >= error * (1.0 - _ENOUGH):
            if reached < error:
                best, error = found, reached
            break
        best, error = found, reached
    return ScalePlan(best.scales, error, uniform, optimum, gap)


def _constraints(mechanism: Matrix) -> tuple[Floats, Floats]:
    """Return C and e of `C u <= e`: one row for each different column difference."""
    pairs, entries = mechanism.pairs, mechanism.rows.entries
    if pairs.count * len(entries) > _MOST_CELLS:
        raise SpecError(
            "scales",
            f"at most {_MOST_CELLS} protected pairs times rows for the solver, got "
            f"{pairs.count} times {len(entries)}",
        )
    gaps = np.abs(entries[:, pairs.first] - entries[:, pairs.second]).T
    told = gaps.any(axis=1)
    allowed = np.array([float(budget) for budget in pairs.budgets])[pairs.which]
    order = np.flatnonzero(told)[np.argsort(allowed[told], kind="stable")]
    # The first of equal differences has the least budget.
    distinct, first = np.unique(gaps[order], axis=0, return_index=True)
    budgets = allowed[order][first] * (1.0 - _SLACK)
    return distinct.astype(np.float64), budgets


def _round_up(scale: float) -> float:
    return float(Context(prec=_DIGITS, rounding=ROUND_CEILING).create_decimal(Decimal(scale)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the optimal scales of a collection, as a line of its table, and the errors."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("file", help="the configuration")
    parser.add_argument("collection", help='its collection, with mechanism = "matrix"')
    asked = parser.parse_args(arguments)
    try:
        print(_report(asked.file, asked.collection))
    except (SpecError, ConvergenceError) as error:
        parser.exit(2, f"{error}\n")


def _report(file: str, collection: str) -> str:
    mechanism = load_spec(file, collection).mechanism
    if not isinstance(mechanism, Matrix):
        raise SpecError(f"collection.{collection}.mechanism", "matrix")
    table = tomllib.loads(Path(file).read_text("utf-8"))["collection"][collection]
    workload = table.get("workload", "values")
    plan = optimal_scales(mechanism.policy, mechanism.strategy, workload)
    head = f"# strategy {mechanism.strategy.name}, workload {workload}: total error per respondent"
    if plan.scales is None:
        return f"{head} {plan.error:.6g}; no better scales than equal ones, the default"
    ratio = plan.error / plan.uniform
    listed = ", ".join(repr(scale) for scale in plan.scales)
    return f"{head} {plan.error:.6g}, {ratio:.4f} of that with equal scales\nscales = [{listed}]"


if __name__ == "__main__":
    main()
