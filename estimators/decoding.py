"""Decoders of sets and weights that use what is known without noise.

A mechanism's decoder is the sum of its single values' decoders. Where the values of a group g sum
to less noise than their complement this is wasteful: the group's total is known exactly. The
difference of the two, `z_g = 1_g - sum_{x in g} h_x`, has mean 0 for a user of every value, so
`h + sum_g lambda_g z_g` decodes the same query without bias for any fixed lambda. Its noise under
uniform data is least at `lambda_g = -sum_{x in g} (Q h z_g)[x] / sum_{x in g} (Q z_g^2)[x]`, which
depends on the channel and the query alone, never on the data. lambda = 0 is the plain decoder,
lambda = 1 one minus the complement's.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.estimators.groups import Groups
from ldpstream.mechanisms.mechanism import Decoder, Mechanism

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Noise below this part of the second moment is rounding in float64, not noise.
ROUNDING = 1e-12


@dataclass(frozen=True)
class SetDecoder:
    """Decodes queries of one mechanism; `slack` is `z`, float64 `(outputs,)`.

    Of each group, `(count,)`: `slack_noise` is the sum of its values' noise in `z`, float64, and
    `sizes` the number of its values, int64.
    """

    decoder: Decoder
    groups: Groups
    slack: Floats
    slack_noise: Floats
    sizes: Integers

    @classmethod
    def of(cls, mechanism: Mechanism) -> Self:
        """Prepare a mechanism's decoder: one decode, shared by all queries."""
        decoder, groups = mechanism.decoder(), Groups.of(mechanism)
        slack = 1.0 - decoder.decode(np.ones(mechanism.size))
        noise = groups.sum_values(decoder.expect(slack**2))
        sizes = np.bincount(groups.of_value, minlength=groups.count)
        noise[noise <= ROUNDING * sizes] = 0.0
        return cls(decoder, groups, slack, noise, sizes)

    def best_anchors(self, plain: Floats) -> Floats:
        """Return the lambda of least noise for the plain decoder `h` of a query: `(count,)`."""
        product = -self.groups.sum_values(self.decoder.expect(plain * self.slack))
        known = self.slack_noise > 0.0
        return np.divide(product, self.slack_noise, out=np.zeros_like(product), where=known)

    def decode(self, weights: Floats) -> Floats:
        """Return the decoder of least noise of any weights, `(k,)` -> `(outputs,)`."""
        return self._anchored(weights, self.best_anchors(self.decoder.decode(weights)))

    def decode_set(self, indicator: Floats) -> Floats:
        """Return a set's decoder: in each group the plain one, or one minus the complement's.

        lambda is rounded to 0 or 1, so that a set's estimate is a sum of its values' estimates
        wherever it holds the smaller part of a group, and always for a single value.
        """
        plain = self.decoder.decode(indicator)
        if indicator.sum() == 1.0:
            return plain
        # At the extremes of epsilon rounding hides what the total saves: a whole group takes it.
        whole = self.groups.sum_values(indicator) == self.sizes
        anchors = (whole | (self.best_anchors(plain) > 0.5 + ROUNDING)).astype(np.float64)
        return self._anchored(indicator, anchors) if anchors.any() else plain

    def noise(self, decoded: Floats, weights: Floats) -> Floats:
        """Return `v(x) = (Q h^2)[x] - w[x]^2`, what a user of each value adds: `(k,)`, >= 0."""
        moments = self.decoder.expect(decoded**2)
        noise = moments - weights**2
        noise[noise <= ROUNDING * np.maximum(moments, 1.0)] = 0.0
        return noise

    def _anchored(self, weights: Floats, anchors: Floats) -> Floats:
        # Decoding the difference, not adding slack, makes whole groups exact to the last bit.
        rest = self.decoder.decode(weights - anchors[self.groups.of_value])
        return rest + anchors[self.groups.of_output]
