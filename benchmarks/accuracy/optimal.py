"""Compare the best channels with the named mechanisms.

    python -m benchmarks.accuracy.optimal [CASE ...]

Population variances of one report, mean over the workload's queries, where values follow the design
prior: predicted exactly (the decoders that run), and measured as squared errors of estimates from
seeded reports, for `optimal` and for every mechanism that satisfies the policy. `gap` is the share
of the variance that any channel of the policy could at most save, and how this is known.
The asymmetric policy and the road graph are synthetic, from fixed seeds: streets of a town
on an 8 x 8 grid, one in eight of them closed, whose budgets are travel times. Exit status 1 if a
measured variance is off by more than 15%.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.simulate import Case, draw_by_privatizing
from ldpstream.estimators.design.optimise import Design, Workload, histogram, optimise, ranges
from ldpstream.estimators.design.realise import realise
from ldpstream.estimators.estimate import query_sums
from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.estimators.queries import indicator, prepare_queries
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.domains.lattice import Size
from ldpstream.mechanisms.families.optimal import Optimal
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.implication import implies
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy, Policy
from ldpstream.mechanisms.policies.prior import PriorPolicy
from ldpstream.mechanisms.registry.proposals import Proposal, propose

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RESPONDENTS = 2000
TOLERANCE = 0.15


@dataclass(frozen=True)
class Setting:
    """A policy, its workload (all ranges or all single values), and the design prior."""

    policy: Policy
    ordered: bool = False
    prior: Floats | None = None

    @property
    def workload(self) -> Workload:
        """The workload as the design takes it."""
        size = self.policy.size
        return ranges((size,)) if self.ordered else histogram(size)

    @property
    def sets(self) -> list[Integers]:
        """The workload as sets of values."""
        values = range(self.policy.size)
        if not self.ordered:
            return [np.array([value]) for value in values]
        return [np.arange(a, b + 1) for a in values for b in values if b >= a]

    @property
    def shares(self) -> Floats:
        """The design prior."""
        size = self.policy.size
        return np.full(size, 1.0 / size) if self.prior is None else self.prior


def asymmetric(size: int, seed: int) -> MatrixPolicy:
    """Return budgets from 0.3 to 2, drawn one by one for every ordered pair."""
    budgets = np.random.default_rng(seed).uniform(0.3, 2.0, (size, size)).round(3)
    np.fill_diagonal(budgets, 0.0)
    return MatrixPolicy.of(budgets)


def roads(side: int, seed: int) -> GraphPolicy:
    """Return streets between neighbours on a grid; each has a travel time as its budget."""
    rng = np.random.default_rng(seed)
    edges = []
    for place in range(side * side):
        row, column = divmod(place, side)
        for other in [place + 1] * (column + 1 < side) + [place + side] * (row + 1 < side):
            length = Fraction(int(rng.integers(200, 1000)), 1000)
            if rng.random() > 1 / 8:
                edges.append((place, other, length))
    return GraphPolicy(side * side, tuple(edges))


def local_prior(size: int, epsilon: float, seed: int) -> Setting:
    """Return localized information privacy of values of unequal shares."""
    parts = [int(part) for part in np.random.default_rng(seed).integers(1, 20, size)]
    prior = tuple(Fraction(part, sum(parts)) for part in parts)
    return Setting(PriorPolicy(epsilon, prior), prior=np.array(parts) / sum(parts))


CASES: dict[str, Callable[[], Setting]] = {
    "classical 8, eps 1": lambda: Setting(BlockPolicy(1.0, Blocks.one(8))),
    "classical 64, eps 1": lambda: Setting(BlockPolicy(1.0, Blocks.one(64))),
    "line 16, eps 0.3": lambda: Setting(MetricPolicy(0.3, (16,)), ordered=True),
    "line 16, eps 1": lambda: Setting(MetricPolicy(1.0, (16,)), ordered=True),
    "line 24, eps 0.2": lambda: Setting(MetricPolicy(0.2, (24,)), ordered=True),
    "line 64, eps 1": lambda: Setting(MetricPolicy(1.0, (64,)), ordered=True),
    "asymmetric 16": lambda: Setting(asymmetric(16, 5)),
    "roads 64": lambda: Setting(roads(8, 6)),
    "lip 12, eps 1": lambda: local_prior(12, 1.0, 5),
    "lip 200, eps 1": lambda: local_prior(200, 1.0, 5),
}


def named(setting: Setting) -> Iterator[Proposal]:
    """Yield every other mechanism that satisfies the policy."""
    policy = setting.policy.by_entries()
    for found in propose(policy, Size(policy.size)):
        if not isinstance(found, Proposal) or isinstance(found.mechanism, Optimal):
            continue
        try:
            if implies(found.mechanism.policy, policy) is None:
                yield found
        except SpecError:
            continue


def predicted(mechanism: Mechanism, setting: Setting) -> float:
    """Return the mean variance of one report over the workload."""
    variances = predicted_set_variances(
        mechanism, setting.sets, shares=setting.shares, estimand="population"
    )
    return float(variances.mean())


def measured(mechanism: Mechanism, setting: Setting, repetitions: int, seed: int) -> float:
    """Return the mean squared error of all queries, times the number of respondents."""
    prepared = prepare_queries(mechanism)
    members = [indicator(mechanism.size, chosen) for chosen in setting.sets]
    queries = [prepared.set_query(weights) for weights in members]
    truth = np.array(members) @ setting.shares
    case = Case("", mechanism, "", setting.shares, RESPONDENTS)
    errors = []
    for _, statistic in draw_by_privatizing(case, repetitions, seed):
        sums = query_sums(prepared, statistic, queries, indicators=True)
        estimates = sums.total / RESPONDENTS
        errors.append(float(((estimates - truth) ** 2).mean()))
    return RESPONDENTS * float(np.mean(errors))


def show(name: str, setting: Setting, repetitions: int, seconds: float) -> bool:
    """Print one case; return whether measured and predicted variances agree."""
    start = time.perf_counter()
    design: Design = optimise(setting.policy, setting.workload, setting.prior, seconds=seconds)
    took = time.perf_counter() - start
    best = Optimal(realise(design))
    kept = best.certify().passed
    respondents = design.respondents / design.workload.queries
    print(
        f"\n{name}: {design.workload.queries} {design.workload.name}; gap "
        f"{100 * design.gap / design.population:.4f}% {design.status} ({design.starts:,} starts), "
        f"{took:.1f} s, {best.outputs} reports, certificate {'passes' if kept else 'FAILS'}\n"
        f"  total {design.population:.6g}, respondents {design.respondents:.6g} "
        f"({respondents:.6g} a query)"
    )
    print("  mechanism                          predicted    measured   over optimal")
    agree = kept
    least = predicted(best, setting)
    for proposal in [Proposal(best), *named(setting)]:
        mechanism = proposal.mechanism
        expected = predicted(mechanism, setting)
        found = measured(mechanism, setting, repetitions, 1)
        agree &= abs(found / expected - 1.0) <= TOLERANCE
        ratio = expected / least
        label = f"{type(mechanism).id} {proposal.variant}"
        print(f"  {label:32} {expected:11.6g} {found:11.4g} {ratio:14.3f}", flush=True)
    return agree


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.optimal")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"some of {', '.join(CASES)}")
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=100.0, help="at most, for one design")
    options = parser.parse_args()
    print(
        f"Population variance of one report, mean over the queries; measured on "
        f"{options.repetitions} x {RESPONDENTS} reports"
    )
    agree = [
        show(name, setting(), options.repetitions, options.seconds)
        for name, setting in CASES.items()
        if not options.cases or name in options.cases
    ]
    sys.exit(0 if all(agree) else 1)


if __name__ == "__main__":
    main()
