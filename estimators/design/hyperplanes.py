"""Balanced sets of values as seeds of a search: points on hyperplanes of a projective space.

Under classical LDP with uniform shares, a channel whose reports support these sets is close to the
best one at any size (projective geometry response, docs/theory.md section 8). With hundreds of
values, a search that adds a few columns in each round would take long to get there.
"""

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.families.design.geometry_choice import choose


def hyperplanes(size: int, epsilon: float) -> NDArray[np.float64]:
    """Return 1 where a value is on a hyperplane, 0 elsewhere: `(n, k)`, sets of 1..k-1 values."""
    geometry = choose(budget(epsilon), size)
    points, values = np.arange(geometry.points), np.arange(size)
    members = np.stack(
        [geometry.orthogonal(values, np.full(size, point)) for point in points.tolist()]
    )
    proper = members[members.any(axis=1) & ~members.all(axis=1)]
    return np.unique(proper, axis=0).astype(np.float64)
