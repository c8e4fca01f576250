"""Scales of the rows' noise that keep a policy, in exact arithmetic ([ML] Theorem 1).

A policy holds if and only if `sum_j |A[j, x] - A[j, x']| u_j <= E[x, x']` for all pairs, with
`u_j = 1/s_j`. By default all rows share the largest such u; scales from the configuration are
checked against the same condition. Rows that distinguish only unprotected values have scale 0: they
are exact.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.families.matrix.pairs import ProtectedPairs

Rows = NDArray[np.int32]

_MARGIN = 1e-9
_LARGEST_RATE = Fraction(1 << 900)
"""Larger rates count as this one: noise has at most 64 log 2, and floats can hold its losses."""


def harmless_rows(rows: Rows, pairs: ProtectedPairs) -> NDArray[np.bool_]:
    """Return which rows distinguish no protected pair, bool of shape `(rows,)`."""
    of_value = pairs.components()
    harmless: NDArray[np.bool_] = (rows == rows[:, of_value]).all(axis=1)
    return harmless


def uniform_rate(rows: Rows, pairs: ProtectedPairs) -> Fraction:
    """Return the largest u that all rows can share: the least `E / distance` over the pairs.

    Raises:
        SpecError: if rows distinguish a pair with the budget 0.
    """
    distances = pairs.distances(rows)
    largest = np.zeros(len(pairs.budgets), dtype=np.int64)
    np.maximum.at(largest, pairs.which, distances)
    rates = [e / int(d) for e, d in zip(pairs.budgets, largest, strict=True) if d > 0]
    if min(rates) <= 0:
        raise SpecError("policy", "budgets above 0 between values that the strategy tells apart")
    return min(rates)


def read_rates(
    scales: Sequence[float], rows: Rows, harmless: NDArray[np.bool_]
) -> tuple[Fraction | None, ...]:
    """Return u of each row, None if it is infinite (scale 0).

    A scale is the larger of the double and the decimal that was written, so that the guarantee
    holds for both.

    Raises:
        SpecError: unless there is one finite scale of at least 0 for each row, and above 0 for rows
            that distinguish protected values.
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


def check_rates(rows: Rows, rates: Sequence[Fraction], pairs: ProtectedPairs) -> None:
    """Refuse rates that violate the policy at some pair, exactly.

    Floats decide for losses far from the budget, fractions for those close to it.

    Raises:
        SpecError: naming such a pair, its loss and its budget.
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
