"""Do the bounds cover the truth as often as they say? `python -m benchmarks.accuracy.coverage`.

Seeded repetitions draw users and their reports and count how often the truth lies inside the
bounds: the realised shares for respondents, the shares that they were drawn from for the
population. Every registered mechanism is measured at k = 40 (`coverage_cases`): values, ranges and
quantiles, each query by itself (the least and largest coverage) and all with simultaneous bounds.
Then the 20 largest of 1,000 values, post-selected, covered all together. Last, the worst rows
of every kind. Exit status 1 if a row misses its target.

`normal` is asymptotic: only values and ranges with an expected count of at least 100 and a positive
variance are shown. Sets with fewer than 100 respondents expected outside have rows of their own,
`mostly`, without a target: their bounds are those of the few outside. Pointwise `normal` has the
target 0.93 to 0.97, up to one standard error of the repetitions; everything else 0.95, up to four.
"""

import argparse
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.coverage_cases import large_cases, ranges_of, small_cases
from benchmarks.accuracy.coverage_rows import MOSTLY, Row, print_worst
from benchmarks.accuracy.repeated import AffineSums, draw
from benchmarks.accuracy.simulate import Case
from ldpstream.estimators.bounds.bounded import bound
from ldpstream.estimators.bounds.options import Estimand, Method, Options
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.estimate import query_sums, value_sums
from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.quantiles.quantiles import crossings
from ldpstream.estimators.queries import indicator, prepare_queries
from ldpstream.mechanisms.interface.mechanism import Mechanism

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

METHODS: tuple[Method, ...] = ("normal", "bernstein")
LEAST_COUNT = 100
QUANTILES = np.linspace(0.05, 0.95, 19)
TOP = 20


@dataclass(frozen=True)
class Repeated:
    """Repetitions of a case: counts of values `(r, k)` and statistics `(r, size)`."""

    case: Case
    counts: Integers
    statistics: Integers

    @property
    def label(self) -> str:
        """The name of the case in the table."""
        return f"{self.case.name} {self.case.n:5} {self.case.data:7}"

    def truths(self, sets: list[Integers], estimand: Estimand) -> Floats:
        """Return the shares of sets: `(r, q)` of respondents, `(q,)` of the population."""
        shares = self.counts / self.case.n if estimand == "respondents" else self.case.shares
        return np.stack([shares[..., members].sum(axis=-1) for members in sets], axis=-1)

    def judged(self, sets: list[Integers], estimand: Estimand, method: Method) -> Booleans:
        """Return the sets that have a target."""
        if method == "bernstein":
            return np.ones(len(sets), dtype=np.bool_)
        case = self.case
        variances = (
            predicted_set_variances(case.mechanism, sets, shares=case.shares, estimand=estimand)
            / case.n
        )
        expected = case.n * np.array([float(case.shares[members].sum()) for members in sets])
        return (expected >= LEAST_COUNT - 1e-9) & (variances > 0.0)

    def mostly(self, sets: list[Integers]) -> Booleans:
        """Return the sets that hold all but a few of the expected users."""
        outside = self.case.n * np.array([1.0 - self.case.shares[s].sum() for s in sets])
        return np.asarray(outside < LEAST_COUNT - 1e-9)

    def row(
        self, kind: str, inside: Booleans, estimand: Estimand, method: Method, together: bool
    ) -> Row:
        """Return the table's row, from which queries were covered, bool `(r, q)`."""
        of_each = inside.all(axis=1).mean(keepdims=True) if together else inside.mean(axis=0)
        ends = float(of_each.min()), float(of_each.max())
        return Row(
            self.label, kind, estimand, method, together, inside.shape[1], *ends, len(inside)
        )


def repeat(case: Case, repetitions: int) -> Repeated:
    """Draw the repetitions of a case, the same in every run."""
    seed = zlib.crc32(f"{case.name}/{case.data}/{case.n}".encode())
    return Repeated(case, *draw(case, repetitions, seed))


@dataclass(frozen=True, eq=False)
class Asked:
    """The queries of a mechanism, prepared once for all of its cases."""

    mechanism: Mechanism

    @cached_property
    def values(self) -> AffineSums:
        """The sums of all values."""
        mechanism = self.mechanism
        return AffineSums.of(mechanism, lambda s: value_sums(mechanism, s, mechanism.count(s)))

    @cached_property
    def sets(self) -> list[Integers]:
        """The ranges."""
        return ranges_of(self.mechanism)

    @cached_property
    def ranges(self) -> AffineSums:
        """The sums of the ranges."""
        queries, size = prepare_queries(self.mechanism), self.mechanism.size
        prepared = [queries.set_query(indicator(size, members)) for members in self.sets]
        return AffineSums.of(
            self.mechanism, lambda s: query_sums(queries, s, prepared, indicators=True)
        )

    @cached_property
    def prefixes(self) -> AffineSums:
        """The sums of the prefixes in the values' own order."""
        return AffineSums.of(self.mechanism, Prefixes.of(self.mechanism).prepared.sums)


def inside(bounds: Estimate, truth: Floats) -> Booleans:
    """Return where the bounds hold the truth; exact bounds may miss it by rounding."""
    return (bounds.low <= truth + 1e-9) & (truth <= bounds.high + 1e-9)


ESTIMANDS: Final[tuple[Estimand, ...]] = ("respondents", "population")
"""With independent reports the active devices are a population."""


def choices() -> Iterator[tuple[Estimand, Method, bool]]:
    """Yield every kind of bounds: estimand, method, and whether they are simultaneous."""
    yield from product(ESTIMANDS, METHODS, (False, True))


def set_rows(found: Repeated, kind: str, sets: list[Integers], sums: AffineSums) -> Iterator[Row]:
    """Yield the rows of sets of values."""
    all_sums = sums.at(found.statistics)
    for estimand, method, together in choices():
        chosen = found.judged(sets, estimand, method)
        mostly = chosen & found.mostly(sets) & (method == "normal")
        if chosen.any():
            options = Options(method=method, estimand=estimand, simultaneous=together)
            bounds = bound(all_sums, found.case.n, options)
            covered = inside(bounds, found.truths(sets, estimand))
            for name, of in ((kind, chosen & ~mostly), (MOSTLY, mostly)):
                if of.any():
                    yield found.row(name, covered[:, of], estimand, method, together)


def quantile_rows(found: Repeated, sums: AffineSums) -> Iterator[Row]:
    """Yield the rows of quantiles of the values' own order."""
    all_sums = sums.at(found.statistics)
    for estimand, method, together in choices():
        options = Options(method=method, estimand=estimand, simultaneous=together)
        bounds = bound(all_sums, found.case.n, options)
        # Shares are exact multiples of 1/n or of the rounding of float64.
        low, high = crossings(bounds.low - 1e-9, bounds.high + 1e-9, QUANTILES)
        shares = found.counts / found.case.n if estimand == "respondents" else found.case.shares
        sigma = np.cumsum(shares, axis=-1)
        truth = (sigma[..., None] < QUANTILES - 1e-9).sum(axis=-2)
        yield found.row("quantiles", (low <= truth) & (truth <= high), estimand, method, together)


def small_rows(asked: Asked, found: Repeated) -> Iterator[Row]:
    """Yield the rows of values, ranges and quantiles of one case."""
    values = list(np.arange(asked.mechanism.size)[:, None])
    yield from set_rows(found, "values", values, asked.values)
    yield from set_rows(found, "ranges", asked.sets, asked.ranges)
    yield from quantile_rows(found, asked.prefixes)


def top_rows(asked: Asked, found: Repeated) -> Iterator[Row]:
    """Yield the rows of the largest values, post-selected."""
    case, size = found.case, asked.mechanism.size
    totals = asked.values.totals(found.statistics)
    listed = np.argsort(-totals, axis=1, kind="stable")[:, :TOP]
    sums = asked.values.at_some(found.statistics, listed)
    for estimand, method in product(ESTIMANDS, METHODS):
        options = Options(method=method, estimand=estimand, simultaneous=True, family=size)
        shares = found.counts / case.n if estimand == "respondents" else case.shares[None]
        truth = np.take_along_axis(np.broadcast_to(shares, totals.shape), listed, axis=1)
        covered = inside(bound(sums, case.n, options), truth)
        yield found.row(f"top {TOP}", covered, estimand, method, True)


TABLES = {"all": (small_cases, small_rows), "top": (large_cases, top_rows)}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.coverage", description=__doc__
    )
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--only", choices=TABLES, help="one of the two tables")
    arguments = parser.parse_args()
    repetitions = arguments.repetitions
    print(f"95% bounds, {repetitions} repetitions: least and largest coverage, or of all together")
    print(f"{'mechanism':24} eps     n data    kind      estimand    method    of       count")
    rows = []
    for name in [arguments.only] if arguments.only else TABLES:
        cases, of = TABLES[name]
        for _, same in groupby(cases(), lambda case: id(case.mechanism)):
            asked = None
            for case in same:
                asked = asked or Asked(case.mechanism)
                for row in of(asked, repeat(case, repetitions)):
                    print(row, flush=True)
                    rows.append(row)
    print_worst(rows)
    missed = sum(not row.met for row in rows)
    print(f"\n{len(rows)} rows, {missed} missed" if missed else "\nall targets met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
