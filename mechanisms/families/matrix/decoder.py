"""Linear queries from sums of noisy rows: weighted least squares (docs/theory.md section 4).

A user of value x adds `A[:, x]` plus noise of variances `v_j` to the sums, and 1 to the exact
number of reports of its group. A query `w` is answered by `c . row + d` with `A^T c + d = w` on the
group's values and the least `sum_j c_j^2 v_j`. This is the generalised least squares estimate with
the exact numbers as constraints. [ML] allow any B with `W = BA`; this one has the least error for
the noise. Rows of low rank answer only some queries (`EstimableQueries`).

Which queries those are is decided in exact arithmetic. In a group whose number of reports is known,
a query w is answered without bias iff w is in the row space of the rows and of ones: iff the
differences of w from its first weight are a combination of the rows' differences. Rounding never
decides: up to 256 different columns are eliminated without fractions, more modulo two primes near
2^61, and again without fractions should these disagree.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.families.matrix.noise import LaplaceRows
from ldpstream.mechanisms.families.matrix.strategy import Entries
from ldpstream.mechanisms.interface.decoder import Decoded, LinearDecoder, Statistic

_EXACT: Final = 256
"""So many different columns are eliminated over the rationals."""
PRIMES: Final = (2**61 - 1, 2**61 - 31)

_Row = NDArray[Any]
"""Python's integers, which do not overflow."""

_LARGEST_RESIDUAL = 1e-6


@dataclass(eq=False)
class RowSpace:
    """The span of integer rows, over the rationals or modulo a prime.

    `basis` holds pivots with rows that are 0 at all earlier pivots.
    """

    modulus: int | None
    basis: list[tuple[int, _Row]] = field(default_factory=list)

    def add(self, row: _Row) -> None:
        """Add a row to the span."""
        rest = self.reduce(row)
        if rest.any():
            self.basis.append((int(np.argmax(rest != 0)), rest))

    def reduce(self, row: _Row) -> _Row:
        """Return what is left of a row, up to a factor; 0 everywhere iff the span holds it."""
        row = self._small(row)
        for pivot, base in self.basis:
            if row[pivot]:
                row = self._small(row * base[pivot] - base * row[pivot])
        return row

    def _small(self, row: _Row) -> _Row:
        return row % self.modulus if self.modulus else row // (math.gcd(*row) or 1)


@dataclass(frozen=True, eq=False)
class EstimableQueries:
    """The queries that rows answer in a group of values, `members`, int64 `(s,)`.

    `column` is the place of each of these among the different columns of the rows, of which
    `first` holds one value each.
    """

    differences: _Row
    members: Integers
    column: Integers
    first: Integers

    @classmethod
    def of(cls, entries: Entries, members: Integers) -> "EstimableQueries":
        """Prepare rows `(m, k)` for a group."""
        _, first, column = np.unique(
            entries[:, members], axis=1, return_index=True, return_inverse=True
        )
        distinct = entries[:, members[first]].astype(object)
        return cls(distinct[:, 1:] - distinct[:, :1], members, column.reshape(-1), members[first])

    @cached_property
    def rank(self) -> int:
        """The rank of the rows' differences."""
        ranks = [len(space.basis) for space in self._spaces]
        return max(ranks) if len({*ranks}) == 1 else len(self._rational.basis)

    @property
    def complete(self) -> bool:
        """Whether every query is answered."""
        return self.rank == len(self.members) - 1

    def unanswered(self, weights: Floats) -> tuple[int, int] | None:
        """Return two values whose shares the rows do not separate, if these weights need them."""
        here = weights[self.members]
        column = weights[self.first][self.column]
        if (here != column).any():
            place = int(np.argmax(here != column))
            return int(self.first[self.column[place]]), int(self.members[place])
        row = _integers(weights[self.first].tolist())
        rest = self._remainder(row[1:] - row[0])
        if rest is None:
            return None
        # The share of this value is not known, so neither is its difference from some other.
        unknown = int(np.argmax(rest != 0)) + 1
        ranking = sorted(range(len(row)), key=lambda other: row[other] == row[unknown])
        for other in ranking:
            pair = np.zeros(len(row), dtype=object)
            pair[unknown], pair[other] = 1, -1
            if other != unknown and self._remainder(pair[1:] - pair[0]) is not None:
                first, second = sorted((int(self.first[unknown]), int(self.first[other])))
                return first, second
        raise AssertionError("the shares' sum is known, so two are unknown")

    def _remainder(self, row: _Row) -> _Row | None:
        """Return what the span leaves of a row; None if it holds it."""
        rests = [space.reduce(row) for space in self._spaces]
        if len({bool(rest.any()) for rest in rests}) > 1:
            rests = [self._rational.reduce(row)]
        return rests[0] if rests[0].any() else None

    @cached_property
    def _spaces(self) -> Sequence[RowSpace]:
        if len(self.first) <= _EXACT:
            return [self._rational]
        return [self._span(prime) for prime in PRIMES]

    @cached_property
    def _rational(self) -> RowSpace:
        return self._span(None)

    def _span(self, modulus: int | None) -> RowSpace:
        space = RowSpace(modulus)
        for row in self.differences:
            if len(space.basis) < len(row):
                space.add(row)
        return space


def _integers(weights: Sequence[float]) -> _Row:
    """Return weights as whole numbers, up to a factor; a float stands for its shortest decimal."""
    exact = [Fraction(repr(weight)) for weight in weights]
    common = math.lcm(*(number.denominator for number in exact))
    return np.array([int(number * common) for number in exact], dtype=object)


@dataclass(frozen=True, eq=False)
class MatrixDecoder(LinearDecoder):
    """Decodes a statistic of G groups: m sums and the number of reports, group after group.

    `group` is the group of each value, int64 `(k,)`, numbered from 0 as a report discloses it.
    """

    rows: LaplaceRows
    group: Integers
    count: int

    def totals(self, statistic: Statistic) -> Floats:
        sums, reports = self._parts(statistic)
        out = self.offsets * reports[self.group]
        for members, row in zip(self._members, sums, strict=True):
            out[members] += row @ self.gains[:, members]
        return out

    def moments(self, decoded: Decoded, at: slice | Integers) -> Floats:
        """Return estimates of `sum_i (Q h_x^2)[x_i]`: each report's noise, and `w^2 = w`."""
        moments: Floats = decoded.reports[self.group[at]] * self._own_noise[at]
        moments += decoded.totals[at]
        return moments

    def extremes(self) -> tuple[Floats, Floats]:
        """Return the extremes over all reports; each row reaches both ends independently."""
        low, high = self.rows.low[:, None] * self.gains, self.rows.high[:, None] * self.gains
        least = np.minimum(low, high).sum(axis=0) + self.offsets
        largest = np.maximum(low, high).sum(axis=0) + self.offsets
        if self.count > 1:
            least, largest = np.minimum(least, 0.0), np.maximum(largest, 0.0)
        return least, largest

    def noise(self, weights: Floats) -> Floats:
        """Return `sum_j c_j^2 v_j` of each value's group, which is the same for all its values."""
        squares = (self._coefficients(weights)[0] ** 2 * self.rows.variances).sum(axis=1)
        return np.asarray(squares[self.group])

    def noise_each(self, weights: Floats) -> Floats:
        """Return `noise` of each row, by one matrix product for each group."""
        out = np.empty_like(weights)
        for row in weights:
            self._check(row)
        for members, gains in zip(self._members, self._group_gains, strict=True):
            here = weights[:, members]
            noise = ((here @ gains.T) ** 2 * self.rows.variances).sum(axis=1)
            noise[(here == here[:, :1]).all(axis=1)] = 0.0
            out[:, members] = noise[:, None]
        return out

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the noise of each single value's estimate twice: it is constant in a group."""
        return self._own_noise.copy(), self._own_noise.copy()

    def groups(self) -> Integers | None:
        return self.group if self.count > 1 else None

    def group_reports(self, statistic: Statistic) -> Integers:
        return self._parts(statistic)[1]

    def total(self, weights: Floats, statistic: Statistic) -> float:
        coefficients, constants = self._coefficients(weights)
        sums, reports = self._parts(statistic)
        return float((coefficients * sums).sum() + (constants * reports).sum())

    def span(self, weights: Floats) -> tuple[float, float]:
        """Return the extremes of `h_w`, which are wide: the ranges hold all but 2^-64 of the noise.

        `deviation` gives much tighter tail bounds.
        """
        coefficients, constants = self._coefficients(weights)
        low, high = self.rows.low * coefficients, self.rows.high * coefficients
        least = np.minimum(low, high).sum(axis=1) + constants
        largest = np.maximum(low, high).sum(axis=1) + constants
        return float(least.min()), float(largest.max())

    def deviation(self, weights: Floats) -> float:
        """Return the deviation of the row whose noise moves the query most."""
        moved = np.abs(self._coefficients(weights)[0]) * self.rows.deviations
        return float(moved.max())

    def value_deviations(self) -> Floats:
        moved: Floats = (np.abs(self.gains) * self.rows.deviations[:, None]).max(axis=0)
        return moved

    def row_weights(self, gram: Floats) -> Floats:
        """Return `b_j = (B^T B)[j, j]` of a workload W with the decoder `B = W H^T`: `(m,)`.

        `gram` is `W^T W`, float64 `(k, k)` (`workload`). A user adds `sum_j b_j v_j` to the total
        variance of the workload's estimates ([ML] III). With several groups, this is the mean over
        all values.
        """
        out = np.zeros(self.rows.count)
        for at in self._members:
            gains = self.gains[:, at]
            out += len(at) / len(self.group) * ((gains @ gram[np.ix_(at, at)]) * gains).sum(axis=1)
        return out

    def total_error(self, gram: Floats) -> float:
        """Return the total variance that one user adds to the estimates of a workload."""
        return float((self.row_weights(gram) * self.rows.variances).sum())

    @cached_property
    def _own_noise(self) -> Floats:
        """The noise of each single value's estimate, float64 `(k,)`."""
        return np.asarray((self.gains**2 * self.rows.variances[:, None]).sum(axis=0))

    def _parts(self, statistic: Statistic) -> tuple[Integers, Integers]:
        """Return the sums `(G, m)` and the numbers of reports `(G,)`."""
        table = statistic.reshape(self.count, -1)
        return table[:, :-1], table[:, -1]

    def _coefficients(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return c of each group, `(G, m)`, and d, `(G,)`.

        A query that is constant on a group is decoded as that constant, without noise.
        """
        self._check(weights)
        coefficients, constants = np.zeros((self.count, self.rows.count)), np.empty(self.count)
        for group in range(self.count):
            members = self._members[group]
            here = weights[members]
            constants[group] = here[0]
            if (here != here[0]).any():
                coefficients[group] = self._group_gains[group] @ here
                constants[group] = self.offsets[members] @ here
        return coefficients, constants

    @cached_property
    def _group_gains(self) -> list[Floats]:
        """The columns of `gains` of each group, cached so that queries need not copy them."""
        if self.count == 1:
            return [self.gains]
        return [np.ascontiguousarray(self.gains[:, at]) for at in self._members]

    @cached_property
    def _members(self) -> list[Integers]:
        return [np.flatnonzero(self.group == group) for group in range(self.count)]

    @property
    def gains(self) -> Floats:
        """`H`, the coefficients c of every single value in its own group, float64 `(m, k)`."""
        return self._solution[0]

    @property
    def offsets(self) -> Floats:
        """The constant d of every single value, float64 `(k,)`."""
        return self._solution[1]

    @property
    def complete(self) -> bool:
        """Whether the rows answer every query."""
        return not self._incomplete

    def unanswered(self, weights: Floats) -> tuple[int, int] | None:
        """Return two values whose shares the rows do not separate, as a query needs; else None."""
        key = weights.tobytes()
        if key not in self._unanswered:
            pairs = (answers.unanswered(weights) for answers in self._incomplete)
            self._unanswered[key] = next((pair for pair in pairs if pair is not None), None)
        return self._unanswered[key]

    def _check(self, weights: Floats) -> None:
        pair = self.unanswered(weights) if self._incomplete else None
        if pair is not None:
            what = f"the rows do not separate the shares of values {pair[0]} and {pair[1]}"
            raise ValueError(f"expected a query that the strategy answers: {what}")

    @cached_property
    def _unanswered(self) -> dict[bytes, tuple[int, int] | None]:
        return {}

    @property
    def _incomplete(self) -> list[EstimableQueries]:
        """What the rows answer in each group in which they do not answer every query."""
        return self._solution[2]

    @cached_property
    def _solution(self) -> tuple[Floats, Floats, list[EstimableQueries]]:
        gains, offsets = np.zeros(self.rows.entries.shape), np.zeros(len(self.group))
        incomplete = []
        for members in self._members:
            entries = self.rows.entries[:, members].astype(np.float64)
            deviations = np.sqrt(self.rows.variances)
            solved = least_squares(entries, deviations)
            if solved is None:
                answers = EstimableQueries.of(self.rows.entries, members)
                solved = least_squares(entries, deviations, answers.rank)
                assert solved is not None, "a rank is given"
                incomplete += [] if answers.complete else [answers]
            gains[:, members] = solved
            # The constant of value x corrects its decoder at the first value of the group.
            offsets[members] = -entries[:, 0] @ solved
            offsets[members[0]] += 1.0
        return gains, offsets, incomplete


def least_squares(entries: Floats, deviations: Floats, rank: int | None = None) -> Floats | None:
    """Return the coefficients of least noise for every value, float64 `(m, k)`, or None.

    `entries` is A, `(m, k)`; `deviations` are the standard deviations of the rows' noise, `(m,)`.
    With one value as the reference the constant drops out and the differences D of the columns from
    it remain: `D^T c = w - w_0`, solved for least norm in units of the deviations by QR
    decomposition. None if the differences are linearly dependent, or nearly so (a residual of 1e-6
    in double precision). With their `rank` the coefficients of any query that has an answer, as
    sums over its values, are those of least noise; others have no meaning.
    """
    size = entries.shape[1]
    solved = np.zeros(entries.shape)
    if size == 1:
        return solved
    used = (entries != entries[:, :1]).any(axis=1)
    differences = (entries[used, 1:] - entries[used, :1]) / deviations[used, None]
    inverse = _inverse(differences) if rank is None else _pseudoinverse(differences, rank)
    if inverse is None:
        return None
    scaled = inverse / deviations[used, None]
    solved[used, 1:] = scaled
    solved[used, 0] = -scaled.sum(axis=1)
    return solved


def _inverse(differences: Floats) -> Floats | None:
    """Return X of least norm with `D^T X = 1`; None unless a residual proves the full rank."""
    if len(differences) < differences.shape[1]:
        return None
    q, r = np.linalg.qr(differences)
    try:
        inverse: Floats = np.linalg.solve(r, q.T).T
    except np.linalg.LinAlgError:
        return None
    residual = np.abs(differences.T @ inverse - np.eye(len(r))).max()
    return inverse if residual < _LARGEST_RESIDUAL else None


def _pseudoinverse(differences: Floats, rank: int) -> Floats:
    u, sizes, vh = np.linalg.svd(differences, full_matrices=False)
    return np.asarray((u[:, :rank] / sizes[:rank]) @ vh[:rank])
