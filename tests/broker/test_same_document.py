"""Reports give the same document in a file and through the broker, number for number."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import PATIENCE_SECONDS

pytestmark = pytest.mark.broker
COMMAND = [sys.executable, "-m", "ldpstream.agents.cli"]
OPTIONS = ("--top", "all", "--range", "2..7", "--quantile", "0.5", "--method", "bernstein")


def command(*words: str | Path) -> str:
    return subprocess.run([*COMMAND, *words], check=True, capture_output=True, text=True).stdout


def final(url: str, name: str, *options: str) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        windows = json.loads(command("query", url, name, "--all", "--json", *options))["windows"]
        if windows and windows[0]["final"]:
            (document,) = windows
            return dict(document)
        time.sleep(0.3)
    raise AssertionError("no final window")


@pytest.mark.parametrize("options", [(), OPTIONS], ids=["as configured", "as asked"])
def test_estimate_and_worker_agree(lab: Lab, tmp_path: Path, options: tuple[str, ...]):
    rng = np.random.default_rng(5)
    n, name = 3_000, lab.collection.name
    times = START_MS + rng.integers(0, WINDOW_MS, n)
    values = rng.zipf(1.5, n) % 12
    lines = "".join(f"{t},{v}\n" for t, v in zip(times, values, strict=True))
    (tmp_path / "values.csv").write_text(lines)
    written = command("privatize", "-c", lab.file, name, tmp_path / "values.csv", "--times")
    reports = tmp_path / "reports.jsonl"
    reports.write_text(written)

    here = json.loads(command("estimate", "-c", lab.file, name, reports, *options))
    with lab.worker() as worker:
        command("send", "-c", lab.file, name, reports, "--reports", "--batch", "7")
        command("close", "-c", lab.file, name, "--until", str(START_MS + WINDOW_MS))
        there = final(worker.url, name, *options)

    assert here["n"] == there["n"] == n
    assert here["distribution"]
    assert here["window"] is None
    assert there["window"] is not None
    for document in (here, there):
        del document["window"], document["final"]
    assert here == there
