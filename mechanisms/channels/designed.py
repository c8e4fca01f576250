"""Channels given as a table of multiples of 2^-64, together with the policy that they keep."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.base.canonical import Json, canonical_json
from ldpstream.mechanisms.base.checks import is_whole
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.channels.certificate import (
    Certificate,
    certify_by_enumeration,
    certify_by_structure,
)
from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.exact.dyadic import exp_floor, log_estimate
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.policies.policy import Policy
from ldpstream.mechanisms.policies.prior import PriorPolicy
from ldpstream.mechanisms.policies.tabled import policy_document

MAX_OUTPUTS = 1 << 16
"""Largest number of reports that a table may have."""


@dataclass(frozen=True)
class DesignedChannel:
    """A channel as a table of integers, and the prior that it was designed for.

    `weights[x][y]` is `P(y | x)` in units of 1/total; `prior` holds k shares. `total` is 2^64,
    except for the permanent draws that reports of such a channel can follow from. `record` says how
    the channel was designed (workload, predicted variance, gap) and has no effect. Channels are
    equal if their contents are.

    Raises:
        SpecError: if there is not one row for each value of the policy, a row holds a negative
            entry or does not sum to the total, no value can produce some output, the prior is not
            a distribution above 0, or different distributions of values give the same reports.
    """

    policy: Policy
    weights: tuple[tuple[int, ...], ...]
    prior: tuple[float, ...]
    record: Mapping[str, Json] = field(default_factory=dict, compare=False)
    total: int = WORD

    def __post_init__(self) -> None:
        size = self.policy.size
        if len(self.weights) != size:
            raise SpecError("weights", f"{size} rows, one for each value, got {len(self.weights)}")
        if not 1 <= self.outputs <= MAX_OUTPUTS:
            raise SpecError("weights", f"1..{MAX_OUTPUTS} reports, got {self.outputs}")
        for value, row in enumerate(self.weights):
            if len(row) != self.outputs:
                raise SpecError(f"weights[{value}]", f"{self.outputs} entries, got {len(row)}")
            if not all(is_whole(weight) and weight >= 0 for weight in row):
                raise SpecError(f"weights[{value}]", "whole numbers of at least 0")
            if sum(row) != self.total:
                share = float(Fraction(sum(row), self.total))
                raise SpecError(f"weights[{value}]", f"a sum of 2^64, got {share:.17g} of it")
        if not all(any(column) for column in zip(*self.weights, strict=True)):
            raise SpecError("weights", "reports that some value can make, got a column of zeros")
        self._check_prior()
        if np.linalg.matrix_rank(self.whitened) < size:
            raise SpecError("weights", "an invertible channel, got linearly dependent rows")

    def _check_prior(self) -> None:
        shares = np.array(self.prior, dtype=np.float64)
        whole = shares.shape == (self.policy.size,) and abs(float(shares.sum()) - 1.0) < 1e-9
        if not whole or not (shares > 0.0).all():
            raise SpecError("prior", f"{self.policy.size} numbers above 0 with sum 1")
        if not (self.probabilities > 0.0).all():
            raise SpecError("prior", "shares large enough to give every report a probability")

    @property
    def outputs(self) -> int:
        """Number of reports."""
        return len(self.weights[0]) if self.weights else 0

    @cached_property
    def matrix(self) -> Floats:
        """The channel `Q`, each entry correctly rounded: float64 `(k, outputs)`."""
        return np.array(self.weights, dtype=np.float64) / self.total

    @cached_property
    def probabilities(self) -> Floats:
        """`P(y)` if the design prior holds: float64 `(outputs,)`."""
        shares: Floats = np.array(self.prior) @ self.matrix
        return shares

    @cached_property
    def whitened(self) -> Floats:
        """`Q / sqrt(P(y))`; its squared singular values are those of the information matrix I."""
        out: Floats = self.matrix / np.sqrt(self.probabilities)
        return out

    @cached_property
    def channel(self) -> Channel:
        """The channel in exact rationals."""
        return Channel(
            tuple(
                {y: Fraction(weight, self.total) for y, weight in enumerate(row) if weight}
                for row in self.weights
            ),
            self.outputs,
        )

    def certify(self, mechanism: str, disclosed: list[str]) -> Certificate:
        """Return a certificate that proves or refutes the policy at every output, exactly."""
        if isinstance(self.policy, PriorPolicy):
            return certify_prior(mechanism, self.policy, self.weights, disclosed)
        return certify_by_enumeration(mechanism, self.policy, self.channel, disclosed)

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hex, of policy, prior and weights: devices and servers must agree on it."""
        return hashlib.sha256(canonical_json(self.content())).hexdigest()

    def content(self) -> dict[str, Json]:
        """Return policy, prior and weights as JSON, exactly."""
        return {
            "policy": policy_document(self.policy),
            "prior": list(self.prior),
            "weights": [[hex(weight) for weight in row] for row in self.weights],
        }


def certify_prior(
    mechanism: str,
    policy: PriorPolicy,
    weights: Sequence[Sequence[int]],
    disclosed: list[str],
) -> Certificate:
    """Prove or refute `e^-eps <= P(x | y) / prior[x] <= e^eps` at every value and report, exactly.

    `weights[x][y]` is proportional to `P(y | x)`. The certificate names the largest violation.
    """
    worst, violation = Fraction(1), None
    for output, column in enumerate(zip(*weights, strict=True)):
        ratio, value = policy.worst_ratio(column)
        if ratio is None:
            violation = f"value {value} at output {output}, which it cannot produce"
            break
        if ratio > worst:
            worst = ratio
            if ratio > exp_floor(policy.budget):
                violation = (
                    f"value {value} at output {output}: loss {log_estimate(ratio):.6g} "
                    f"above the budget {policy.epsilon:.6g}"
                )
    return certify_by_structure(
        mechanism,
        policy,
        {policy.budget: worst},
        disclosed,
        violation=violation,
        proof="enumeration",
    )
