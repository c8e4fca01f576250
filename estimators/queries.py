"""Linear queries, prepared: what depends on the mechanism and the query, but on no report.

Counts of symbols are decoded with the help of totals that are known exactly (`SetDecoder`), sums by
a linear decoder (`LinearQueries`). Variances and bounds need only a `Query`.

A mechanism's decoder is the sum of its single values' decoders. This is wasteful if the complement
of a set within a group g has less noise than the set, since the group's total is known exactly. The
difference of the two, `z_g = 1_g - sum_{x in g} h_x`, has mean 0 for users of every value, so that
`h + sum_g lambda_g z_g` decodes the same query without bias for any fixed lambda. Its noise under
uniform data is least at `lambda_g = -sum_{x in g} (Q h z_g)[x] / sum_{x in g} (Q z_g^2)[x]`, which
depends only on the channel and the query, never on the data. lambda = 0 is the plain decoder, and
lambda = 1 is one minus the complement's.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Final, NamedTuple, Self

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.decoder import ROUNDING, Decoder, LinearDecoder
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.interface.symbols import CountDecoder, MassDecoder, remove_rounding

TOGETHER: Final = 1 << 18
"""Number of decoder entries processed at a time."""
_KEPT: Final = 1 << 16
"""Up to this many values, the prepared queries of a mechanism are cached."""


def indicator(size: int, members: Integers) -> Floats:
    """Return the indicator of a set of values, float64 of shape `(size,)`.

    Raises:
        ValueError: if an index is outside `0..size-1`.
    """
    if members.size and (members.min() < 0 or members.max() >= size):
        raise ValueError(f"set: expected values in 0..{size - 1}")
    out = np.zeros(size)
    out[members] = 1.0
    return out


@dataclass(frozen=True)
class DisclosedGroups:
    """The groups of values, or of outputs, that reports disclose; one group if they disclose none.

    `of_place` is the group of each value or output, int64, in `0..count-1`; no group is empty.
    """

    of_place: Integers
    count: int
    disclosed: bool

    @classmethod
    def of(cls, mechanism: Mechanism) -> "DisclosedGroups":
        """Return the groups that a mechanism discloses."""
        return cls.of_places(mechanism.decoder.groups(), mechanism.size)

    @classmethod
    def of_places(cls, groups: Integers | None, size: int) -> "DisclosedGroups":
        """Return the groups of `size` places; None is one group."""
        if groups is None:
            return cls(all_in_one(size), 1, disclosed=False)
        return cls(groups, int(groups.max()) + 1, disclosed=True)

    def sums(self, function: Floats) -> Floats:
        """Sum a function of the place over each group, float64 `(count,)`."""
        if self.count == 1:
            return np.array([function.sum()])
        return np.bincount(self.of_place, function, self.count).astype(np.float64)

    def extremes(self, *functions: Floats) -> list[Floats]:
        """Return the least and the largest of each function of the place, in each group."""
        if self.count == 1:
            return [np.array([end]) for each in functions for end in (each.min(), each.max())]
        ends = []
        for each in functions:
            least, largest = np.full(self.count, np.inf), np.full(self.count, -np.inf)
            np.minimum.at(least, self.of_place, each)
            np.maximum.at(largest, self.of_place, each)
            ends += [least, largest]
        return ends


def all_in_one(size: int) -> Integers:
    """Return a single group for `size` places, as a view that takes no memory."""
    return np.broadcast_to(np.zeros(1, dtype=np.int64), (size,))


class InGroups(NamedTuple):
    """What a query's users add at least and at most, in each group: float64 `(count,)` each.

    `moments` is the largest `(Q h^2)[x]`, `quietest` and `noisiest` are the ends of the noise, and
    `lightest` and `heaviest` those of the weights.
    """

    moments: Floats
    quietest: Floats
    noisiest: Floats
    lightest: Floats
    heaviest: Floats


@dataclass(frozen=True)
class Query:
    """One linear query `w` with a decoder `h`, `Q h = w`; reports disclose `groups` of values.

    `weights` is `w`, float64 `(k,)`; `noise` is `v(x) = (Q h^2)[x] - w[x]^2`, float64 `(k,)`, >= 0;
    `least` and `largest` bound `h` over all reports. `deviation` is the most that a decoded report
    differs from its user's weight, or a smaller number that tail bounds may use in its place (for
    sums, `LinearDecoder.deviation`).
    """

    groups: DisclosedGroups
    weights: Floats
    noise: Floats
    least: float
    largest: float
    deviation: float

    @cached_property
    def in_groups(self) -> InGroups:
        """The extremes over each group's values, which bounds for any reports need."""
        moments = self.noise + self.weights**2
        _, *extremes = self.groups.extremes(moments, self.noise, self.weights)
        return InGroups(*extremes)


@dataclass(frozen=True)
class CountQuery(Query):
    """A query of counts, decoded by `h`, float64 `(outputs,)`; `of_square` decodes `w^2`."""

    h: Floats
    of_square: Floats

    @classmethod
    def of_set(cls, groups: DisclosedGroups, indicator: Floats, h: Floats, noise: Floats) -> Self:
        """Return the query of a set, whose weights are their own squares."""
        least, largest = float(h.min()), float(h.max())
        off = max(largest, 1.0 - least)
        return cls(groups, indicator, noise, least, largest, off, h=h, of_square=h)


class Queries(ABC):
    """Prepares the queries of one mechanism: its decoder, and what its reports disclose."""

    decoder: Decoder
    groups: DisclosedGroups

    def set_queries(self, indicators: Iterable[Floats]) -> Iterator[Query]:
        """Prepare sets one by one; subclasses may prepare several together."""
        return (self.set_query(indicator) for indicator in indicators)

    @abstractmethod
    def set_query(self, indicator: Floats) -> Query:
        """Prepare a set of values, given by its indicator, float64 `(k,)`."""


class PreparedSets(NamedTuple):
    """The prepared queries of some sets of values, which do not depend on the reports."""

    queries: Queries
    sets: Iterable[Query]


def prepare_sets(
    mechanism: Mechanism, sets: Sequence[Integers], *, keep: bool = False
) -> PreparedSets:
    """Return the decoders of sets of values, as a list with `keep`, else as an iterator."""
    queries = prepare_queries(mechanism)
    prepared = queries.set_queries(indicator(mechanism.size, members) for members in sets)
    return PreparedSets(queries, list(prepared) if keep else prepared)


def prepare_queries(mechanism: Mechanism) -> Queries:
    """Return the object that prepares a mechanism's queries, by the kind of its decoder."""
    return (_kept if mechanism.size <= _KEPT else _prepare)(mechanism)


def _prepare(mechanism: Mechanism) -> Queries:
    decoder = mechanism.decoder
    if isinstance(decoder, CountDecoder):
        return SetDecoder.of(mechanism, decoder)
    if isinstance(decoder, LinearDecoder):
        return LinearQueries(decoder, DisclosedGroups.of(mechanism))
    raise TypeError(f"expected a CountDecoder or a LinearDecoder, got {type(decoder).__name__}")


_kept = lru_cache(maxsize=16)(_prepare)


@dataclass(frozen=True)
class SetDecoder(Queries):
    """Decodes the queries of one mechanism; `slack` is `z`, float64 `(outputs,)`.

    `groups` are those of the values, and `outputs` are the same groups for the outputs. For each
    group, `(count,)`: `slack_noise` is the sum of its values' noise in `z`, float64, and `sizes` is
    the number of its values, int64.
    """

    decoder: CountDecoder
    groups: DisclosedGroups
    outputs: DisclosedGroups
    slack: Floats
    slack_noise: Floats
    sizes: Integers

    @classmethod
    def of(cls, mechanism: Mechanism, decoder: CountDecoder) -> Self:
        """Prepare a mechanism with its decoder, by one decode that all queries share."""
        groups = DisclosedGroups.of(mechanism)
        ones = decoder.decode(np.ones(mechanism.size))
        mass = decoder.output_mass(ones) if isinstance(decoder, MassDecoder) else None
        slack = 1.0 - ones
        outputs = DisclosedGroups.of_places(decoder.output_groups(), slack.size)
        squares = np.square(slack, out=ones)
        if mass is None:
            noise = groups.sums(decoder.expect(squares))
        else:
            mass *= squares
            noise = outputs.sums(mass)
        sizes = np.bincount(groups.of_place, minlength=groups.count)
        noise[noise <= ROUNDING * sizes] = 0.0
        return cls(decoder, groups, outputs, slack, noise, sizes)

    def set_query(self, indicator: Floats) -> Query:
        (h,) = self.decode_sets(indicator[None], self.decoder.decode(indicator)[None])
        return CountQuery.of_set(self.groups, indicator, h, self.decoder.noise_of(h, indicator))

    def set_queries(self, indicators: Iterable[Floats]) -> Iterator[Query]:
        """Prepare sets of values, several at a time for small domains."""
        step, each = TOGETHER // self.slack.size, iter(indicators)
        if step < 2:
            yield from super().set_queries(each)
            return
        while rows := list(islice(each, step)):
            stacked = np.stack(rows)
            decoded = self.decode_sets(stacked, self.decoder.decode_each(stacked))
            expected = self.decoder.expect_each(decoded**2)
            for row, h, moments in zip(rows, decoded, expected, strict=True):
                yield CountQuery.of_set(self.groups, row, h, remove_rounding(moments, row))

    def best_anchors(self, plain: Floats) -> Floats:
        """Return the lambdas with the least noise, `(q, outputs)` -> `(q, count)`."""
        known = self.slack_noise > 0.0
        anchors = np.zeros((len(plain), self.groups.count))
        if not known.any():
            return anchors
        if isinstance(self.decoder, MassDecoder):
            mass = self.decoder.output_mass(1.0 - self.slack)
            mass *= self.slack
            if self.outputs.count == 1:
                products = -(plain * mass).sum(axis=1, keepdims=True)
            else:
                products = np.stack([-self.outputs.sums(row * mass) for row in plain])
        else:
            expected = self.decoder.expect_each(plain * self.slack)
            products = np.stack([-self.groups.sums(row) for row in expected])
        np.divide(products, self.slack_noise, out=anchors, where=known)
        return anchors

    def decode(self, weights: Floats) -> Floats:
        """Return the decoder with the least noise for any weights, `(k,)` -> `(outputs,)`."""
        plain = self.decoder.decode(weights)
        (decoded,) = self._anchored(weights[None], self.best_anchors(plain[None]))
        return np.asarray(decoded)

    def decode_sets(self, indicators: Floats, plain: Floats) -> Floats:
        """Return sets' decoders: in each group the `plain` one, or one minus the complement's.

        Indicators `(q, k)` and plain decoders `(q, outputs)` -> `(q, outputs)`.

        lambda is rounded to 0 or 1, so that the estimate of a set that holds the smaller part of a
        group, such as a single value, is the sum of its values' estimates.
        """
        several = np.flatnonzero(indicators.sum(axis=1) != 1.0)
        if not several.size:
            return plain
        # At extreme epsilon rounding hides what the total saves, but a whole group always uses it.
        whole = [self.groups.sums(indicators[at]) == self.sizes for at in several.tolist()]
        anchors = np.array(whole) | (self.best_anchors(plain[several]) > 0.5 + ROUNDING)
        moved = anchors.any(axis=1)
        if not moved.any():
            return plain
        decoded, at = plain.copy(), several[moved]
        decoded[at] = self._anchored(indicators[at], anchors[moved].astype(np.float64))
        return decoded

    def _anchored(self, weights: Floats, anchors: Floats) -> Floats:
        """Decode weights `(q, k)` with lambdas `(q, count)`."""
        # Decoding the difference instead of adding slack makes whole groups exact to the last bit.
        rest = self.decoder.decode_each(weights - anchors[:, self.groups.of_place])
        return rest + anchors[:, self.outputs.of_place]


@dataclass(frozen=True)
class LinearQueries(Queries):
    """Prepares queries of a mechanism whose statistic holds sums."""

    decoder: LinearDecoder
    groups: DisclosedGroups

    def set_query(self, weights: Floats) -> Query:
        """Prepare a set of values, or any weights, float64 `(k,)`."""
        noise = self.decoder.noise(weights)
        least, largest = self.decoder.span(weights)
        deviation = self.decoder.deviation(weights) if noise.any() else 0.0
        return Query(self.groups, weights, noise, least, largest, deviation)
