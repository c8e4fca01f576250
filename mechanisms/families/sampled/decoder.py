"""The values of all attributes, each decoded from the statistic of its attribute."""

from collections.abc import Callable, Sequence

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.decoder import Decoder, Statistic


class SampledDecoder(Decoder):
    """Combines the decoders of the attributes; estimates use one attribute's decoder by itself."""

    def __init__(self, parts: Sequence[Decoder], slices: Sequence[slice]) -> None:
        self._parts, self._slices = parts, slices
        self.scratch = max(part.scratch for part in parts)

    def _of_values(
        self, statistic: Statistic, found: Callable[[Decoder, Statistic], Floats]
    ) -> Floats:
        pairs = zip(self._parts, self._slices, strict=True)
        return np.concatenate([found(part, statistic[own]) for part, own in pairs])

    def totals(self, statistic: Statistic) -> Floats:
        """Return the sums of the values' decoders, which are 0 at other attributes' reports."""
        return self._of_values(statistic, lambda part, own: part.totals(own))

    def second_moments(self, statistic: Statistic) -> Floats:
        return self._of_values(statistic, lambda part, own: part.second_moments(own))

    def extremes(self) -> tuple[Floats, Floats]:
        low, high = zip(*(part.extremes() for part in self._parts), strict=True)
        return np.minimum(np.concatenate(low), 0.0), np.maximum(np.concatenate(high), 0.0)

    def noise(self, weights: Floats) -> Floats:
        sizes = [part.extremes()[0].size for part in self._parts]
        cut = np.split(weights, np.cumsum(sizes)[:-1])
        return np.concatenate([part.noise(own) for part, own in zip(self._parts, cut, strict=True)])

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the least and the largest noise of a user of the same group."""
        low, high = zip(*(part.noise_extremes() for part in self._parts), strict=True)
        return np.concatenate(low), np.concatenate(high)

    def groups(self) -> Integers:
        """Return the group of each value: its attribute, and what that one discloses."""
        found, first = [], 0
        for part in self._parts:
            own = part.groups()
            group = np.zeros(part.extremes()[0].size, dtype=np.int64) if own is None else own
            found.append(group + first)
            first += int(group.max()) + 1
        return np.concatenate(found)

    def group_reports(self, statistic: Statistic) -> Integers:
        pairs = zip(self._parts, self._slices, strict=True)
        return np.concatenate([part.group_reports(statistic[own]) for part, own in pairs])
