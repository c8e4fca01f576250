"""Base class of mechanisms that hide sensitive values among all values ([CA] Definition 3)."""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import is_whole, read_epsilon
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.texts import count
from ldpstream.mechanisms.channels.blanket import Blanket, of_supports
from ldpstream.mechanisms.channels.certificate import (
    Certificate,
    certify_by_enumeration,
    certify_by_structure,
)
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import SMALLEST_EPSILON, budget
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.policy import HighLowPolicy


@dataclass(frozen=True)
class SensitiveMechanism(Mechanism):
    """Protects the values in `sensitive`, out of `values` in all, with budget `epsilon`.

    The sensitive values are a group with reports of its own, which support some of them. With
    probability tau a report is uniform over those that support the user's value, or, of a value
    that is not sensitive, its own *plain* report. Otherwise it is uniform over the group's reports.

    With shares `rho` of reports that support a value, a sensitive value gives each report of the
    group the probability `L = tau/(rho K) + (1 - tau)/K` or `B = (1 - tau)/K`, and any other value
    gives it B. No ratio exceeds `L/B`, and a sensitive value gives no plain report.

    Raises:
        SpecError: if epsilon is not a finite number above 0 or so small that reports carry no
            information, no value is sensitive, or one is outside `0..values-1`.
    """

    epsilon: float
    values: int
    sensitive: frozenset[int]

    def __post_init__(self) -> None:
        read_epsilon(self.epsilon, "epsilon")
        if not self.sensitive:
            raise SpecError("sensitive", "at least one value to protect, got none")
        if not all(is_whole(value) and 0 <= value < self.values for value in self.sensitive):
            raise SpecError("sensitive", f"values in 0..{self.values - 1}")
        if self.values < 2:
            raise SpecError("domain", f"at least 2 values, got {self.values}")
        if self.own_threshold <= 0:
            raise SpecError("epsilon", f"a number of at least {SMALLEST_EPSILON}")

    @property
    @abstractmethod
    def own_threshold(self) -> int:
        """The probability tau in units of 2^-64, rounded down."""

    @property
    @abstractmethod
    def support(self) -> tuple[Fraction, Fraction]:
        """The fraction of the group's reports that support a value, and any two values."""

    @property
    @abstractmethod
    def listable(self) -> bool:
        """Whether certificates enumerate the channel."""

    @property
    def size(self) -> int:
        return self.values

    @property
    def policy(self) -> HighLowPolicy:
        """Epsilon from sensitive values to all values, infinity from the others."""
        return HighLowPolicy(self.epsilon, self.values, self.sensitive)

    @cached_property
    def groups(self) -> Blocks:
        """The sensitive values as group 0, and a group of each other value in domain order."""
        number = np.zeros(self.values, dtype=np.int64)
        number[self._plain] = 1 + np.arange(self._plain.size)
        return Blocks(number)

    @property
    def _plain(self) -> Indices:
        plain = np.ones(self.values, dtype=np.bool_)
        plain[list(self.sensitive)] = False
        return np.flatnonzero(plain)

    def sensitive_parameters(self) -> dict[str, Json]:
        """Return what the parameters say of the policy."""
        return {
            "epsilon": float(self.epsilon),
            "sensitive": {"count": len(self.sensitive), "sha256": self.policy.digest},
        }

    def tables(self) -> Mapping[str, Json]:
        numbers: list[Json] = [*sorted(self.sensitive)]
        return {"sensitive": numbers}

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of two values that the construction can produce, `L/B`."""
        tau = Fraction(self.own_threshold, WORD)
        return 1 + tau / (self.support[0] * (1 - tau))

    def check_tables(self) -> None:
        """Check what the proof by structure assumes of the tables.

        Raises:
            ValueError: if a sensitive value has a plain report, or two values share a place.
        """
        groups = self.groups
        inside = np.flatnonzero(groups.of_value == 0)
        places = np.unique(groups.position[inside])
        sound = set(inside.tolist()) == self.sensitive and places.size == inside.size
        if not sound or groups.count != 1 + self.values - inside.size:
            raise ValueError(f"the tables of {self.id} are not what its proof assumes")

    def certify(self) -> Certificate:
        """Prove the realised loss: by enumeration if the channel is small, else by structure.

        By structure: no ratio exceeds `L/B`, and some report attains it.
        """
        if self.listable:
            return certify_by_enumeration(self.id, self.policy, self.channel(), self.disclosed())
        self.check_tables()
        ratios = {budget(self.epsilon): self.ratio}
        return certify_by_structure(self.id, self.policy, ratios, self.disclosed())

    def blankets(self) -> Mapping[Fraction, Collection[Blanket]]:
        """Return the blanket of two sensitive values: every value can give the group's reports."""
        if len(self.sensitive) < 2:
            return {}
        return {budget(self.epsilon): [of_supports(self.ratio, *self.support)]}

    def disclosed(self) -> list[str]:
        exposed = self.values - len(self.sensitive)
        if not exposed:
            return []
        values = count(exposed, "value")
        often = self.own_threshold / WORD
        return [f"the value itself, with probability {often:.4g}, for {values} not sensitive"]
