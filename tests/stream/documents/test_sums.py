"""Statistics with negative sums through cells, finals and the API, without a broker."""

import json
from typing import Any

import numpy as np
import pytest
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.state.cell_encoding import decode_chunk
from ldpstream.agents.state.view import totals
from ldpstream.agents.web import build_http
from tests.replicas import stored_final
from tests.seeded import SeededEntropy
from tests.stream.asking import ask
from tests.stream.serving import MINUTE_MS, START_MS, Pipeline, Served, serve_collections

HOURS: dict[str, Any] = {
    "mechanism": "l1-bits",
    "epsilon": 1.0,
    "domain": {"sizes": [7, 24]},
    "partitions": 2,
    "minimum": 10,
    "window": {"size": "2m", "hop": "1m", "idle": "off", "future": "1m", "retention": "1h"},
    "publish": {"top": 5, "ranges": {"week": [[0, 4], [8, 17]]}},
}
LINE: dict[str, Any] = {
    "mechanism": "l1-bits",
    "epsilon": 0.5,
    "domain": {"size": 40},
    "partitions": 1,
    "minimum": 0,
    "window": {"size": "1m", "retention": "1h"},
    "publish": {"quantiles": [0.5], "ranges": {"upper": [30, 39]}},
}


def late_hours(seed: int, n: int) -> list[list[int]]:
    """Return large values, for which most entries of their bits are -1."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(4, 7, n), rng.integers(15, 24, n)], axis=1).tolist()


@pytest.fixture
def pipeline() -> Pipeline:
    made = serve_collections({"hours": HOURS, "line": LINE})
    for partition in range(2):
        for minute in range(3):
            times = [START_MS + minute * MINUTE_MS] * 300
            seed = 10 * partition + minute
            made.collections["hours"].report(
                partition, late_hours(seed, 300), times_ms=times, seed=seed
            )
    values = np.random.default_rng(3).binomial(39, 0.8, 3000).tolist()
    made.collections["line"].report(0, values, times_ms=[START_MS] * 3000, seed=3)
    return made


def accumulated(served: Served, panes: range) -> np.ndarray:
    """Return the statistic of the same reports, accumulated at once."""
    mechanism = served.config.spec.mechanism
    statistic = mechanism.empty()
    for partition in range(2):
        for minute in panes:
            seed = 10 * partition + minute
            labels = late_hours(seed, 300)
            reports = served.config.spec.privatize(labels, entropy=SeededEntropy(seed))
            mechanism.accumulate(statistic, reports)
    return statistic


def test_panes_add_up_to_the_statistic_of_all_reports(pipeline: Pipeline):
    hours = pipeline.collections["hours"]
    for panes in (range(1), range(1, 3), range(3)):
        start, end = (START_MS + edge * MINUTE_MS for edge in (panes.start, panes.stop))
        found = totals(hours.context, hours.replicas, start, end)
        assert found.n == 600 * len(panes)
        assert np.array_equal(found.statistic, accumulated(hours, panes))
        assert found.statistic.min() < -30 * len(panes)
        assert found.statistic[-1] == found.n
    cells = [
        (name.chunk, replica.value(name))
        for replica in hours.replicas
        for name in replica.cells
        if name.kind == "count"
    ]
    # 168 sums in chunks of 16.
    parts = [decode_chunk(value, 8 if chunk == 10 else 16) for chunk, value in cells]
    assert any(part.sum() < 0 for part in parts)


async def test_documents_hold_ranges_and_quantiles(pipeline: Pipeline):
    """Bernstein bounds hold at every n: this fails with probability below 1e-6."""
    hours, line = pipeline.collections["hours"], pipeline.collections["line"]
    hours.close(START_MS + 2 * MINUTE_MS)
    stored = stored_final(hours.context, hours.replicas, START_MS)
    assert stored is not None
    asked = "method=bernstein&confidence=0.9999999"
    async with TestClient(TestServer(build_http(pipeline))) as client:
        span = f"start={START_MS}&end={START_MS + 2 * MINUTE_MS}"
        answer = await ask(client, f"/api/collections/hours/estimate?{span}")
        final = json.loads(stored)
        assert answer == final
        assert (answer["n"], len(answer["distribution"])) == (1200, 5)
        boxes = "range=4..6,15..23&range=0..6,0..23&range=0..3,0..23"
        answer = await ask(client, f"/api/collections/hours/estimate?{span}&{boxes}&{asked}")
        late, whole, early = answer["ranges"]
        assert late["low"] <= 1.0 <= late["high"]
        assert early["low"] <= 0.0 <= early["high"]
        assert (whole["low"], whole["share"], whole["high"], whole["se"]) == (1.0, 1.0, 1.0, 0.0)
        truth = np.random.default_rng(3).binomial(39, 0.8, 3000)
        chosen = "range=30..39&quantile=0.1&quantile=0.5"
        answer = await ask(client, f"/api/collections/line/estimate?{chosen}&{asked}")
        (upper,) = answer["ranges"]
        assert upper["low"] <= (truth >= 30).mean() <= upper["high"]
        assert upper["high"] - upper["low"] < 0.5
        tenth, half = answer["quantiles"]
        for entry, p in ((tenth, 0.1), (half, 0.5)):
            exact = int(np.quantile(truth, p, method="inverted_cdf"))
            assert entry["low"] <= exact <= entry["high"]
        assert half["high"] - half["low"] < 20
    published = close_and_read(line)
    assert [entry["p"] for entry in published["quantiles"]] == [0.5]


def close_and_read(served: Served) -> dict[str, Any]:
    served.close(START_MS + MINUTE_MS)
    stored = stored_final(served.context, served.replicas, START_MS)
    assert stored is not None
    document: dict[str, Any] = json.loads(stored)
    return document
