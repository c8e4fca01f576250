"""Two-sided geometric noise on ordered domains, clamped (docs/theory.md sections 8 and 9).

A report has the form of a value: independent two-sided geometric noise is added to each coordinate,
which is then clamped to its dimension. The policy is that of [ML] Section IV,
`E = epsilon * |x - x'|_1`. A report takes `log2(k)` bits, and the paper's takes one bit for each
position; the noise is smaller unless epsilon times the sizes is small. `E = epsilon * |x - x'|_p`
is kept with a smaller budget for each step.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product
from operator import mul
from typing import ClassVar, Self

import numpy as np

from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.channels.certificate import (
    ENUMERATION_LIMIT,
    Certificate,
    certify_by_enumeration,
)
from ldpstream.mechanisms.channels.channel import Channel, refuse_large
from ldpstream.mechanisms.channels.permanent_draw import MOST_COUNTED
from ldpstream.mechanisms.exact.dyadic import SMALLEST_EPSILON, geometric_threshold
from ldpstream.mechanisms.exact.entropy import WORD, Entropy, bernoulli_rationals
from ldpstream.mechanisms.exact.geometric import TwoSidedGeometric
from ldpstream.mechanisms.families.l1.geometric_decoder import GeometricAxis, L1GeometricDecoder
from ldpstream.mechanisms.families.l1.step import StepMechanism, certify_steps
from ldpstream.mechanisms.interface.chain import Chain, read_larger, too_near
from ldpstream.mechanisms.interface.mechanism import Reports, Statistic
from ldpstream.mechanisms.interface.symbols import SymbolMechanism

_LARGEST_MOMENT = 1e240


@dataclass(frozen=True)
class L1Geometric(StepMechanism, SymbolMechanism):
    """Geometric noise in every coordinate; see `StepMechanism` for the fields.

    Reports are in row-major order, like values. A dimension of one value carries no information.

    Raises:
        SpecError: as for `StepMechanism`, and if epsilon is so small that reports carry no
            information or decoders exceed the range of floats.
    """

    id: ClassVar[str] = "l1-geometric"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold >= WORD:
            raise SpecError("epsilon", f"a number of at least {SMALLEST_EPSILON}")
        moments = [2.0 * math.log(axis.peak) for axis in self.axes]
        if sum(moments) > math.log(_LARGEST_MOMENT):
            raise SpecError("epsilon", f"a larger number in {len(self.extents)} dimensions")

    def sum_out(self, table: Statistic) -> Statistic:
        """Return the counts of all reported weights together."""
        sums: Statistic = table.sum(axis=1)
        return sums

    @property
    def outputs(self) -> int:
        return self.size

    @cached_property
    def threshold(self) -> int:
        """The realised alpha, in units of 2^-64 rounded up: `e^-s`, s the budget of a step."""
        return geometric_threshold(self.policy.step)

    @cached_property
    def axes(self) -> tuple[GeometricAxis, ...]:
        """The channel of each dimension of two values or more."""
        return tuple(GeometricAxis(self.threshold, length) for length in self.extents)

    def channel(self) -> Channel:
        refuse_large(self.size, self.size**2 * (1 + self.policy.diameter))
        tables = [_exact(self.threshold, length) for length in self.extents]
        rows = []
        for factors in product(*tables):
            row = (reduce(mul, probabilities) for probabilities in product(*factors))
            rows.append(dict(enumerate(row)))
        return Channel(tuple(rows), self.outputs)

    def certify(self) -> Certificate:
        """Prove the realised loss: by enumeration up to 64 values, by structure at any size.

        By structure: a report's probability is a product over the dimensions. In a dimension, two
        neighbouring values give each output, the ends included, probabilities whose ratio is alpha
        or 1/alpha (`s_y alpha^|x - y|` with `|x - y|` one more or less). One step therefore
        realises `2^64 / threshold`, and the losses of all steps between two values add up. The
        enumeration compares all neighbours at every output, which suffices for the L1 metric.

        For other p the enumeration compares all pairs with no value between them, and
        `certify_steps` gives the proof by structure.
        """
        policy, ratio = self.policy, Fraction(WORD, self.threshold)
        if self.size <= ENUMERATION_LIMIT:
            return certify_by_enumeration(self.id, policy, self.channel(), self.disclosed())
        return certify_steps(self.id, policy, ratio, self.disclosed())

    def randomise(self, values: Integers, entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports of shape `(n,)`.

        See `exact.geometric` for the draws; a dimension of one value draws nothing.
        """
        extents = np.array(self.extents, dtype=np.int64)
        strides = np.append(np.cumprod(extents[:0:-1])[::-1], 1)
        coordinates = values[:, None] // strides % extents
        last = np.tile(extents - 1, len(values))
        moved = self._noise.move(entropy, coordinates.ravel(), last)
        reports: Reports = moved.reshape(coordinates.shape) @ strides
        return reports

    @cached_property
    def _noise(self) -> TwoSidedGeometric:
        return TwoSidedGeometric((self.threshold,), max(self.extents))

    def chain(self, epsilon: object) -> tuple[Self, "GeometricChain"]:
        permanent = replace(self, epsilon=read_larger(epsilon, self.epsilon))
        if permanent.threshold >= self.threshold:
            raise too_near()
        steps = sum(self.extents) - len(self.extents)
        alpha, larger = (Fraction(mechanism.threshold, WORD) for mechanism in (self, permanent))
        return permanent, GeometricChain(alpha, larger, self.extents, self._noise, steps)

    @locked_cached_property
    def decoder(self) -> L1GeometricDecoder:
        return L1GeometricDecoder(self.axes)


def _exact(threshold: int, length: int) -> list[list[Fraction]]:
    """Return the channel of one dimension, a row for each value (formula: `GeometricAxis`)."""
    alpha = Fraction(threshold, WORD)
    ends = [alpha**d / (1 + alpha) for d in range(length)]
    inner = [(1 - alpha) * end for end in ends]
    border = (0, length - 1)
    return [
        [(ends if y in border else inner)[abs(x - y)] for y in range(length)] for x in range(length)
    ]


@dataclass(frozen=True, eq=False)
class GeometricChain(Chain):
    """The chain of `l1-geometric`, which moves each coordinate independently.

    `alpha` is `a = e^-s` for the budget s of a step of a report, and `larger` is `a1`, likewise for
    the permanent draw, each rounded to 64 bits. A coordinate stays with probability
    `(a1/a) ((1-a)/(1-a1))^2`, at an end with `(a1/a) (1-a)/(1-a1)`; otherwise it gets the noise of
    a report. With K the diagonal of these probabilities, `M = K + (1 - K) Q`.

    Then `Q1 M = Q` for any length: the inverses are `Q^-1 = 1 + W B` and `Q1^-1 = 1 + W1 B`, with
    the same second differences B (`geometric_decoder`), and K is W1/W, so that
    `K (Q^-1 - 1) = Q1^-1 - 1`.

    `extents` are the lengths of the dimensions, two or more each, and `noise` is that of a report.
    `steps` is the number of steps between opposite corners.
    """

    exact: ClassVar[bool] = False
    alpha: Fraction
    larger: Fraction
    extents: tuple[int, ...]
    noise: TwoSidedGeometric
    steps: int

    @property
    def shared_noise(self) -> float:
        """The probability that an end stays, `a1 (1-a)/(a (1-a1))`.

        A coordinate z and what is sent for it, y, are `z+ - z-` and `y+ - y-`, with two independent
        pairs, cut to the ends. (Cut to infinite ends, since the excess of a geometric number is
        geometric.) Here z+ is the first success in tosses with probability `1-a1`, and y+ the first
        of those that count, a part `(1-a)/(1-a1)` of them: `y+ - z+` is independent of z+. The
        squared correlation of two such tosses is the stated number, and no functions of independent
        pairs are more correlated than those of one (Witsenhausen 1975).
        """
        return float(self.keep[1])

    @property
    def keep(self) -> tuple[Fraction, Fraction]:
        """The probabilities that a coordinate stays, inside and at an end."""
        less = (1 - self.alpha) / (1 - self.larger)
        end = self.larger / self.alpha * less
        return end * less, end

    def again(self, reports: Integers, entropy: Entropy) -> Integers:
        """Return the reports that are sent for permanent ones, int64 `(n,)` both.

        First all coordinates decide whether they stay, in order. Then noise is drawn for all of
        them, also for those that stay.
        """
        coordinates = np.stack(np.unravel_index(reports, self.extents), axis=1).ravel()
        last = np.tile(np.array(self.extents, dtype=np.int64) - 1, len(reports))
        ends = (coordinates == 0) | (coordinates == last)
        stays = bernoulli_rationals(entropy, self.keep, ends.astype(np.int64))
        moved = np.where(stays, coordinates, self.noise.move(entropy, coordinates, last))
        strides = np.append(np.cumprod(self.extents[:0:-1], dtype=np.int64)[::-1], 1)
        sent: Integers = moved.reshape(len(reports), -1) @ strides
        return sent

    def canonical(self) -> Sequence[Json]:
        return [str(keep) for keep in self.keep]

    def ratio(self, reports: int) -> Fraction:
        """Return a bound on the ratio of two neighbours over m >= 1 reports, for any length.

        It is exact for one report, and the least upper bound over all lengths for several. Values s
        steps apart have at most its s-th power.

        Proof: for x and x + 1, and `f[z] = prod M[z, y_i]`, the ratio is `(A/a1 + a1 B)/(A + B)`,
        where A is the sum of `Q1[x+1, z] f[z]` over z <= x and B that over z > x. It is largest if
        A/B is. Replacing all y > x by x increases A more than B. For y <= x, `M[z, y]` with z > x
        is the same function of z up to a constant, so that all y are equal by Hoelder's inequality.
        Then A, in units of `(c a^(x+1-y))^m`, follows `A' = s (A + c1 u)` with `s = a1/a^m` from
        each x to the next, and is monotone in y from 1 on; so is B in the number of values above x.
        Their extremes are those of an end, of its neighbour, and far from any end.
        """
        a, a1 = self.alpha, self.larger
        slope, decay = a1 / a**reports, a1 * a**reports
        if reports > MOST_COUNTED or slope >= 1:
            # A grows without limit. (For one report it does not, since a > a1.)
            return 1 / a1
        inside, end = self.keep
        u, v = (1 - inside) ** reports, (1 - end) ** reports
        # The constants of Q1 for a value inside, and for one at an end.
        c, e = (1 - a1) / (1 + a1), 1 / (1 + a1)
        near = ((1 - inside + inside * (1 + a) / (1 - a)) / a) ** reports
        largest = max(
            e * a1 * ((1 - end + end * (1 + a)) / a) ** reports,
            c * a1 * near + e * a1**2 * v,
            c * a1 * near + c * a1**2 * u / (1 - decay),
            slope * c * u / (1 - slope),
        )
        least = min(e * v, c * u / (1 - decay))
        return (largest / a1 + a1 * least) / (largest + least)
