"""Two-sided geometric noise on ordered domains, clamped (docs/theory.md sections 8 and 9).

A report has the form of a value: independent two-sided geometric noise is added to each coordinate,
which is then clamped to its dimension. The policy is that of [ML] Section IV,
`E = epsilon * |x - x'|_1`. A report takes `log2(k)` bits, and the paper's takes one bit for each
position; the noise is smaller unless epsilon times the sizes is small. `E = epsilon * |x - x'|_p`
is kept with a smaller budget for each step.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product
from operator import mul
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.once import once
from ldpstream.mechanisms.channels.certificate import (
    ENUMERATION_LIMIT,
    Certificate,
    certify_by_enumeration,
)
from ldpstream.mechanisms.channels.channel import Channel, refuse_large
from ldpstream.mechanisms.exact.dyadic import SMALLEST_EPSILON, geometric_threshold
from ldpstream.mechanisms.exact.entropy import WORD, Entropy
from ldpstream.mechanisms.exact.geometric import TwoSidedGeometric
from ldpstream.mechanisms.families.l1.geometric_axis import GeometricAxis
from ldpstream.mechanisms.families.l1.geometric_chain import GeometricChain
from ldpstream.mechanisms.families.l1.geometric_decoder import L1GeometricDecoder
from ldpstream.mechanisms.families.l1.step import StepMechanism
from ldpstream.mechanisms.families.l1.step_certificate import certify_steps
from ldpstream.mechanisms.interface.chain import read_larger, too_near
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
        """Return the realised channel in exact rationals.

        Raises:
            ValueError: if its `k^2` probabilities, whose length grows with the diameter, are too
                many or too long.
        """
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
        `step_certificate` gives the proof by structure.
        """
        policy, ratio = self.policy, Fraction(WORD, self.threshold)
        if self.size <= ENUMERATION_LIMIT:
            return certify_by_enumeration(self.id, policy, self.channel(), self.disclosed())
        return certify_steps(self.id, policy, ratio, self.disclosed())

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
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

    def chain(self, epsilon: object) -> tuple[Self, GeometricChain]:
        permanent = replace(self, epsilon=read_larger(epsilon, self.epsilon))
        if permanent.threshold >= self.threshold:
            raise too_near()
        steps = sum(self.extents) - len(self.extents)
        alpha, larger = (Fraction(one.threshold, WORD) for one in (self, permanent))
        return permanent, GeometricChain(alpha, larger, self.extents, self._noise, steps)

    @once
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
