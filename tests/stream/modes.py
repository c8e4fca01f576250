"""Collections and reports for tests of `import ldpstream as ldp`."""

from typing import Any

import ldpstream as ldp
from tests.seeded import SeededEntropy

VALUES = ["bus", "train", "walk", "car"]
MODES = ldp.define_collection(
    "modes", mechanism="block-hadamard", epsilon=8.0, domain={"values": VALUES}, minimum=1
)
GRID = ldp.define_collection(
    "grid", mechanism="block-hadamard", epsilon=8.0, domain={"grid": [3, 4]}, minimum=1
)
AGES = ldp.define_collection(
    "ages",
    mechanism="l1-bits",
    epsilon=2.0,
    domain={"interval": [0.0, 100.0], "bins": 10},
    minimum=1,
)


def draw(collection: Any, values: Any, **options: Any) -> ldp.ReportSet:
    return ldp.privatize(collection, values, entropy=SeededEntropy(1), **options)
