"""Operations on policies: the shortest-path closure, and the sum of composition."""

import math
from fractions import Fraction

import numpy as np

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.policies.matrix import MAX_MATRIX_VALUES, MatrixPolicy
from ldpstream.mechanisms.policies.policy import Policy


def closure(policy: Policy) -> MatrixPolicy:
    """Return the shortest-path closure: the least budgets that a policy implies.

    Ratios multiply along a chain of values, so that a channel that satisfies E also satisfies
    `min(E[x, x1] + E[x1, x2] + ... + E[xr, x'])` over all chains ([ML] I-A states this for
    symmetric metrics; it holds equally for asymmetric E and infinite entries). Computed by Floyd
    and Warshall's algorithm in exact integers over one denominator.

    Raises:
        SpecError: for more than 1000 values.

    >>> policy = MatrixPolicy.of([[0, 1, 5], [1, 0, 1], ["inf", 1, 0]])
    >>> [str(entry) for entry in closure(policy).entries[2]]
    ['2', '1', '0']
    """
    entries = _entries(policy)
    unit = math.lcm(*(e.denominator for row in entries for e in row if e is not None))
    far = 1 + sum(int(e * unit) for row in entries for e in row if e is not None)
    # No finite path is longer than the sum of all entries: `far` and above is infinite.
    table = [[far if e is None else int(e * unit) for e in row] for row in entries]
    # Sums of two lengths stay below `2 far`; Python's integers take over if 64 bits are too few.
    lengths = np.array(table, dtype=np.int64 if far < 1 << 62 else object)
    for middle in range(policy.size):
        lengths = np.minimum(lengths, lengths[:, middle, None] + lengths[middle])
    return MatrixPolicy(
        tuple(
            tuple(Fraction(n, unit) if n < far else None for n in row) for row in lengths.tolist()
        )
    )


def compose(*policies: Policy) -> MatrixPolicy:
    """Return the sum of policies over the same values ([CA] Proposition 2).

    Several reports of one value, randomised independently by channels that satisfy one policy each,
    together form a channel that satisfies the sum. A sum with an infinite term is infinite.

    Raises:
        SpecError: if there is no policy, the numbers of values differ, or exceed 1000.

    >>> twice = compose(*[MatrixPolicy.of([[0, 0.5], ["inf", 0]])] * 2)
    >>> twice.entry(0, 1), twice.entry(1, 0)
    (Fraction(1, 1), None)
    """
    sizes = sorted({policy.size for policy in policies})
    if len(sizes) != 1:
        raise SpecError("policy", f"policies of one number of values, got {sizes}")
    total, *others = (_entries(policy) for policy in policies)
    for entries in others:
        total = [
            [None if a is None or b is None else a + b for a, b in zip(row, more, strict=True)]
            for row, more in zip(total, entries, strict=True)
        ]
    return MatrixPolicy(tuple(tuple(row) for row in total))


def _entries(policy: Policy) -> list[list[Fraction | None]]:
    if policy.size > MAX_MATRIX_VALUES:
        raise SpecError("policy", f"at most {MAX_MATRIX_VALUES} values, got {policy.size}")
    values = range(policy.size)
    return [[policy.entry(x, other) for other in values] for x in values]
