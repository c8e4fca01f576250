"""Public weights: a number for each value that is sent in the clear.

The value is randomised independently of the weight. Two values with the same weight are as well
protected as without weights, and the weight is not protected (docs/theory.md section 5). The
statistic holds that of the values three times: with each report once, times its weight, and times
the square of its weight. The second gives sums of weights, the third their noise
(`estimators.weights`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.checks import check_keys, describe, is_whole
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.channels.certificate import (
    ENUMERATION_LIMIT,
    Certificate,
    certify_by_enumeration,
)
from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.exact.entropy import Entropy
from ldpstream.mechanisms.families.weights.private import WeightedDomain
from ldpstream.mechanisms.interface.mechanism import Json, Mechanism, Reports, Statistic
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.interface.symbols import from_bytes, to_bytes
from ldpstream.mechanisms.policies.composition import PublicWeightPolicy

LARGEST_PUBLIC_WEIGHT: Final = 4_095
"""Sums of squared weights then stay below 2^63 for 2^39 reports (550 billion) in one statistic."""

_LISTED_PAIRS = 1 << 20


@dataclass(frozen=True)
class PublicWeights(Mechanism):
    """The mechanism `values`, with a weight in `0..largest` for each value.

    A value here is a pair of value and weight, `(largest + 1) * value + weight`. Reports are rows
    of bytes, uint8 `(n, report_bytes)`: the value's own report as it is encoded, then the weight,
    little-endian in the fewest whole bytes that hold `largest`.

    Raises:
        SpecError: if the largest weight is not a whole number in 1..4095, beyond which sums of
            squares might overflow.
    """

    values: Mechanism
    largest: int

    def __post_init__(self) -> None:
        _check_largest(self.largest, "weights.public")
        # Weights are a setting of the values' mechanism: the id stays the same.
        object.__setattr__(self, "id", self.values.id)

    @classmethod
    def configure(cls, settings: Settings) -> NoReturn:
        """Refuse: the settings do not say which mechanism the values have (`over`)."""
        raise SpecError(f"{settings.path}.mechanism", "the mechanism of the values")

    @classmethod
    def over(cls, kind: type[Mechanism], settings: Settings) -> Self:
        """Build a mechanism with weights from a collection's keys."""
        path = f"{settings.path}.weights"
        table = check_keys(settings.keys.get("weights"), frozenset({"public"}), path)
        keys = {key: value for key, value in settings.keys.items() if key != "weights"}
        values = kind.configure(replace(settings, keys=keys))
        policy = values.policy
        if policy.by_entries() is not policy:
            raise SpecError(path, "no weights with a policy that compares with a prior")
        return cls(values, _check_largest(table.get("public"), f"{path}.public"))

    def report_domain(self, domain: Domain) -> Domain:
        return WeightedDomain(self.values.report_domain(domain), self.largest, public=True)

    @cached_property
    def marginal(self) -> Mechanism:
        return self.values

    def marginal_statistic(self, statistic: Statistic) -> Statistic:
        """Return the first of the three statistics."""
        plain: Statistic = self.powers(statistic)[0].copy()
        return plain

    def powers(self, statistic: Statistic) -> Statistic:
        """Return the values' statistics with each report counted once, w_i times and w_i^2 times.

        A view, int64 of shape `(3, values.statistic_size)`.
        """
        return statistic.reshape(3, -1)

    def chain(self, epsilon: object) -> NoReturn:
        """Refuse, since the weight is sent in the clear in every window."""
        del epsilon
        raise SpecError(
            "hold.epsilon",
            "no such key with public weights, which are repeated as they are: hold = H repeats "
            "the whole report",
        )

    @property
    def weights(self) -> int:
        """Number of weights, 0 included."""
        return self.largest + 1

    @property
    def size(self) -> int:
        return self.values.size * self.weights

    @property
    def weight_bytes(self) -> int:
        """Length of a weight: the fewest whole bytes that hold the largest."""
        return -(-self.largest.bit_length() // 8)

    @property
    def report_bytes(self) -> int:
        return self.values.report_bytes + self.weight_bytes

    @property
    def report_bits(self) -> int:
        return self.values.report_bits + self.largest.bit_length()

    @property
    def statistic_size(self) -> int:
        return 3 * self.values.statistic_size

    @cached_property
    def policy(self) -> PublicWeightPolicy:
        """The values' policy under one weight; different weights are not protected."""
        return PublicWeightPolicy(self.values.policy, self.weights)

    def parameters(self) -> Mapping[str, Json]:
        return {**self.values.parameters(), "weights": self.largest}

    def tables(self) -> Mapping[str, Json]:
        return self.values.tables()

    def possible_reports(self) -> Reports:
        """Return every report of a value with every weight, the weight varying fastest."""
        reports = self.values.encode(self.values.possible_reports())
        if len(reports) * self.weights > _LISTED_PAIRS:
            raise ValueError(f"the {len(reports) * self.weights} reports are too many to list")
        weights = np.tile(np.arange(self.weights, dtype=np.int64), len(reports))
        return self._row(np.repeat(reports, self.weights, axis=0), weights)

    def channel(self) -> Channel:
        """Return the values' channel once for each weight."""
        channel = self.values.channel()
        if channel.size * channel.outputs * self.weights > _LISTED_PAIRS:
            raise ValueError(f"the channel of {self.size} pairs is too large to enumerate")
        rows = tuple(
            {y * self.weights + weight: p for y, p in row.items()}
            for row in channel.rows
            for weight in range(self.weights)
        )
        return Channel(rows, channel.outputs * self.weights)

    def certify(self) -> Certificate:
        """Prove the realised loss: by enumeration up to 64 pairs, else by structure.

        By structure: the weight does not influence the report of the value, so that two pairs with
        the same weight have the ratios of their values, which are proved without weights.
        """
        certificate = self.values.certify()
        policy, disclosed = self.policy, self.disclosed()
        if self.size <= ENUMERATION_LIMIT and certificate.proof == "enumeration":
            return certify_by_enumeration(self.id, policy, self.channel(), disclosed)
        return replace(
            certificate,
            policy=policy.describe(),
            disclosed=tuple(disclosed),
            unprotected_pairs=policy.unprotected_pairs,
            unprotected=policy.unprotected,
            proof="structure",
        )

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise the values of pairs, int64 `(n,)`; their weights stay as they are."""
        labels, weights = np.divmod(values, self.weights)
        return self._row(self.values.encode(self.values.randomise(labels, entropy)), weights)

    def _row(self, reports: NDArray[np.uint8], weights: NDArray[np.int64]) -> Reports:
        return np.concatenate([reports, to_bytes(weights, self.weight_bytes)], axis=1)

    def _weights_of(self, reports: Reports) -> NDArray[np.int64]:
        return from_bytes(reports[:, self.values.report_bytes :])

    def _values_of(self, reports: Reports) -> tuple[Reports, NDArray[np.bool_]]:
        return self.values.decode(np.ascontiguousarray(reports[:, : self.values.report_bytes]))

    def encode(self, reports: Reports) -> NDArray[np.uint8]:
        return np.asarray(reports, dtype=np.uint8).reshape(-1, self.report_bytes)

    def decode(self, payload: NDArray[np.uint8]) -> tuple[Reports, NDArray[np.bool_]]:
        """Return the payload, and which rows are a report of a value with a weight."""
        _, valid = self._values_of(payload)
        return payload, valid & (self._weights_of(payload) <= self.largest)

    def accumulate(self, statistic: Statistic, reports: Reports) -> None:
        """Add reports once, times their weights, and times the squares of these, in place."""
        if not len(reports):
            return
        columns, weights = self._values_of(reports)[0], self._weights_of(reports)
        plain, weighted, squared = self.powers(statistic)
        self.values.accumulate(plain, columns)
        self.values.accumulate_times(weighted, columns, weights)
        self.values.accumulate_times(squared, columns, weights**2)

    def count(self, statistic: Statistic) -> int:
        return self.values.count(self.powers(statistic)[0])

    @property
    def decoder(self) -> NoReturn:
        """Refuse: queries are of values (`marginal`) and of sums of weights, not of their pairs."""
        raise ValueError("expected queries of values: the decoder is that of the values")

    def disclosed(self) -> list[str]:
        return [*self.values.disclosed(), "the weight"]


def asks_public(settings: Settings) -> bool:
    """Return whether a collection's weights are public."""
    weights = settings.keys.get("weights")
    return isinstance(weights, dict) and "public" in weights


def _check_largest(raw: object, path: str) -> int:
    if not is_whole(raw) or not 1 <= raw <= LARGEST_PUBLIC_WEIGHT:
        raise SpecError(
            path,
            f"the largest weight, a number in 1..{LARGEST_PUBLIC_WEIGHT} (sums of the squares of "
            f"larger ones might overflow), got {'none' if raw is None else describe(raw)}",
        )
    return raw
