"""A collection in a state that nobody expected fails its own answers alone, and says why."""

import json
import logging
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.engine.metrics import Metrics
from ldpstream.agents.engine.process import FORMAT_VARIABLE, set_up_logging
from ldpstream.agents.web import build_http
from tests.stream.logs import logging_restored
from tests.stream.scraped import scrape, value
from tests.stream.serving import AGES, RIDES, Pipeline, Served, serve_collections


class _Odd(Served):
    """A collection whose problems cannot be told."""

    @property
    def problems(self) -> Any:
        return [][3]

    @problems.setter
    def problems(self, _: Any) -> None: ...


@pytest.fixture
def pipeline() -> Pipeline:
    made = serve_collections({"rides": RIDES, "ages": AGES})
    odd = _Odd(**{**vars(made.collections["rides"]), "problems": []})
    return Pipeline({**made.collections, "rides": odd})


def problems(metrics: Metrics, name: str) -> float:
    return value(scrape(metrics), "ldpstream_problems", collection=name)


async def test_other_collections_metrics_and_probes_are_answered(pipeline: Pipeline) -> None:
    metrics = pipeline.metrics
    async with TestClient(TestServer(build_http(pipeline))) as client:
        for path, status in {
            "/api/collections/ages/status": 200,
            "/api/collections/rides/status": 500,
            "/api/collections": 200,
            "/readyz": 503,
            "/healthz": 200,
            "/metrics": 200,
        }.items():
            assert (await client.get(path)).status == status, path
        answer = await (await client.get("/readyz")).json()
        listed = await (await client.get("/api/collections")).json()
        failed = await client.get("/api/collections/rides/status")
        assert (await failed.json())["error"].startswith("internal error: the worker's log")
    assert answer["reasons"] == [
        "rides: internal error: IndexError('list index out of range')",
    ]
    assert [one["ready"] for one in listed["collections"]] == [False, True]
    assert (problems(metrics, "rides"), problems(metrics, "ages")) == (1.0, 0.0)
    ready = [value(scrape(metrics), "ldpstream_ready", collection=n) for n in ("rides", "ages")]
    assert ready == [0.0, 1.0]


@pytest.mark.parametrize("form", ["text", "json"])
async def test_a_failed_request_logs_its_traceback_once(
    pipeline: Pipeline,
    form: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(FORMAT_VARIABLE, form)
    with logging_restored():
        set_up_logging()
        async with TestClient(TestServer(build_http(pipeline))) as client:
            for _ in range(3):
                await client.get("/api/collections/rides/status?")
            await client.get("/readyz")
        logging.getLogger("ldpstream.agents").error("another event")
    said = capsys.readouterr().err
    if form == "json":
        first, *others = map(json.loads, said.splitlines())
        assert first["message"] == "a request failed: /api/collections/{name}/status"
        assert "return [][3]" in first["traceback"]
        assert [one["message"] for one in others] == ["another event"]
    else:
        assert "ERROR a request failed: /api/collections/{name}/status\nTraceback " in said
        assert said.count("Traceback") == said.count("return [][3]") == 1
        assert said.splitlines()[-1].endswith("ERROR another event")
