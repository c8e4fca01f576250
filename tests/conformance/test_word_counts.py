"""How many words a report takes does not depend on the value: counting calls tells nothing of it.

With the same words every value of a block takes equally many, in calls of the same sizes. Points of
a projective space are drawn by rejection: there only the probability of a rejection is the same.
"""

import numpy as np
import pytest

from ldpstream.mechanisms.exact.entropy import WORD, Entropy
from ldpstream.mechanisms.families.design.geometry_transform import Geometry
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.groups.mechanism import Groups
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.families.tree.tree import Tree
from ldpstream.mechanisms.interface.mechanism import Mechanism
from tests.conformance.instances import INSTANCES
from tests.seeded import assert_alike

MOST_VALUES = 40


def rejects(mechanism: Mechanism) -> bool:
    """Whether points are drawn by rejection."""
    if isinstance(mechanism, Sampled):
        return any(rejects(part) for part in mechanism.parts)
    if isinstance(mechanism, Tree):
        trees = mechanism.layout.trees
        return any(level.channel.geometry for tree in trees for level in tree.levels)
    if isinstance(mechanism, Groups):
        return any(
            one.design.geometry and one.supporting < WORD for one in mechanism.thresholds.kinds
        )
    return isinstance(mechanism, ProjectiveGeometry)


ALIKE = {name: one for name, one in INSTANCES.items() if not rejects(one)}


def protected_together(mechanism: Mechanism) -> list[list[int]]:
    """The values that are joined by pairs with a finite budget; groups are disclosed."""
    group = np.arange(mechanism.size)
    for value, other, _ in mechanism.policy.constraints():
        group[group == group[other]] = group[value]
    groups = [np.flatnonzero(group == one) for one in np.unique(group)]
    return [
        sorted({int(one[i]) for i in np.linspace(0, len(one) - 1, MOST_VALUES).astype(int)})
        for one in groups
    ]


@pytest.mark.parametrize("mechanism", ALIKE.values(), ids=ALIKE.keys())
def test_every_value_takes_as_many_words(mechanism: Mechanism):
    def draw(value: int, entropy: Entropy) -> None:
        mechanism.randomise(np.array([value]), entropy)

    for values in protected_together(mechanism):
        assert_alike(draw, values)


@pytest.mark.parametrize(
    ("q", "dimension", "values"), [(2, 2, 3), (2, 4, 12), (3, 3, 13), (7, 2, 8)]
)
def test_every_value_rejects_equally_many_points(q: int, dimension: int, values: int):
    geometry = Geometry(q, dimension)
    points = np.arange(geometry.points)
    rejected = [
        int(geometry.orthogonal(np.full(len(points), value), points).sum())
        for value in range(values)
    ]
    assert set(rejected) == {geometry.inside}
