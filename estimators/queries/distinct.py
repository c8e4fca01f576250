"""Values with equal shares, whose estimates and bounds are equal and are computed once."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.decoder import Decoder


@dataclass(frozen=True)
class Distinct:
    """One value for each different share.

    `values` is int64 `(d,)`; `places`, int64 `(k,)`, is the entry with the share of each value.
    """

    values: Integers
    places: Integers

    @classmethod
    def of(cls, decoder: Decoder, decoded: Floats) -> Self | None:
        """Return the distinct ones of the sums of all single values' decoders, float64 `(k,)`.

        None if a value's estimate does not follow from its share alone, or if there could be half
        as many different shares as values.
        """
        if decoder.step is None:
            return None
        least = decoded.min()
        steps = decoded - least
        steps /= decoder.step
        most = float(steps.max()) + 1.0
        if not 2.0 * most < decoded.size:
            return None
        step = np.rint(steps, out=steps).astype(np.int64)
        owner = np.full(round(most), -1, dtype=np.int64)
        owner[step] = np.arange(decoded.size)
        some = owner >= 0
        return cls(owner[some], (np.cumsum(some) - 1)[step])


def taken(array: NDArray[Any], places: Integers | slice) -> NDArray[Any]:
    """Return these entries; if all are equal and places are many, as a read-only broadcast view."""
    if isinstance(places, slice) or len(places) <= array.size or (array != array[0]).any():
        return array[places] if isinstance(places, slice) else array.take(places)
    return np.broadcast_to(array[0], len(places))
