"""Values of one share, of which all is known that is known of one of them."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.decoder import Decoder


@dataclass(frozen=True)
class Distinct:
    """One value of each share that some value has.

    `values` int64 `(d,)`; `places`, int64 `(k,)`, say which of them has the share of each value.
    """

    values: Integers
    places: Integers

    @classmethod
    def of(cls, decoder: Decoder, decoded: Floats) -> Self | None:
        """Return those of the sums of all single values' decoders, float64 `(k,)`.

        None where a share does not tell everything of its value, or where half of the values or
        more could have shares of their own.
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
    """Return these entries; of more places than entries, all alike, one that is not to be set."""
    if isinstance(places, slice) or len(places) <= array.size or (array != array[0]).any():
        return array[places] if isinstance(places, slice) else array.take(places)
    return np.broadcast_to(array[0], len(places))
