"""The one interface that every mechanism implements.

A mechanism is a frozen specification: a permanent id, its parameters and its policy. Everything
else follows from it: the channel (exact rationals), the certificate, `privatize`, the fixed-length
encoding of reports, the exact statistic, and the decoder of linear queries. Devices and servers
build it from the same parameters, so they cannot drift.

Notation of `docs/theory.md`: `k` values, a report `y`, the channel `Q[x, y] = P(y | x)`, counts
`N[y]` of `n` reports, decoders `h` with `Q h = w` for a linear query `w`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.canonical import Json as Json
from ldpstream.mechanisms.certificate import Certificate
from ldpstream.mechanisms.channel import Channel
from ldpstream.mechanisms.entropy import Entropy
from ldpstream.mechanisms.policy import Policy
from ldpstream.mechanisms.settings import Settings

Reports = NDArray[np.int64]
Statistic = NDArray[np.int64]
Floats = NDArray[np.float64]


class Decoder(ABC):
    """Unbiased decoders `h` of linear queries, and the moments that their variances need.

    All methods are deterministic functions of their arguments; none ever builds a dense `k x k`
    inverse. The decoder uses the realised channel (rounded outward), so estimates stay exactly
    unbiased.
    """

    @abstractmethod
    def shares(self, statistic: Statistic) -> Floats:
        """Return the sums `sum_y N[y] h_x(y)` of every single value, float64 of shape `(k,)`.

        Divided by `n` this is the unbiased estimate of every value's share.
        """

    @abstractmethod
    def second_moments(self, statistic: Statistic) -> Floats:
        """Return `sum_y N[y] h_x(y)^2` of every single value, float64 of shape `(k,)`."""

    @abstractmethod
    def extremes(self) -> tuple[Floats, Floats]:
        """Return `(min_y h_x(y), max_y h_x(y))` of every single value, float64 of shape `(k,)`."""

    @abstractmethod
    def decode(self, weights: Floats) -> Floats:
        """Return `h` with `Q h = weights`: float64 `(k,)` -> float64 `(outputs,)`.

        `h` is the sum of the single values' decoders, weighted: linear in `weights`.
        """

    @abstractmethod
    def expect(self, function: Floats) -> Floats:
        """Return `Q f`, the mean of a function of the report for a user of each value.

        float64 `(outputs,)` -> float64 `(k,)`; with `f = h^2` this gives every variance.
        """

    @abstractmethod
    def groups(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return what a report discloses exactly: `(group of each value, group of each output)`.

        Shapes `(k,)` and `(outputs,)`; groups are numbered from 0. A group's share among the
        respondents is then known without error. None where nothing is disclosed (one group).
        """

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the least and the largest noise that one user adds to each single value.

        The noise of a user of value x in the estimate of value i is
        `v_i(x) = (Q h_i^2)[x] - [x = i]`; x ranges over i's own group (over all values where
        nothing is disclosed), since `h_i` vanishes at other groups' outputs. Two float64 arrays of
        shape `(k,)`. This general form costs k decodes: large mechanisms override it.
        """
        size = self.extremes()[0].size
        disclosed = self.groups()
        group = np.zeros(size, dtype=np.int64) if disclosed is None else disclosed[0]
        least, largest = np.empty(size), np.empty(size)
        for value in range(size):
            weights = np.zeros(size)
            weights[value] = 1.0
            moments = self.expect(self.decode(weights) ** 2)
            noise = moments - weights
            # Below this it is rounding: a value reported exactly must come out as exactly 0.
            noise[noise <= 1e-12 * np.maximum(moments, 1.0)] = 0.0
            own = noise[group == group[value]]
            least[value], largest[value] = own.min(), own.max()
        return least, largest


class Mechanism(ABC):
    """A frozen specification of a local randomiser.

    Concrete mechanisms are frozen dataclasses, registered once in `ldpstream.mechanisms.registry`.
    """

    id: ClassVar[str]
    """Permanent identifier, as written in configurations and hashed into fingerprints."""

    @classmethod
    @abstractmethod
    def configure(cls, settings: Settings) -> Self:
        """Build the mechanism from a collection's keys.

        Raises:
            SpecError: naming the key's path and what was expected, also for keys it does not have.
        """

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of values `k`; values are the integers `0..k-1`."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Number of possible reports; reports are the integers `0..outputs-1`."""

    @property
    @abstractmethod
    def report_bytes(self) -> int:
        """Length of one encoded report in bytes, the same for every value."""

    @property
    @abstractmethod
    def statistic_size(self) -> int:
        """Length of the statistic, a vector of exact int64."""

    @property
    @abstractmethod
    def policy(self) -> Policy:
        """The policy `E` that the channel satisfies."""

    @abstractmethod
    def parameters(self) -> Mapping[str, Json]:
        """Return the canonical realised parameters: what the fingerprint hashes."""

    @abstractmethod
    def channel(self) -> Channel:
        """Return the realised channel in exact rationals.

        Raises:
            ValueError: where it is too large to enumerate; `certify` still works there.
        """

    @abstractmethod
    def certify(self) -> Certificate:
        """Prove the realised loss against the policy, in exact arithmetic."""

    @abstractmethod
    def privatize(self, values: NDArray[np.int64], *, entropy: Entropy | None = None) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports of shape `(n,)`.

        `entropy` is the operating system's by default; a seeded one is for tests and simulation.

        Raises:
            ValueOutsideDomainError: naming the position of the first bad value, never the value.
        """

    @abstractmethod
    def encode(self, reports: Reports) -> NDArray[np.uint8]:
        """Encode reports, shape `(n,)`, as uint8 of shape `(n, report_bytes)`."""

    @abstractmethod
    def decode(self, payload: NDArray[np.uint8]) -> tuple[Reports, NDArray[np.bool_]]:
        """Decode uint8 of shape `(n, report_bytes)`: `(reports, in range)`, each of shape `(n,)`.

        A report that no value can produce is marked False, and its number is 0.
        """

    def empty(self) -> Statistic:
        """Return the statistic of no reports: int64 zeros of shape `(statistic_size,)`."""
        return np.zeros(self.statistic_size, dtype=np.int64)

    @abstractmethod
    def absorb(self, statistic: Statistic, reports: Reports) -> None:
        """Add reports, shape `(n,)`, to a statistic in place; exact, associative, commutative."""

    @abstractmethod
    def decoder(self) -> Decoder:
        """Return the decoder of linear queries."""

    @abstractmethod
    def disclosed(self) -> list[str]:
        """Return what leaves the device in the clear by this mechanism, one phrase each."""
