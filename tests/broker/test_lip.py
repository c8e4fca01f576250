"""`lip` through a broker: values with priors sent, a worker's final document, its metrics."""

import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from tests.broker.asking import command, final
from tests.broker.conftest import on_one_broker
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import PATIENCE_SECONDS

pytestmark = [pytest.mark.broker, on_one_broker]


def samples(url: str) -> dict[str, float]:
    """Return the samples of `/metrics` by name and labels."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=PATIENCE_SECONDS) as answer:
        lines = answer.read().decode().splitlines()
    named = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    return {name: float(number) for name, number in named}


def test_a_wrong_prior_shows_in_the_document_and_in_metrics(lab: Lab, tmp_path: Path):
    """Every prior is 0.3 too low, which goes unnoticed by chance with probability below 1e-9."""
    rng = np.random.default_rng(5)
    n = 6_000
    priors = rng.uniform(0.1, 0.5, n)
    ill = rng.random(n) < priors + 0.3
    times = START_MS + rng.integers(0, WINDOW_MS, n)
    (tmp_path / "values.csv").write_text(
        "".join(
            f"{t},{('well', 'ill')[int(x)]},{prior},{(0.5, 2)[i % 2]}\n"
            for i, (t, x, prior) in enumerate(zip(times, ill, priors, strict=True))
        )
    )
    with lab.file.open("a") as file:
        file.write(
            f"""
[collection.ill]
mechanism = "lip"
epsilon = [0.5, 2.0]
prior = {{ levels = 64 }}
domain = {{ values = ["well", "ill"] }}
topic = "ill-{lab.collection.topics.source}"
partitions = 2
precision = "1ms"
window = {{ size = "10s", grace = "0s", idle = "off" }}
publish = {{ every = "500ms", top = 2 }}
"""
        )
    with lab.worker() as worker:
        values = tmp_path / "values.csv"
        command("send", "-c", lab.file, "ill", values, "--times", "--replay", "--batch", "50")
        command("close", "-c", lab.file, "ill", "--until", str(START_MS + WINDOW_MS))
        document = final(worker.url, "ill")
        name = 'ldpstream_prior_calibration_wrong{collection="ill"}'
        deadline = time.monotonic() + PATIENCE_SECONDS
        while samples(worker.url).get(name) is None and time.monotonic() < deadline:
            time.sleep(0.3)
        found = samples(worker.url)

    assert document["n"] == n
    shares = {entry["value"]: entry for entry in document["distribution"]}
    # 7 standard errors: without priors the estimate is right; with them it is withheld.
    truth = ill.mean()
    assert abs(shares["ill"]["share"] - truth) < 7 * shares["ill"]["se"]
    assert document["mmse"]["share"] is document["mmse"]["high"] is None
    assert "which are too low" in document["mmse"]["withheld"]
    assert document["calibration"]["wrong"] is True
    assert found[name] == 1.0
    flagged = 'ldpstream_prior_calibration_flagged_levels{collection="ill"}'
    assert found[flagged] == document["calibration"]["flagged"] > 0
    assert 'ldpstream_estimate{collection="ill",query="mmse:ill"}' not in found
    assert 'ldpstream_estimate{collection="ill",query="value:ill"}' in found
