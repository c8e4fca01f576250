"""Randomised response among k values, without blocks: docs/how-to/write-a-mechanism.md.

A value is reported with probability T / 2^64, any other one equally likely, with the largest T
whose odds are at most e^epsilon.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.channels.certificate import Certificate, certify_by_enumeration
from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import budget, set_threshold
from ldpstream.mechanisms.exact.entropy import WORD, Entropy, bernoulli_each, uniform_below_each
from ldpstream.mechanisms.interface.mechanism import Json, Reports
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.interface.symbols import DenseDecoder, SymbolMechanism
from ldpstream.mechanisms.policies.policy import BlockPolicy


@dataclass(frozen=True)
class PlainResponse(SymbolMechanism):
    """The own value of `values` with probability `threshold / 2^64`, else any other one."""

    id: ClassVar[str] = "plain-response"
    epsilon: float
    values: int

    @classmethod
    def configure(cls, settings: Settings) -> Self:
        settings.only(cls.id, "epsilon")
        return cls(settings.read_epsilon(), settings.domain.size)

    @property
    def size(self) -> int:
        return self.values

    @property
    def outputs(self) -> int:
        return self.values

    @property
    def policy(self) -> BlockPolicy:
        return BlockPolicy(self.epsilon, Blocks.one(self.values))

    @property
    def threshold(self) -> int:
        """Probability of the own value in units of 2^-64, rounded down."""
        return set_threshold(budget(self.epsilon), 1, self.values - 1)

    def parameters(self) -> Mapping[str, Json]:
        threshold = hex(self.threshold)
        return {"epsilon": self.epsilon, "values": self.values, "threshold": threshold}

    def channel(self) -> Channel:
        own = Fraction(self.threshold, WORD)
        other = (1 - own) / (self.values - 1)
        reports = range(self.values)
        rows = tuple({y: own if x == y else other for y in reports} for x in reports)
        return Channel(rows=rows, outputs=self.values)

    def certify(self) -> Certificate:
        return certify_by_enumeration(self.id, self.policy, self.channel(), self.disclosed())

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        own = bernoulli_each(entropy, np.full(len(values), self.threshold, dtype=np.uint64))
        other = uniform_below_each(entropy, np.full(len(values), self.values - 1))
        return np.where(own, values, other + (other >= values))

    @locked_cached_property
    def decoder(self) -> DenseDecoder:
        """The decoder `h_x(y) = (1{y = x} - other) / (own - other)`."""
        own = self.threshold / WORD
        other = (1 - own) / (self.values - 1)
        same = np.eye(self.values)
        return DenseDecoder((same - other) / (own - other), same * (own - other) + other)

    def disclosed(self) -> list[str]:
        return []
