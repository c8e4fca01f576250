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
RANGES = {"night": (0, 7), "day": (4, 15), "late": (12, 23)}


@on_one_broker
def test_values_are_merged_on_devices_and_only_unions_are_answered(lab: Lab, tmp_path: Path):
    rng = np.random.default_rng(34)
    hours = rng.integers(0, 24, N)
    with lab.file.open("a") as file:
        file.write(
            '\n[collection.hours]\nmechanism = "subset-selection"\nepsilon = 2.0\n'
            'domain = { size = 24 }\nworkload = "published"\n'
            f'topic = "hours-{lab.collection.topics.source}"\npartitions = 2\n'
            'precision = "1ms"\nminimum = 1\n'
            'window = { size = "10s", grace = "0s", idle = "off" }\n'
            "publish = { ranges = { night = [0, 7], day = [4, 15], late = [12, 23] } }\n"
        )
    values, reports = tmp_path / "hours.csv", tmp_path / "hours.jsonl"
    times = START_MS + rng.integers(0, WINDOW_MS, N)
    rows = zip(times.tolist(), hours.tolist(), strict=True)
    values.write_text("".join(f"{when},{hour}\n" for when, hour in rows))
    options = ("-c", lab.file, "hours")
    reports.write_text(command("privatize", *options, values, "--times", "--replay"))
    here = json.loads(command("estimate", "--json", *options, reports, "--top", "all"))
    with lab.worker() as worker:
        command("send", *options, reports, "--reports", "--replay", "--batch", "1000")
        command("close", *options, "--until", str(START_MS + WINDOW_MS))
        there = final(worker.url, "hours", "--top", "all")
        assert there == {**here, "window": there["window"], "size": "10s", "final": True}
        union = final(worker.url, "hours", "--range", "4..11")
        refused = invoke("query", worker.url, "hours", "--range", "5..23")
        described = worker.get("/api/collections/hours")
    assert there["n"] == N
    names = ["0..3", "4..7", "8..11", "12..15", "16..23"]
    assert [entry["value"] for entry in there["distribution"]] == names
    for entry, (first, last) in zip(there["ranges"], RANGES.values(), strict=True):
        share = float(np.mean((hours >= first) & (hours <= last)))
        assert abs(entry["share"] - share) < 6 * entry["se"]  # fails with probability below 1e-8
    assert union["ranges"][0]["share"] == pytest.approx(
        sum(entry["share"] for entry in there["distribution"][1:3])
    )
    assert refused.exit_code != 0
    assert "only unions of 0..3; 4..7;" in " ".join(refused.output.split())
    assert described["domain"] == {
        "kind": "values",
        "shape": [5],
        "ordered": False,
        "intervals": None,
        "rounded": False,
    }
