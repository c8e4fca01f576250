"""Workloads: families of linear queries for which a strategy is chosen, as Gram matrices.

If the estimates of the values have covariance C, the total error of a workload W (a query a row) is
`tr(W C W^T) = sum (W^T W) * C`, entry by entry, so that W itself, which may be large, is not
needed.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats


def _values(size: int) -> Floats:
    return np.eye(size)


def _prefixes(size: int) -> Floats:
    places = np.arange(size)
    return np.asarray(size - np.maximum.outer(places, places), dtype=np.float64)


def _ranges(size: int) -> Floats:
    places = np.arange(size)
    before, after = np.minimum.outer(places, places) + 1, size - np.maximum.outer(places, places)
    return np.asarray(before * after, dtype=np.float64)


WORKLOADS: Final[Mapping[str, Callable[[int], Floats]]] = MappingProxyType(
    {"values": _values, "prefixes": _prefixes, "ranges": _ranges}
)
"""`W^T W` of each workload, float64 `(k, k)`, by name.

`values`: every single one, k queries. `prefixes`: `{0..i}`, k queries. `ranges`: all `{i..j}`,
`k (k + 1)/2` queries ([ML] III-B says `k (k - 1)/2`, which leaves out the single values).
"""
