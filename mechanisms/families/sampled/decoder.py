"""The values of all attributes, each decoded from the statistic of its attribute."""

from collections.abc import Callable, Sequence

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.decoder import Decoder, Statistic


class SampledDecoder(Decoder):
    """Combines the decoders of the attributes; estimates use one attribute's decoder by itself."""

    def __init__(self, parts: Sequence[Decoder], slices: Sequence[slice]) -> None:
        self._parts, self._slices = parts, slices
        self.scratch = max(decoder.scratch for decoder in parts)

    def _of_values(
        self, statistic: Statistic, read: Callable[[Decoder, Statistic], Floats]
    ) -> Floats:
        pairs = zip(self._parts, self._slices, strict=True)
        return np.concatenate([read(decoder, statistic[span]) for decoder, span in pairs])

    def totals(self, statistic: Statistic) -> Floats:
        """Return the sums of the values' decoders, which are 0 at other attributes' reports."""
        return self._of_values(statistic, lambda decoder, counts: decoder.totals(counts))

    def second_moments(self, statistic: Statistic) -> Floats:
        return self._of_values(statistic, lambda decoder, counts: decoder.second_moments(counts))

    def extremes(self) -> tuple[Floats, Floats]:
        low, high = zip(*(decoder.extremes() for decoder in self._parts), strict=True)
        return np.minimum(np.concatenate(low), 0.0), np.maximum(np.concatenate(high), 0.0)

    def noise(self, weights: Floats) -> Floats:
        sizes = [decoder.extremes()[0].size for decoder in self._parts]
        cut = np.split(weights, np.cumsum(sizes)[:-1])
        return np.concatenate(
            [decoder.noise(piece) for decoder, piece in zip(self._parts, cut, strict=True)]
        )

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the least and the largest noise of a user of the same group."""
        low, high = zip(*(decoder.noise_extremes() for decoder in self._parts), strict=True)
        return np.concatenate(low), np.concatenate(high)

    def groups(self) -> Integers:
        """Return the group of each value: its attribute, and what that one discloses."""
        numbers, first = [], 0
        for decoder in self._parts:
            groups = decoder.groups()
            group = (
                np.zeros(decoder.extremes()[0].size, dtype=np.int64) if groups is None else groups
            )
            numbers.append(group + first)
            first += int(group.max()) + 1
        return np.concatenate(numbers)

    def group_reports(self, statistic: Statistic) -> Integers:
        pairs = zip(self._parts, self._slices, strict=True)
        return np.concatenate([decoder.group_reports(statistic[span]) for decoder, span in pairs])
