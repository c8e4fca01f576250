"""Every mechanism, end to end: privatized, produced, counted by a worker, estimated, queried.

A worker's final document is the one that `estimate` gives for the same reports, number for number.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms import MECHANISMS
from tests.broker.asking import command, final
from tests.broker.conftest import on_one_broker
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS

pytestmark = pytest.mark.broker
CHANNEL = Path(__file__).parents[1] / "vectors" / "channels" / "line.json"
LINE = "domain = { size = 6 }"
LABELS = 'domain = { values = ["no", "yes"] }'
RECORDS = (
    'domain = { attributes = { line = { size = 6, mechanism = "tree", epsilon = 1.0 }, '
    'answer = { values = ["no", "yes"], mechanism = "binary", epsilon = [1.0, 2.0] } } }'
)
PUBLISHED = (
    'epsilon = 1.0\nworkload = "published"\n'
    "publish = { ranges = { first = [0, 341], middle = [170, 682], last = [512, 1023] } }"
)
ORDERED = ("--range", "2..4", "--quantile", "0.5")
TABLES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "binary": ("epsilon = [1.0, 2.0]", LABELS, ()),
    "high-low": ("epsilon = 1.0\nsensitive = [1, 2]", LINE, ORDERED),
    "groups": ("epsilon = 1.0\nsensitive = [1, 2, 4, 5]", LINE, ORDERED),
    "block-hadamard": (
        "epsilon = 1.0",
        "domain = { size = 6, blocks = 4 }",
        (*ORDERED, "--method", "bernstein"),
    ),
    "randomized-response": ("epsilon = 1.0", "domain = { size = 6, blocks = 4 }", ORDERED),
    "projective-geometry": ("epsilon = 1.0", "domain = { size = 6, blocks = 4 }", ORDERED),
    "subset-selection": ("epsilon = 1.0", "domain = { size = 6, blocks = 4 }", ORDERED),
    "l1-bits": ("epsilon = 1.0", LINE, ORDERED),
    "l1-geometric": ("epsilon = 1.0\nweights = { private = 3 }", LINE, ORDERED),
    "lip": ("epsilon = 1.0\nprior = 0.3", LABELS, ()),
    "optimal": (f'channel = "{CHANNEL}"', LINE, ORDERED),
    "sampled": (
        "",
        RECORDS,
        ("--attribute", "line", *ORDERED),
    ),
    "tree": ("epsilon = 1.0", "domain = { size = 6, blocks = 4 }", ORDERED),
    "matrix": ('epsilon = 1.0\nstrategy = "prefix"', LINE, ORDERED),
    "priors": ("epsilon = [0.5, 2.0]\nprior = { levels = 64 }", LABELS, ()),
    "atoms": (PUBLISHED, "domain = { size = 1024 }", ("--range", "170..511")),
}
VARIANTS = {"priors": "lip", "atoms": "subset-selection"}
"""Collections of a mechanism that has another one already."""
N = 900


def values_of(mechanism: str, rng: np.random.Generator) -> list[str]:
    if TABLES[mechanism][1] == LABELS:
        answers = rng.choice(["no", "yes"], N, p=[0.7, 0.3]).tolist()
        # Each device knows its prior, and chooses its budget.
        return [f"{one},0.3,2" for one in answers] if mechanism == "priors" else answers
    lines = [str(value) for value in rng.integers(0, 1_024 if mechanism == "atoms" else 6, N)]
    if mechanism == "sampled":
        return [f"{line},{answer}" for line, answer in zip(lines, ["no", "yes"] * N, strict=False)]
    if "weights" in TABLES[mechanism][0]:
        weights = rng.integers(0, 4, N).tolist()
        return [f"{line},{weight}" for line, weight in zip(lines, weights, strict=True)]
    return lines


def test_there_is_a_collection_for_every_mechanism():
    assert {VARIANTS.get(name, name) for name in TABLES} == set(MECHANISMS)


@on_one_broker
def test_every_mechanism_from_values_to_the_same_document(lab: Lab, tmp_path: Path):
    rng = np.random.default_rng(8)
    with lab.file.open("a") as file:
        for mechanism, (keys, domain, _) in TABLES.items():
            file.write(
                f"\n[collection.{mechanism}]\n{keys}\n{domain}\n"
                f'mechanism = "{VARIANTS.get(mechanism, mechanism)}"\n'
                f'topic = "{mechanism}-{lab.collection.topics.source}"\npartitions = 2\n'
                'precision = "1ms"\nminimum = 1\n'
                'window = { size = "10s", grace = "0s", idle = "off" }\n'
            )
    here = {}
    for mechanism, (_, _, options) in TABLES.items():
        times = START_MS + rng.integers(0, WINDOW_MS, N)
        lines = zip(times.tolist(), values_of(mechanism, rng), strict=True)
        values, reports = tmp_path / f"{mechanism}.csv", tmp_path / f"{mechanism}.jsonl"
        header = "time,line,answer\n" if mechanism == "sampled" else ""
        values.write_text(header + "".join(f"{when},{value}\n" for when, value in lines))
        reports.write_text(
            command("privatize", "-c", lab.file, mechanism, values, "--times", "--replay")
        )
        asked = ("--top", "all", *options)
        here[mechanism] = json.loads(
            command("estimate", "--json", "-c", lab.file, mechanism, reports, *asked)
        )
    with lab.worker() as worker:
        for mechanism in TABLES:
            reports = tmp_path / f"{mechanism}.jsonl"
            command(
                "send", "-c", lab.file, mechanism, reports, "--reports", "--replay", "--batch", "20"
            )
            command("close", "-c", lab.file, mechanism, "--until", str(START_MS + WINDOW_MS))
        for mechanism, (_, _, options) in TABLES.items():
            there = final(worker.url, mechanism, "--top", "all", *options)
            expected = {**here[mechanism], "window": there["window"], "size": "10s", "final": True}
            assert there.get("of", there["n"]) == N
            assert there["distribution"]
            assert there == expected
