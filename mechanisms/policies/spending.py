"""The joint loss of several reports of one person: policies add up ([CA] Proposition 2).

Reports are drawn independently, so that their joint probability is a product and the losses of two
sequences of values add up: `sum_t E_t[x_t, x'_t]`. This holds however the values depend on each
other, and also for one value reported again and again, where every term is of the same pair. All
sums are exact rationals.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.policies.algebra import closure
from ldpstream.mechanisms.policies.attributes import AttributesPolicy
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.lip_policy import LipPolicy
from ldpstream.mechanisms.policies.matrix import MAX_MATRIX_VALUES
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BinaryPolicy, BlockPolicy, HighLowPolicy, Policy
from ldpstream.mechanisms.policies.prior import PriorPolicy
from ldpstream.mechanisms.policies.public_weights import PublicWeightPolicy


def largest_loss(policy: Policy) -> Fraction:
    """Return the largest finite budget of any ordered pair: the most that one report loses.

    Pairs without a budget are left out, since they are unprotected by any number of reports.

    Raises:
        SpecError: for more than 1000 values, unless the policy is one of blocks, sensitive values,
            a metric or priors.

    >>> largest_loss(MetricPolicy(0.5, (4, 3)))
    Fraction(5, 2)
    """
    if isinstance(policy, PublicWeightPolicy):
        return largest_loss(policy.values)
    if isinstance(policy, AttributesPolicy):
        return max(map(largest_loss, policy.parts))
    if isinstance(policy, MetricPolicy):
        return policy.entry(0, policy.size - 1)  # opposite corners
    if isinstance(policy, BinaryPolicy):
        return max(budget for *_, budget in policy.constraints())
    if isinstance(policy, LipPolicy):
        return policy.implied
    if isinstance(policy, PriorPolicy):
        return _finite(policy.entry(0, 1))
    if isinstance(policy, BlockPolicy):
        block = int(policy.blocks.sizes.argmax())
        first, second, *_ = (policy.blocks.of_value == block).nonzero()[0].tolist()
        return _finite(policy.entry(first, second))
    if isinstance(policy, HighLowPolicy):
        sensitive = min(policy.sensitive)
        return _finite(policy.entry(sensitive, 1 if sensitive == 0 else 0))
    return _largest_listed(policy)


def _largest_listed(policy: Policy) -> Fraction:
    """Return the same where budgets are given one by one."""
    if policy.size > MAX_MATRIX_VALUES:
        raise SpecError(
            "policy",
            f"at most {MAX_MATRIX_VALUES} values to add up budgets that are given one by one, "
            f"got {policy.size}",
        )
    if isinstance(policy, GraphPolicy):
        return policy.longest
    entries = closure(policy).entries
    return max(entry for row in entries for entry in row if entry is not None)


def _finite(entry: Fraction | None) -> Fraction:
    assert entry is not None
    return entry


@dataclass(frozen=True)
class SumPolicy(Policy):
    """The sum of policies over the same values, as terms `(policy, times)`.

    Like `algebra.compose`, but without a matrix, and hence for any number of values.

    Raises:
        SpecError: if there is no policy, or the numbers of values differ.

    >>> one_sided = BinaryPolicy(0.5, float("inf"))
    >>> total = SumPolicy(((one_sided, 3), (BinaryPolicy(0.1, 1.0), 1)))
    >>> total.entry(0, 1), total.entry(1, 0)
    (Fraction(8, 5), None)
    """

    terms: tuple[tuple[Policy, int], ...]

    def __post_init__(self) -> None:
        sizes = sorted({policy.size for policy, _ in self.terms})
        if len(sizes) != 1:
            raise SpecError("policy", f"policies of one number of values, got {sizes}")

    @property
    def size(self) -> int:
        return self.terms[0][0].size

    def entry(self, value: int, other: int) -> Fraction | None:
        total = Fraction(0)
        for policy, times in self.terms:
            entry = policy.entry(value, other)
            if entry is None and times:
                return None
            total += times * (entry or 0)
        return total

    @property
    def _taken(self) -> Sequence[Policy]:
        return [policy for policy, times in self.terms if times]

    @property
    def unprotected_pairs(self) -> int:
        """Number of ordered pairs of different values that some term does not protect.

        Counted pair by pair if more than one term leaves pairs unprotected.
        """
        open_ones = [policy for policy in self._taken if policy.unprotected_pairs]
        if len(open_ones) < 2:
            return sum(policy.unprotected_pairs for policy in open_ones)
        return sum(any(p.entry(*pair) is None for p in open_ones) for pair in self.pairs())

    @property
    def unprotected(self) -> str | None:
        said = [text for policy in self._taken if (text := policy.unprotected) is not None]
        return "; ".join(dict.fromkeys(said)) or None

    def describe(self) -> dict[str, Json]:
        terms: list[Json] = [
            {"times": times, "policy": policy.describe()} for policy, times in self.terms
        ]
        return {"kind": "sum", "size": self.size, "terms": terms}


def first_beyond(spent: Policy, allowed: Policy) -> tuple[int, int] | None:
    """Return a pair whose budget in `spent` exceeds that in `allowed`, or None.

    Compares the pairs that imply all others (`Policy.pairs`).
    """
    return next(_beyond(spent, allowed), None)


def _beyond(spent: Policy, allowed: Policy) -> Iterator[tuple[int, int]]:
    for value, other, budget in allowed.constraints():
        entry = spent.entry(value, other)
        if entry is None or entry > budget:
            yield value, other
