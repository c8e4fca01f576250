"""Base class of mechanisms with a budget for each index step, and their certificates by structure.

Their policy is `E = epsilon * |x - x'|_p` (docs/theory.md sections 5 and 8). A private weight
is one more dimension (`weights.private`), which is summed out for estimates of the values alone.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self

from ldpstream.mechanisms.base.canonical import json_number
from ldpstream.mechanisms.base.checks import read_epsilon
from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.channels.certificate import Certificate, certify_by_structure
from ldpstream.mechanisms.domains.base import Domain, check_extents
from ldpstream.mechanisms.exact.dyadic import budget, exp_floor
from ldpstream.mechanisms.families.weights.private import WeightedDomain, weighted_shape
from ldpstream.mechanisms.interface.mechanism import Json, Mechanism, Statistic
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.policies.metric import MetricPolicy, check_p, keeps_lp


@dataclass(frozen=True)
class StepMechanism(Mechanism):
    """Budget `epsilon` for each index step, in dimensions of `shape` values.

    With a `p` above 1 the budget is epsilon times the L^p distance, which `metric.l1_epsilon` for
    each step keeps. Values are in row-major order. `widths` are the widths of an interval's bins,
    one for each dimension, and `rounded` says that numbers are rounded at random to the edges; both
    only serve to state the policy for real numbers. `weighted` says that the last dimension is a
    weight.

    Raises:
        SpecError: if epsilon is not a finite number above 0, the shape is not a domain, or p is
            neither a whole number in 1..64 nor infinity.
    """

    epsilon: float
    shape: tuple[int, ...]
    widths: tuple[float, ...] | None = None
    rounded: bool = False
    p: float = 1
    weighted: bool = False

    def __post_init__(self) -> None:
        read_epsilon(self.epsilon, "epsilon")
        check_extents(self.shape, "shape")
        object.__setattr__(self, "p", check_p(self.p))
        self.check_shape(self.shape, "shape")

    @classmethod
    def check_shape(cls, shape: tuple[int, ...], path: str) -> None:
        """Refuse domains that are too large; by default no domain is."""

    @classmethod
    def configure(cls, settings: Settings) -> Self:
        settings.only(cls.id, "epsilon", "policy", "weights")
        policy = _read_metric(settings, cls.id)
        weighted = weighted_shape(settings, policy)
        shape = policy.shape if weighted is None else weighted
        cls.check_shape(shape, f"{settings.path}.domain")
        with within(settings.path):
            return cls(
                policy.epsilon,
                shape,
                policy.widths,
                policy.rounded,
                policy.p,
                weighted is not None,
            )

    def report_domain(self, domain: Domain) -> Domain:
        return WeightedDomain(domain, self.shape[-1] - 1) if self.weighted else domain

    @cached_property
    def marginal(self) -> Self | None:
        return replace(self, shape=self.shape[:-1], weighted=False) if self.weighted else None

    def marginal_statistic(self, statistic: Statistic) -> Statistic:
        """Return the sums over all weights of each value."""
        return self.sum_out(statistic.reshape(-1, self.shape[-1])) if self.weighted else statistic

    @abstractmethod
    def sum_out(self, table: Statistic) -> Statistic:
        """Return the statistic of the values alone, from a table with one row for each value."""

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def policy(self) -> MetricPolicy:
        """Epsilon times the L^p distance."""
        return MetricPolicy(self.epsilon, self.shape, self.widths, self.rounded, p=self.p)

    @property
    @abstractmethod
    def threshold(self) -> int:
        """The realised probability for the budget of a step, in units of 2^-64."""

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """The sizes of the dimensions with two values or more; others have nothing to send."""
        return tuple(length for length in self.shape if length > 1)

    def parameters(self) -> Mapping[str, Json]:
        return {
            "epsilon": float(self.epsilon),
            "threshold": hex(self.threshold),
            "shape": list(self.shape),
            **({} if self.p == 1 else {"p": json_number(self.p)}),
        }

    def disclosed(self) -> list[str]:
        """Return nothing, since any value can produce any report."""
        return []


def _read_metric(settings: Settings, mechanism: str) -> MetricPolicy:
    """Return epsilon times the L1 distance, or times the L^p distance that a `policy` names.

    A mechanism with the budget `MetricPolicy.step` for each index step keeps either.
    """
    domain, path = settings.domain, settings.path
    if not domain.ordered:
        raise SpecError(
            f"{path}.domain",
            f"an ordered domain with {mechanism} (size, sizes, grid or interval), got labels",
        )
    if "policy" in settings.keys:
        policy = settings.read_policy()
        if not isinstance(policy, MetricPolicy):
            raise SpecError(f"{path}.policy", f'metric = "l1", "l2" or "lp" with {mechanism}')
        if policy.scale is not None:
            raise SpecError(f"{path}.policy.scale", f"no scale with {mechanism}")
        return policy
    epsilon = settings.read_step_epsilon()
    return MetricPolicy(epsilon, domain.shape, domain.widths, domain.rounded)


def certify_steps(
    mechanism: str, policy: MetricPolicy, ratio: Fraction, disclosed: list[str]
) -> Certificate:
    """Prove a policy without a scale from the ratio of two values one step apart.

    Under the L1 metric the losses of all steps between two values add up, and so do the budgets.
    For other p a step's ratio is within `e^s` for s = `policy.step`, and `s |d|_1 <= epsilon |d|_p`
    (Hoelder's inequality, checked exactly). The certificate then lists the losses of one step and
    of a step in every dimension, which is the tightest.
    """
    dimensions = sum(extent > 1 for extent in policy.shape)
    if policy.p == 1 or dimensions == 1:
        return certify_by_structure(mechanism, policy, {policy.step: ratio}, disclosed)
    proved = keeps_lp(policy.step, budget(policy.epsilon), dimensions=dimensions, p=policy.p)
    broken = not proved or ratio > exp_floor(policy.step)
    everywhere = policy.budget_of(tuple(int(extent > 1) for extent in policy.shape))
    return certify_by_structure(
        mechanism,
        policy,
        {budget(policy.epsilon): ratio, everywhere: ratio**dimensions},
        disclosed,
        violation=f"a step's ratio above e^{float(policy.step)}" if broken else None,
    )
