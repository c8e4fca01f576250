"""The pairs of values that a policy protects, and the noise that keeps it ([ML] Theorem 1).

Noise of scale `s_j` on row j loses `|A[j, x] - A[j, x']| u_j` between two values, `u_j = 1/s_j`,
and the losses of the rows add up: a policy holds if and only if
`sum_j |A[j, x] - A[j, x']| u_j <= E[x, x']` for all pairs, checked in exact arithmetic. Both
directions of a pair lose the same, so that the smaller of their budgets counts.

By default all rows share the largest such u; scales from the configuration are checked against the
same condition. Rows that distinguish only unprotected values have scale 0: they are exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.families.matrix.strategy import Entries
from ldpstream.mechanisms.policies.budgets import components
from ldpstream.mechanisms.policies.policy import BlockPolicy, Policy

_LARGEST_BUDGET = Fraction(512)
"""Larger budgets count as this one: exponentials beyond it are of no use, and costly to compute."""
_LARGEST_RATE = Fraction(1 << 900)
"""Larger rates count as this one: noise has at most 64 log 2, and floats can hold its losses."""
_MARGIN = 1e-9
_MOST_LISTED = 1000
_CELLS = 1 << 22
_FEW_DIRECT = 1 << 26
_FEW_LEVELS = 4


@dataclass(frozen=True, eq=False)
class ProtectedPairs:
    """P unordered pairs of different values, each with a finite budget in at least one direction.

    `first`, `second` and `which` are int64 of shape `(P,)`; pair p has `budgets[which[p]]`, exact.
    The budgets of all other pairs follow from them (`Policy.pairs`).
    """

    size: int
    first: Integers
    second: Integers
    which: Integers
    budgets: tuple[Fraction, ...]

    @classmethod
    def of(cls, policy: Policy) -> "ProtectedPairs":
        """Return the pairs of a policy.

        Raises:
            SpecError: if the pairs have no structure and are too many to list, or the policy
                demands more than budgets of pairs.
        """
        if policy.by_entries() is not policy:
            raise SpecError("policy", "budgets of pairs of values, got odds against priors")
        if isinstance(policy, BlockPolicy):
            return cls._of_blocks(policy)
        if policy.size > _MOST_LISTED and not policy.few_pairs:
            expected = f"at most {_MOST_LISTED} values, or blocks, a graph or l1, got {policy.size}"
            raise SpecError("policy", expected)
        least: dict[tuple[int, int], Fraction] = {}
        for value, other in policy.pairs():
            entry = policy.entry(value, other)
            if entry is not None:
                pair = (value, other) if value < other else (other, value)
                entry = min(entry, _LARGEST_BUDGET)
                least[pair] = min(entry, least.get(pair, entry))
        budgets = tuple(sorted(set(least.values())))
        places = {entry: place for place, entry in enumerate(budgets)}
        table = np.array(list(least), dtype=np.int64).reshape(-1, 2)
        which = np.array([places[entry] for entry in least.values()], dtype=np.int64)
        return cls(policy.size, table[:, 0], table[:, 1], which, budgets)

    @classmethod
    def _of_blocks(cls, policy: BlockPolicy) -> "ProtectedPairs":
        """Return all pairs inside blocks, without a call for each pair."""
        pairs = []
        for block in range(policy.blocks.count):
            members = np.flatnonzero(policy.blocks.of_value == block)
            pairs.append(members[np.stack(np.triu_indices(members.size, 1))])
        first, second = np.concatenate(pairs, axis=1)
        entry = min(budget(policy.epsilon), _LARGEST_BUDGET)
        return cls(policy.size, first, second, np.zeros_like(first), (entry,))

    @property
    def count(self) -> int:
        """Number of pairs P."""
        return len(self.first)

    def distances(self, rows: Entries) -> Integers:
        """Return `sum_j |A[j, x] - A[j, x']|` of each pair, int64 `(P,)`, exact."""
        levels = np.unique(rows)
        if len(levels) > _FEW_LEVELS or self.count * len(rows) <= _FEW_DIRECT:
            return self.weighted(rows, np.ones(len(rows))).astype(np.int64)
        # |a - b| counts the levels between a and b; products of 0 and 1 are exact in float64.
        total = np.zeros((self.size, self.size))
        for step, level in zip(np.diff(levels), levels[1:], strict=True):
            above = (rows >= level).astype(np.float64)
            ones = above.sum(axis=0)
            total += int(step) * (ones[:, None] + ones - 2.0 * (above.T @ above))
        return total[self.first, self.second].astype(np.int64)

    def weighted(self, rows: Entries, weights: Floats) -> Floats:
        """Return `sum_j weights[j] |A[j, x] - A[j, x']|`, float64 `(P,)`.

        Weights are >= 0, so that the relative error is below `2^-50 rows`; whole weights are exact.
        """
        out = np.empty(self.count)
        columns = np.ascontiguousarray(rows.T)
        step = max(1, _CELLS // max(1, len(rows)))
        for start in range(0, self.count, step):
            at = slice(start, start + step)
            gaps = np.abs(columns[self.first[at]] - columns[self.second[at]])
            out[at] = gaps @ weights
        return out

    def patterns(
        self, rows: Entries, kinds: Integers, places: Integers
    ) -> dict[tuple[int, ...], int]:
        """Return the different patterns of loss of the pairs at `places`, each with such a pair.

        A pattern holds the distance in the rows of each kind, and the number of the budget.
        `kinds` is the kind of each row, int64 `(rows,)`, numbered from 0.
        """
        examples: dict[tuple[int, ...], int] = {}
        count = int(kinds.max()) + 1
        step = max(1, _CELLS // (count + 1))
        for start in range(0, len(places), step):
            at = places[start : start + step]
            pairs = replace(self, first=self.first[at], second=self.second[at])
            gaps = [pairs.distances(rows[kinds == kind]) for kind in range(count)]
            table, example = np.unique(
                np.stack([*gaps, self.which[at]], axis=1), axis=0, return_index=True
            )
            for pattern, place in zip(table.tolist(), at[example].tolist(), strict=True):
                examples.setdefault(tuple(pattern), place)
        return examples


def harmless_rows(rows: Entries, pairs: ProtectedPairs) -> Bools:
    """Return which rows distinguish no protected pair, bool of shape `(rows,)`."""
    of_value = components(pairs.size, pairs.first, pairs.second)
    harmless: Bools = (rows == rows[:, of_value]).all(axis=1)
    return harmless


def uniform_rate(rows: Entries, pairs: ProtectedPairs) -> Fraction:
    """Return the largest u that all rows can share: the least `E / distance` over the pairs."""
    distances = pairs.distances(rows)
    largest = np.zeros(len(pairs.budgets), dtype=np.int64)
    np.maximum.at(largest, pairs.which, distances)
    rates = [e / int(d) for e, d in zip(pairs.budgets, largest, strict=True) if d > 0]
    if min(rates) <= 0:
        raise SpecError("policy", "budgets above 0 between values that the strategy tells apart")
    return min(rates)


def read_rates(
    scales: Sequence[float], rows: Entries, harmless: Bools
) -> tuple[Fraction | None, ...]:
    """Return u of each row, None if it is infinite (scale 0).

    A scale is the larger of the double and the decimal that was written, so that the guarantee
    holds for both.
    """
    if len(scales) != len(rows):
        raise SpecError("scales", f"{len(rows)} numbers, one a row, got {len(scales)}")
    rates: list[Fraction | None] = []
    for place, (scale, free) in enumerate(zip(scales, harmless.tolist(), strict=True)):
        if not 0 <= scale < float("inf"):
            raise SpecError(f"scales[{place}]", f"a finite number of at least 0, got {scale}")
        if scale == 0 and not free:
            raise SpecError(
                f"scales[{place}]", "a number above 0 for a row that tells protected values apart"
            )
        exact = max(Fraction(scale), Fraction(repr(float(scale))))
        rates.append(min(1 / exact, _LARGEST_RATE) if exact else None)
    return tuple(rates)


def check_rates(rows: Entries, rates: Sequence[Fraction], pairs: ProtectedPairs) -> None:
    """Refuse rates that violate the policy at some pair, exactly.

    Floats decide for losses far from the budget, fractions for those close to it.
    """
    distinct = sorted(set(rates))
    kinds = np.array([distinct.index(rate) for rate in rates], dtype=np.int64)
    losses = pairs.weighted(rows, np.array([float(rate) for rate in rates]))
    allowed = np.array([float(e) for e in pairs.budgets])[pairs.which]
    near = np.flatnonzero(losses > allowed * (1.0 - _MARGIN))
    if not near.size:
        return
    for (*counts, which), pair in pairs.patterns(rows, kinds, near).items():
        loss = sum((rate * n for rate, n in zip(distinct, counts, strict=True)), Fraction(0))
        if loss > pairs.budgets[which]:
            raise SpecError(
                "scales",
                f"scales that keep the policy: values {pairs.first[pair]} and {pairs.second[pair]} "
                f"lose {float(loss):.9g}, above their budget {float(pairs.budgets[which]):.9g}",
            )
