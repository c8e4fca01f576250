"""`workload = "published"` end to end: values, reports on atoms, a worker's finals and queries."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.broker.asking import command, final
from tests.broker.conftest import on_one_broker
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.stream.cli import invoke

pytestmark = pytest.mark.broker
N = 20_000
RANGES = {"first": (0, 341), "middle": (170, 682), "last": (512, 1023)}
NAMES = ["0..169", "170..341", "342..511", "512..682", "683..1023"]


@on_one_broker
def test_values_are_merged_on_devices_and_only_unions_are_answered(lab: Lab, tmp_path: Path):
    rng = np.random.default_rng(34)
    places = rng.integers(0, 1_024, N)
    with lab.file.open("a") as file:
        file.write(
            '\n[collection.places]\nmechanism = "subset-selection"\nepsilon = 1.0\n'
            'domain = { size = 1024 }\nworkload = "published"\n'
            f'topic = "places-{lab.collection.topics.source}"\npartitions = 2\n'
            'precision = "1ms"\nminimum = 1\n'
            'window = { size = "10s", grace = "0s", idle = "off" }\n'
            "publish = { ranges = { first = [0, 341], middle = [170, 682], last = [512, 1023] } }\n"
        )
    values, reports = tmp_path / "places.csv", tmp_path / "places.jsonl"
    times = START_MS + rng.integers(0, WINDOW_MS, N)
    rows = zip(times.tolist(), places.tolist(), strict=True)
    values.write_text("".join(f"{when},{place}\n" for when, place in rows))
    options = ("-c", lab.file, "places")
    reports.write_text(command("privatize", *options, values, "--times", "--replay"))
    here = json.loads(command("estimate", "--json", *options, reports, "--top", "all"))
    with lab.worker() as worker:
        command("send", *options, reports, "--reports", "--replay", "--batch", "1000")
        command("close", *options, "--until", str(START_MS + WINDOW_MS))
        there = final(worker.url, "places", "--top", "all")
        assert there == {**here, "window": there["window"], "size": "10s", "final": True}
        union = final(worker.url, "places", "--range", "170..511")
        refused = invoke("query", worker.url, "places", "--range", "171..1023")
        described = worker.get("/api/collections/places")
    assert there["n"] == N
    assert [entry["value"] for entry in there["distribution"]] == NAMES
    for entry, (first, last) in zip(there["ranges"], RANGES.values(), strict=True):
        share = float(np.mean((places >= first) & (places <= last)))
        assert abs(entry["share"] - share) < 6 * entry["se"]  # fails with probability below 1e-8
    # With `tree` and the same list it is 44.
    assert np.mean([entry["se"] ** 2 * N for entry in there["ranges"]]) <= 3.6
    assert union["ranges"][0]["share"] == pytest.approx(
        sum(entry["share"] for entry in there["distribution"][1:3])
    )
    assert refused.exit_code != 0
    assert "only unions of 0..169; 170..341;" in " ".join(refused.output.split())
    assert described["domain"] == {
        "kind": "values",
        "shape": [5],
        "ordered": False,
        "intervals": None,
        "rounded": False,
    }
