"""What the HTTP API refuses, and how it says so: parameters, paths, states, readiness."""

import pytest
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.state.records import RecordError
from ldpstream.agents.web import build_http
from tests.stream.asking import FIRST, Client, ask
from tests.stream.serving import CITY, MINUTE_MS, RIDES, START_MS, Pipeline, serve_collections


async def test_numbers_of_any_length_are_read_or_refused(client: Client) -> None:
    # Python parses no integer of more than 4,300 digits.
    pages = {f"windows?{name}": "expected a whole number in 1..10000" for name in ("last", "limit")}
    for asked, expected in {**pages, "estimate?top": "expected a whole number or"}.items():
        for number in ("1" * 5000, "9" * 19):
            refused = await ask(client, f"/api/collections/city/{asked}={number}", 400)
            assert expected in refused["error"]
            assert len(refused["error"]) < 200


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("start=yesterday&end=0", "start: expected a time"),
        ("start=1795255200000", "end: expected start and end"),
        ("end=1795255200000", "start: expected start and end"),
        ("start=1795255200001&end=1795255260000", "start: expected the edge of a pane"),
        ("start=1795255260000&end=1795255200000", "end: expected a time after start"),
        ("start=1795255200000&end=1795255200000", "end: expected a time after start"),
        ("start=-62135596800000&end=0", "start: expected a time within"),
        ("start=2026-11-21T10:00:00+00:00&end=0", "%2B"),
        ("top=-1", "top: expected a whole number"),
        ("top=many", "top: expected a whole number"),
        ("range=5", "range: expected LO..HI"),
        ("range=0..9,0..1", "range: expected whole numbers in 0..5"),
        ("range=2..1,0..1", "range: expected low <= high"),
        ("range=nan..1,0..1", "range: expected"),
        ("quantile=2", "quantile: expected a number above 0 and below 1"),
        ("quantile=0", "quantile: expected a number above 0 and below 1"),
        ("quantile=0.5&quantile=1", "quantile: expected a number above 0 and below 1"),
        ("estimand=all", "estimand: expected one of respondents, population, active"),
        ("method=wilson", "method: expected one of padded, exact, normal"),
        ("simultaneous=yes", "simultaneous: expected true or false"),
        ("confidence=95", "confidence: expected a number above 0 and below 1"),
        ("confidence=nan", "confidence: expected a number above 0 and below 1"),
        (
            "project=convex",
            "project: expected one of none, ordered, simplex, blocks",
        ),
        ("top=1&top=2", "top: expected once, got 2 times"),
        ("limit=3", "limit: unknown parameter; expected one of start, end, attribute, top"),
    ],
)
async def test_a_bad_parameter_of_an_estimate_is_named(
    client: Client, query: str, named: str
) -> None:
    answer = await ask(client, f"/api/collections/city/estimate?{query}", 400)
    assert named in answer["error"]
    assert list(answer) == ["error"]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("last=0", "last: expected a whole number in 1..10000"),
        ("last=x", "last: expected a whole number"),
        ("last=99999999999999999999", "last: expected a whole number"),
        ("last=1&all=true", "last: expected last or all=true"),
        ("all=1", "all: expected true or false"),
        ("from=soon", "from: expected a time"),
        ("from=2026-11-30", "milliseconds, such as 2026-11-30T00:00:00Z, got '2026-11-30'"),
        ("to=", "to: expected a time"),
        ("top=1", "top: unknown parameter; expected one of last, from, to, all"),
        ("limit=0", "limit: expected a whole number in 1..10000"),
        ("after=x", "after: expected a time"),
        ("after=0&last=1", "last: expected last or all, or limit and after, not both"),
        ("limit=1&all=true", "all: expected last or all, or limit and after, not both"),
        ("format=csv", "format: unknown parameter"),
    ],
)
async def test_a_bad_parameter_of_windows_is_named(client: Client, query: str, named: str) -> None:
    answer = await ask(client, f"/api/collections/city/windows?{query}", 400)
    assert named in answer["error"]


async def test_paths_without_parameters_take_none(client: Client) -> None:
    answer = await ask(client, "/api/collections?x=1", 400)
    assert answer["error"] == "x: unknown parameter; expected no parameters"


async def test_unknown_paths_and_collections_are_not_found(client: Client) -> None:
    for path in ("", "/windows", "/estimate", "/status"):
        answer = await ask(client, f"/api/collections/nowhere{path}", 404)
        assert answer["error"] == "no such collection; expected one of city, rides, ages"
    assert "error" in await ask(client, "/api/nothing", 404)
    answer = await ask(client, "/api/collections/rides/estimate", 404)
    assert answer["error"] == "rides: no window has reports yet"


async def test_nothing_can_be_written(client: Client) -> None:
    for path, allowed in (
        ("/api/collections/city/estimate", "GET,HEAD,POST"),
        ("/api/collections/city/windows", "GET,HEAD"),
        ("/api/collections/city/events", "GET"),
    ):
        for method in {"POST", "PUT", "DELETE", "PATCH"} - set(allowed.split(",")):
            answer = await client.request(method, path)
            assert answer.status == 405
            assert answer.headers["Allow"] == allowed
            assert "error" in await answer.json()


async def test_a_span_that_has_expired_is_refused(client: Client, pipeline: Pipeline) -> None:
    city = pipeline.collections["city"]
    city.close(START_MS + 70 * MINUTE_MS)
    city.close(START_MS + 70 * MINUTE_MS)
    answer = await ask(
        client, f"/api/collections/city/estimate?start={FIRST[0]}&end={FIRST[1]}", 410
    )
    assert answer["error"].startswith("start: expected 2026-11-21T10:10:00Z or later")
    assert (await ask(client, "/api/collections/city/windows"))["windows"] == []


async def test_readiness_gives_reasons() -> None:
    pipeline = serve_collections({"city": CITY, "rides": RIDES}, read=False)
    async with TestClient(TestServer(build_http(pipeline))) as client:
        answer = await ask(client, "/readyz", 503)
        assert answer == {
            "ready": False,
            "reasons": [
                "city: the state of partitions 0, 1 has not been read to its end yet",
                "rides: the state of partitions 0 has not been read to its end yet",
            ],
            "waits": [],
        }
        for path in ("windows", "estimate"):
            assert "error" in await ask(client, f"/api/collections/city/{path}", 503)
        for served in pipeline.collections.values():
            for replica in served.replicas:
                replica.read([], position=0, end=0)
        assert await ask(client, "/readyz") == {"ready": True, "reasons": [], "waits": []}
        pipeline.collections["city"].notices.append("partition 2 waits for other workers")
        answer = await ask(client, "/readyz")
        assert answer["waits"] == ["city: partition 2 waits for other workers"]
        status = await ask(client, "/api/collections/city/status")
        assert status["problems"] == ["partition 2 waits for other workers"]
        pipeline.broker_watch.silent = True
        answer = await ask(client, "/readyz", 503)
        assert answer["reasons"] == ["the broker does not answer"]
        pipeline.broker_watch.silent = False
        pipeline.collections["rides"].problems.append("its topic was created again")
        answer = await ask(client, "/readyz", 503)
        assert answer["reasons"] == ["rides has stopped: its topic was created again"]
        status = await ask(client, "/api/collections/rides/status")
        assert status["problems"] == ["its topic was created again"]
        assert (status["stopped"], status["ready"]) == (True, False)
        # A restart would not help.
        assert await ask(client, "/healthz") == {"status": "ok"}
        pipeline.failed = True
        assert await ask(client, "/healthz", 503) == {"status": "failed"}


async def test_a_state_that_cannot_be_read_is_not_guessed_from(
    client: Client, pipeline: Pipeline
) -> None:
    city = pipeline.collections["city"]
    log = city.logs[0]
    with pytest.raises(RecordError):
        city.replicas[0].read([(len(log), b"\x63", b"")], position=len(log) + 1, end=len(log) + 1)
    for path in ("windows", "estimate"):
        answer = await ask(client, f"/api/collections/city/{path}", 503)
        assert answer["error"].startswith("city: its state cannot be used: changelog record has")
    assert (await ask(client, "/api/collections/ages/estimate"))["n"] == 800
