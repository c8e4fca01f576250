"""Queries over counts of symbols, decoded with the help of totals that are known exactly.

A mechanism's decoder is the sum of its single values' decoders. This is wasteful if the complement
of a set within a group g has less noise than the set, since the group's total is known exactly. The
difference of the two, `z_g = 1_g - sum_{x in g} h_x`, has mean 0 for users of every value, so that
`h + sum_g lambda_g z_g` decodes the same query without bias for any fixed lambda. Its noise under
uniform data is least at `lambda_g = -sum_{x in g} (Q h z_g)[x] / sum_{x in g} (Q z_g^2)[x]`, which
depends only on the channel and the query, never on the data. lambda = 0 is the plain decoder, and
lambda = 1 is one minus the complement's.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final, Self

import numpy as np

from ldpstream.estimators.queries.queries import (
    Groups,
    LinearQueries,
    PreparedSets,
    Queries,
    Query,
    indicator,
)
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.decoder import ROUNDING, LinearDecoder
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic
from ldpstream.mechanisms.interface.symbols import CountDecoder, MassDecoder, remove_rounding

TOGETHER: Final = 1 << 18
"""Number of decoder entries processed at a time."""
_KEPT: Final = 1 << 16
"""Up to this many values, the prepared queries of a mechanism are cached."""


def prepare_queries(mechanism: Mechanism) -> Queries:
    """Return the object that prepares a mechanism's queries, by the kind of its decoder."""
    return (_kept if mechanism.size <= _KEPT else _prepare)(mechanism)


def prepare_sets(
    mechanism: Mechanism, sets: Sequence[Integers], *, keep: bool = False
) -> PreparedSets:
    """Return the decoders of sets of values, as a list with `keep`, else as an iterator.

    Raises:
        ValueError: if an index is outside the domain.
    """
    queries = prepare_queries(mechanism)
    prepared = queries.set_queries(indicator(mechanism.size, members) for members in sets)
    return PreparedSets(queries, list(prepared) if keep else prepared)


def _prepare(mechanism: Mechanism) -> Queries:
    decoder = mechanism.decoder
    if isinstance(decoder, CountDecoder):
        return SetDecoder.of(mechanism, decoder)
    if isinstance(decoder, LinearDecoder):
        return LinearQueries(decoder, Groups.of(mechanism))
    raise TypeError(f"expected a CountDecoder or a LinearDecoder, got {type(decoder).__name__}")


_kept = lru_cache(maxsize=16)(_prepare)


@dataclass(frozen=True)
class CountQuery(Query):
    """A query decoded by `h`, float64 `(outputs,)`; `of_square` decodes `w^2`."""

    h: Floats
    of_square: Floats

    # sum() adds in one fixed order; a dot product would depend on the BLAS in use.
    def sums(self, statistic: Statistic) -> tuple[float, float, float]:
        """Return `sum_y N[y] h(y)`, `sum_y N[y] h(y)^2`, and the estimate of `sum_i w(x_i)^2`."""
        decoders = self.h, self.h**2, self.of_square
        total, squares, offset = (float((statistic * h).sum()) for h in decoders)
        return total, squares, offset


@dataclass(frozen=True)
class SetDecoder(Queries):
    """Decodes the queries of one mechanism; `slack` is `z`, float64 `(outputs,)`.

    `groups` are those of the values, and `outputs` are the same groups for the outputs. For each
    group, `(count,)`: `slack_noise` is the sum of its values' noise in `z`, float64, and `sizes` is
    the number of its values, int64.
    """

    decoder: CountDecoder
    groups: Groups
    outputs: Groups
    slack: Floats
    slack_noise: Floats
    sizes: Integers

    @classmethod
    def of(cls, mechanism: Mechanism, decoder: CountDecoder) -> Self:
        """Prepare a mechanism with its decoder, by one decode that all queries share."""
        groups = Groups.of(mechanism)
        ones = decoder.decode(np.ones(mechanism.size))
        mass = decoder.output_mass(ones) if isinstance(decoder, MassDecoder) else None
        slack = 1.0 - ones
        outputs = Groups.known(decoder.output_groups(), slack.size)
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
        return _set_query(indicator, h, self.decoder.noise_of(h, indicator))

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
                yield _set_query(row, h, remove_rounding(moments, row))

    def linear_query(self, weights: Floats) -> Query:
        """Prepare any weights, float64 `(k,)`, with the decoder of least noise.

        Each group's weights are scaled to 0..1 before decoding, so that noise that is small
        compared with the squared weights is not lost to rounding, and equal weights have none.
        """
        least, largest = self.groups.extremes(weights)
        unit = np.where(largest > least, largest - least, 1.0)
        of_value = self.groups.of_place
        parts = (weights - least[of_value]) / unit[of_value]
        decoded = self.decode(parts)
        noise = self.decoder.noise_of(decoded, parts) * unit[of_value] ** 2
        h = decoded * unit[self.outputs.of_place] + least[self.outputs.of_place]
        return CountQuery(
            weights,
            noise,
            float(h.min()),
            float(h.max()),
            self._deviation(h, weights, noise),
            h=h,
            of_square=self.decode(weights**2),
        )

    def _deviation(self, h: Floats, weights: Floats, noise: Floats) -> float:
        """Return the deviation that bounds use: the largest `sqrt(E d^4 / E d^2)` of any user.

        If a user's reports are either exact or off by one fixed number, it is this number, however
        rare. For noise whose far tails practically never occur (ages that are off by a year or two)
        it is a few standard errors, and not the length of the domain.
        """
        most = max(float(h.max() - weights.min()), float(weights.max() - h.min()))
        some = noise > 0.0
        if not some.any():
            return 0.0
        first, second, third, fourth = (self.decoder.expect(h**power) for power in (1, 2, 3, 4))
        # Moments around the weight itself, which is E h up to rounding.
        fourths = (
            fourth
            - 4.0 * weights * third
            + 6.0 * weights**2 * second
            - 4.0 * weights**3 * first
            + weights**4
        )
        return min(most, float(np.sqrt(np.maximum(fourths[some] / noise[some], 0.0).max())))

    def best_anchors(self, plain: Floats) -> Floats:
        """Return the lambdas with the least noise, `(q, outputs)` -> `(q, count)`."""
        known = self.slack_noise > 0.0
        anchors = np.zeros((len(plain), self.groups.count))
        if not known.any():
            return anchors
        if isinstance(self.decoder, MassDecoder):
            mass = self.decoder.output_mass(1.0 - self.slack)
            mass *= self.slack
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


def _set_query(indicator: Floats, h: Floats, noise: Floats) -> CountQuery:
    least, largest = float(h.min()), float(h.max())
    off = max(largest, 1.0 - least)
    return CountQuery(indicator, noise, least, largest, off, h=h, of_square=h)
