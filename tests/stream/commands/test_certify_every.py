"""`ldpstream certify` over a grid of parameters of every mechanism, as an operator runs it."""

import json
from itertools import product
from pathlib import Path

import pytest

from ldpstream.mechanisms import MECHANISMS
from tests.soak import chosen
from tests.stream.cli import invoke

pytestmark = pytest.mark.slow

CHANNELS = Path(__file__).parents[2] / "vectors" / "channels"
CHANNEL_SIZES = {"asymmetric": 3, "classical": 5, "line": 6, "graph": 6, "lip": 4}
EPSILONS = chosen(("1.0",), soak=("1e-6", "0.1", "1.0", "5.0", "50.0"))
"""Of a tiny and of a huge budget tests/conformance certifies every mechanism."""
LABELS = '{ values = ["no", "yes"] }'
BLOCKWISE = (
    "{ size = 2 }",
    "{ size = 7 }",
    "{ size = 64 }",
    "{ size = 9, blocks = [[0], [1, 2, 3, 4, 5], [6, 7], [8]] }",
    "{ grid = [5, 7], blocks = [2, 3] }",
    "{ size = 300, blocks = 40 }",
)
ORDERED = (
    "{ size = 2 }",
    "{ size = 7 }",
    "{ sizes = [3, 1, 4] }",
    "{ grid = [5, 7] }",
    "{ interval = [0.0, 1.0], bins = 10 }",
    '{ interval = [0.0, 1.0], bins = 10, rounding = "random" }',
    "{ size = 300 }",
)


def tables(epsilons: tuple[str, ...], domains: tuple[str, ...], more: str = "") -> list[str]:
    return [
        f"epsilon = {epsilon}\ndomain = {domain}\n{more}"
        for epsilon, domain in product(epsilons, domains)
    ]


GRID: dict[str, list[str]] = {
    "binary": tables(
        ("[1e-6, 1e-6]", "[0.1, 5.0]", "[inf, 1.0]", "[50.0, inf]", "[50.0, 50.0]"), (LABELS,)
    ),
    "groups": tables(EPSILONS, ("{ size = 2 }", "{ size = 7 }"), "sensitive = [0]"),
    "high-low": tables(EPSILONS, ("{ size = 2 }", "{ size = 7 }"), "sensitive = [0]")
    + tables(EPSILONS, ("{ size = 300 }",), "sensitive = [1, 5, 6, 200]"),
    "block-hadamard": tables(EPSILONS, BLOCKWISE),
    "randomized-response": tables(EPSILONS, BLOCKWISE),
    "projective-geometry": tables(EPSILONS, BLOCKWISE),
    "subset-selection": tables(EPSILONS, BLOCKWISE),
    "l1-bits": tables(EPSILONS, ORDERED),
    "l1-geometric": tables(EPSILONS, ORDERED)
    + tables(EPSILONS, ("{ size = 40 }", "{ grid = [6, 6] }"), "weights = { private = 3 }")
    + tables(EPSILONS, ("{ grid = [5, 7] }",), 'policy = { metric = "l2" }'),
    "lip": tables(EPSILONS, (LABELS,), "prior = 0.01")
    + tables(EPSILONS, (LABELS,), "prior = 0.5")
    + tables(EPSILONS, (LABELS,), "prior = { levels = 16 }"),
    "matrix": [
        f'{table}\nstrategy = "{strategy}"'
        for strategy in ("identity", "prefix", "hierarchical", "haar", "best")
        for table in tables(EPSILONS, ("{ size = 2 }", "{ size = 7 }", "{ size = 33 }"))
    ],
    "tree": tables(
        EPSILONS,
        (
            "{ size = 2 }",
            "{ size = 7 }",
            "{ size = 9, blocks = [[0], [1, 2, 3, 4, 5], [6, 7], [8]] }",
            "{ sizes = [3, 1, 4] }",
            "{ interval = [0.0, 1.0], bins = 10 }",
            "{ size = 300, blocks = 40 }",
        ),
    ),
    "optimal": [
        f'domain = {{ size = {size} }}\nchannel = "{CHANNELS}/{name}.json"'
        for name, size in CHANNEL_SIZES.items()
    ],
}


def test_every_mechanism_has_a_grid():
    # The certificate of `sampled` is made of its attributes' certificates: test_sampled.
    assert set(GRID) | {"sampled"} == set(MECHANISMS)


@pytest.mark.soak
@pytest.mark.parametrize("mechanism", GRID)
def test_every_certificate_of_the_grid_passes(mechanism: str, tmp_path: Path):
    file = tmp_path / "grid.toml"
    named = [
        f'[collection.case{number}]\nmechanism = "{mechanism}"\n{table}\n'
        for number, table in enumerate(GRID[mechanism])
    ]
    file.write_text("\n".join(named))
    result = invoke("certify", "-c", str(file))
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert document["pass"] is True
    assert len(document["collections"]) == len(named)
    for certificate in document["collections"]:
        assert certificate["pass"] is True
        assert certificate["violation"] is None
        assert certificate["losses"]
