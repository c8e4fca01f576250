"""The one interface that every mechanism implements.

A mechanism is a frozen specification: a permanent id, its parameters and its policy. Everything
else follows from it: the channel (exact rationals), the certificate, `privatize`, the fixed-length
encoding of reports, the exact statistic, and the decoder of linear queries. Devices and servers
build it from the same parameters, so that they always agree. Tables of which the parameters hold
only a digest are part of a device's document (docs/wire.md).

Notation of `docs/theory.md`: `k` values, a report `y`, the channel `Q[x, y] = P(y | x)`, counts
`N[y]` of `n` reports, decoders `h` with `Q h = w` for a linear query `w`.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, unmasked
from ldpstream.mechanisms.base.canonical import Json as Json
from ldpstream.mechanisms.base.errors import SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.channels.blanket import Blanket, blankets_by_enumeration
from ldpstream.mechanisms.channels.certificate import ENUMERATION_LIMIT, Certificate
from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.exact.entropy import Entropy, SystemEntropy
from ldpstream.mechanisms.interface.chain import Chain
from ldpstream.mechanisms.interface.decoder import Decoder as Decoder
from ldpstream.mechanisms.interface.decoder import Statistic as Statistic
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.policies.policy import Policy

Reports = NDArray[Any]
"""n reports, one a row: int64 symbols of shape `(n,)`, or integers of shape `(n, width)`."""


class Mechanism(ABC):
    """A frozen specification of a local randomiser.

    Concrete mechanisms are frozen dataclasses, registered once in
    `ldpstream.mechanisms.registry.registry`.
    """

    id: ClassVar[str]
    """Permanent identifier, as written in configurations and hashed into fingerprints."""
    partial: ClassVar[bool] = False
    """Whether there are parameters with which some queries have no answer (`unanswered`)."""

    @classmethod
    @abstractmethod
    def configure(cls, settings: Settings) -> Self:
        """Build the mechanism from a collection's keys.

        Raises:
            SpecError: naming the key's path and what was expected; unknown keys are refused too.
        """

    def report_domain(self, domain: Domain) -> Domain:
        """Return the domain whose labels devices give, of `size` values.

        By default the collection's domain; a mechanism that takes more than a value extends it.
        """
        return domain

    @cached_property
    def marginal(self) -> "Mechanism | None":
        """The mechanism of the values alone, if devices give a weight with each value."""
        return None

    def unanswered(self, weights: Floats | None) -> tuple[int, int] | None:
        """Return two values whose shares the reports do not separate, if a query needs them.

        `weights` are the query's, float64 `(k,)`; None stands for all single values. None, the
        default, if the query can be estimated without bias.
        """
        del weights
        return None

    @cached_property
    def coordinates(self) -> NDArray[np.int64] | None:
        """The place of each value in its block's tree, int64 `(dimensions, k)`, if there is one.

        Reports are about nodes that halve every dimension again and again.
        """
        return None

    @cached_property
    def table(self) -> Floats | None:
        """The channel whose reports the statistic counts, float64 `(k, reports)`, for priors.

        None, the default, if the statistic does not count reports, or these are too many.
        """
        return None

    def marginal_statistic(self, statistic: Statistic) -> Statistic:
        """Return the statistic of `marginal`, if there is one: the weights are summed out."""
        return statistic

    def chain(self, epsilon: object) -> "tuple[Mechanism, Chain]":
        """Return the mechanism of a permanent draw, and the chain from it to reports of this one.

        Both have the same reports; `epsilon` belongs to the permanent draw. Refused by default: no
        chain is known for `matrix` with its clamped noise, `lip` is calibrated for independent
        reports, and `sampled` draws another attribute in each window.

        Raises:
            SpecError: if reports of this mechanism cannot be drawn again, or epsilon is not above
                the mechanism's own.
        """
        del epsilon
        raise SpecError(
            "hold.epsilon",
            f"no such key with {self.id}, whose reports are not randomised again: hold = H repeats "
            "them",
        )

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of values `k`; values are the integers `0..k-1`."""

    @property
    @abstractmethod
    def report_bytes(self) -> int:
        """Length of an encoded report in bytes, the same for every value."""

    @property
    def report_bits(self) -> int:
        """Number of bits that identify a report; by default all bits of its bytes."""
        return 8 * self.report_bytes

    @property
    @abstractmethod
    def statistic_size(self) -> int:
        """Length of the statistic, a vector of exact int64."""

    @property
    def slices(self) -> tuple[slice, ...]:
        """The slice of the statistic of each attribute; unless values are records, all of it."""
        return (slice(0, self.statistic_size),)

    def counts(self, statistic: Statistic) -> list[int]:
        """Return the number of reports about each attribute."""
        return [self.count(statistic)]

    def attributes_of(self, reports: Reports) -> NDArray[np.int64]:
        """Return the place in `slices` of the attribute of each report, int64 `(n,)`."""
        return np.zeros(len(reports), dtype=np.int64)

    @property
    @abstractmethod
    def policy(self) -> Policy:
        """The policy `E` that the channel satisfies."""

    @abstractmethod
    def parameters(self) -> Mapping[str, Json]:
        """Return the canonical realised parameters: what the fingerprint hashes."""

    def tables(self) -> Mapping[str, Json]:
        """Return the tables that a device needs and of which the parameters hold only a digest.

        By default there are none. docs/wire.md, "Device document", describes each table.
        """
        return {}

    @abstractmethod
    def channel(self) -> Channel:
        """Return the realised channel in exact rationals.

        Its outputs are numbered as in `possible_reports`.

        Raises:
            ValueError: if it is too large to enumerate, where `certify` still works.
        """

    @abstractmethod
    def possible_reports(self) -> Reports:
        """Return every report that some value can produce, each once.

        Raises:
            ValueError: if they are too many to list.
        """

    @abstractmethod
    def certify(self) -> Certificate:
        """Prove the realised loss against the policy, in exact arithmetic."""

    def blankets(self) -> Mapping[Fraction, Collection[Blanket]]:
        """Return the privacy blankets of the reports of one disclosed block, keyed by budget.

        By default they are enumerated for up to 64 values; a larger channel has none.
        """
        if self.size > ENUMERATION_LIMIT:
            return {}
        try:
            channel = self.channel()
        except ValueError:
            return {}
        return blankets_by_enumeration(channel, self.policy)

    def privatize(self, values: NDArray[np.int64], *, entropy: Entropy | None = None) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports, one a row.

        `entropy` is the operating system's by default; tests and simulations pass seeded ones.

        Raises:
            ValueOutsideDomainError: naming the position of the first bad value, never the value.
        """
        return self.randomise(self.check_values(values), entropy or SystemEntropy())

    @abstractmethod
    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values that are known to be in the domain, int64 of shape `(n,)`."""

    def check_values(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return values as int64 of shape `(n,)`.

        Raises:
            ValueOutsideDomainError: naming the position of the first bad value.
        """
        array = np.asarray(unmasked(values))
        if array.size == 0:
            return np.zeros(0, dtype=np.int64)
        if array.dtype.kind not in "iu" or array.ndim != 1:
            raise ValueOutsideDomainError(0, f"an integer in 0..{self.size - 1}")
        # One comparison checks both ends: as unsigned, a negative number is huge.
        if array.dtype.kind == "i":
            array = array.astype(np.int64, copy=False)
            outside = array.view(np.uint64) >= self.size
        else:
            outside = array >= self.size
        if outside.any():
            first = int(np.argmax(outside))
            raise ValueOutsideDomainError(first, f"an integer in 0..{self.size - 1}")
        return array.astype(np.int64, copy=False)

    @abstractmethod
    def encode(self, reports: Reports) -> NDArray[np.uint8]:
        """Encode n reports as uint8 of shape `(n, report_bytes)`."""

    @abstractmethod
    def decode(self, payload: NDArray[np.uint8]) -> tuple[Reports, NDArray[np.bool_]]:
        """Decode uint8 `(n, report_bytes)` into `(reports, valid)`; `valid` is bool `(n,)`.

        A report that no value can produce is not valid; its row may hold any report.
        """

    def empty(self) -> Statistic:
        """Return the statistic of no reports: int64 zeros of shape `(statistic_size,)`."""
        return np.zeros(self.statistic_size, dtype=np.int64)

    @abstractmethod
    def accumulate(self, statistic: Statistic, reports: Reports) -> None:
        """Add n reports to a statistic in place; exact, associative, commutative."""

    def sparse_counts(self, reports: Reports) -> Sequence[tuple[int, int]] | None:
        """Return what n reports add to the statistic as `(place, count)` pairs, or None.

        None, the default, if `accumulate` is cheaper.
        """
        del reports
        return None

    def accumulate_times(
        self, statistic: Statistic, reports: Reports, times: NDArray[np.int64]
    ) -> None:
        """Add report i to the statistic `times[i]` >= 0 times, in place; `times` is int64 `(n,)`.

        Exact. This general form takes memory for every repetition; mechanisms that can add weighted
        counts override it.
        """
        self.accumulate(statistic, np.repeat(reports, times, axis=0))

    def count(self, statistic: Statistic) -> int:
        """Return the number of reports that a statistic holds."""
        return int(self.decoder.group_reports(statistic).sum())

    @property
    @abstractmethod
    def decoder(self) -> Decoder:
        """The decoder of linear queries."""

    @abstractmethod
    def disclosed(self) -> list[str]:
        """Return what this mechanism sends in the clear, one phrase for each item."""
