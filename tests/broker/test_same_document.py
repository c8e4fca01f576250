"""Reports give the same document in a file and through the broker, number for number."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.broker.asking import command, final
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS

pytestmark = pytest.mark.broker
OPTIONS = ("--top", "all", "--range", "2..7", "--quantile", "0.5", "--method", "bernstein")


@pytest.mark.parametrize("options", [(), OPTIONS], ids=["as configured", "as asked"])
def test_estimate_and_worker_agree(lab: Lab, tmp_path: Path, options: tuple[str, ...]):
    rng = np.random.default_rng(5)
    n, name = 3_000, lab.collection.name
    times = START_MS + rng.integers(0, WINDOW_MS, n)
    values = rng.zipf(1.5, n) % 12
    lines = "".join(f"{t},{v}\n" for t, v in zip(times, values, strict=True))
    (tmp_path / "values.csv").write_text(lines)
    written = command(
        "privatize", "-c", lab.file, name, tmp_path / "values.csv", "--times", "--replay"
    )
    reports = tmp_path / "reports.jsonl"
    reports.write_text(written)

    here = json.loads(command("estimate", "-c", lab.file, name, reports, *options))
    with lab.worker() as worker:
        command("send", "-c", lab.file, name, reports, "--reports", "--replay", "--batch", "7")
        command("close", "-c", lab.file, name, "--until", str(START_MS + WINDOW_MS))
        there = final(worker.url, name, *options)

    assert here["n"] == there["n"] == n
    assert here["distribution"]
    assert here["window"] is None
    assert there["window"] is not None
    for document in (here, there):
        del document["window"], document["final"]
    assert here == there
