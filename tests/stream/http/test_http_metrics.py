"""Metrics over HTTP and about it; a collection in an odd state fails its own answers alone."""

import gzip
import json
import logging
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from ldpstream import __version__
from ldpstream.agents.engine.metrics import Metrics
from ldpstream.agents.engine.process import FORMAT_VARIABLE, set_up_logging
from ldpstream.agents.state.flushes import Outcome
from ldpstream.agents.web import build_http
from tests.stream.logs import logging_restored
from tests.stream.scraped import scrape, value
from tests.stream.serving import (
    AGES,
    CITY,
    RIDES,
    START_MS,
    Pipeline,
    Served,
    serve_collections,
    visits,
)


async def test_metrics_are_served_as_text_and_as_openmetrics() -> None:
    pipeline = serve_collections({"city": CITY})
    metrics = pipeline.metrics
    metrics.count_commit("city", Outcome(5, 0, {}, 0))
    async with TestClient(TestServer(build_http(pipeline))) as client:
        plain = await client.get("/metrics")
        assert plain.content_type == "text/plain"
        assert list(text_string_to_metric_families(await plain.text()))
        accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
        openmetrics = await client.get("/metrics", headers=accept)
        assert openmetrics.content_type == "application/openmetrics-text"
        families = {family.name: family for family in parse_openmetrics(await openmetrics.text())}
    counted = [
        sample.value
        for sample in families["ldpstream_reports"].samples
        if sample.labels == {"collection": "city", "result": "counted"}
        and sample.name.endswith("_total")
    ]
    assert counted == [5.0]


async def test_metrics_are_served_by_name_and_compressed() -> None:
    pipeline = serve_collections({"city": CITY})
    client = TestClient(TestServer(build_http(pipeline)), auto_decompress=False)
    async with client:
        wanted = {"name[]": "ldpstream_reports_total"}
        some = await client.get("/metrics", params=wanted, headers={"Accept-Encoding": "identity"})
        families = list(text_string_to_metric_families(await some.text()))
        assert {sample.name for one in families for sample in one.samples} == {
            "ldpstream_reports_total"
        }
        both = [*wanted.items(), ("name[]", "ldpstream_build_info"), ("name[]", "no_such_metric")]
        found = await client.get("/metrics", params=both, headers={"Accept-Encoding": "identity"})
        names = {one.name for one in text_string_to_metric_families(await found.text())}
        assert names == {"ldpstream_reports", "ldpstream_build_info"}
        packed = await client.get("/metrics", headers={"Accept-Encoding": "gzip"})
        assert packed.headers["Content-Encoding"] == "gzip"
        text = gzip.decompress(await packed.read()).decode()
        assert {"ldpstream_reports", "ldpstream_build_info"} <= {
            one.name for one in text_string_to_metric_families(text)
        }


async def test_answers_are_counted_by_operation_and_status() -> None:
    pipeline = serve_collections({"city": CITY})
    metrics = pipeline.metrics
    async with TestClient(TestServer(build_http(pipeline))) as client:
        for path in ("city", "city", "nowhere"):
            await client.get(f"/api/collections/{path}/windows")
        await client.get("/page/page.css")
    samples = scrape(metrics)
    name = "ldpstream_http_seconds_count"
    assert value(samples, name, operation="window_list", status="200") == 2
    assert value(samples, name, operation="window_list", status="404") == 1
    assert sum(count for (one, _), count in samples.items() if one == name) == 3
    assert value(samples, "ldpstream_build_info", version=__version__) == 1


async def test_streams_of_live_updates_are_counted_while_they_are_open() -> None:
    pipeline = serve_collections({"city": CITY})
    metrics = pipeline.metrics

    def streams() -> float:
        return value(scrape(metrics), "ldpstream_http_streams", collection="city")

    assert streams() == 0
    async with TestClient(TestServer(build_http(pipeline))) as client:
        for opened in (1, 2):
            assert (await client.get("/api/collections/city/events")).status == 200
            assert streams() == opened
    assert streams() == 0


async def test_the_time_to_compute_answers_is_measured_except_for_known_ones() -> None:
    pipeline = serve_collections({"city": CITY})
    metrics = pipeline.metrics
    pipeline.collections["city"].report(0, visits(1, 40), times_ms=[START_MS] * 40)
    name = "ldpstream_answer_seconds_count"
    assert value(scrape(metrics), name, collection="city") == 0
    async with TestClient(TestServer(build_http(pipeline))) as client:
        first = await client.get("/api/collections/city/estimate")
        again = {"If-None-Match": first.headers["ETag"]}
        assert (await client.get("/api/collections/city/estimate", headers=again)).status == 304
    assert value(scrape(metrics), name, collection="city") == 1


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
