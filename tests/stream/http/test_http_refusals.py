"""What the HTTP API refuses, and how it says so; estimates asked by a body."""

import io
from typing import Any

import numpy as np
import pytest
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.state.records import RecordError
from ldpstream.agents.state.view import totals
from ldpstream.agents.web import build_http, requests
from ldpstream.estimators.weights import estimate_linear
from tests.stream.asking import CITY_PATH, FIRST, Client, ask, post
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


SPAN = {"start": FIRST[0], "end": FIRST[1]}


async def test_a_linear_query_gives_the_estimators_numbers(
    client: Client, pipeline: Pipeline
) -> None:
    weights = np.cos(np.arange(60)).tolist()
    asked = {**SPAN, "top": 0, "linear": [{"name": "wave", "weights": weights}], "ranges": []}
    answer = await post(client, asked)
    city = pipeline.collections["city"]
    counted = totals(city.context, city.replicas, START_MS, START_MS + MINUTE_MS)
    found = estimate_linear(
        city.config.spec.mechanism, counted.statistic, counted.n, np.array([weights])
    )
    (one,) = answer["linear"]
    assert one["name"] == "wave"
    assert (one["mean"], one["low"], one["high"]) == (found.value, found.low, found.high)
    assert one["total"] == pytest.approx(400 * found.value[0])
    assert one["influence"] == found.influence[0]
    assert one["forged"] == int(min(one["mean"] - one["low"], 1e9) // one["influence"]) + 1
    assert answer["ranges"] == []
    written = ",".join(map(repr, weights))
    by_url = await client.get(CITY_PATH, params={**SPAN, "top": "0", "linear": f"wave:{written}"})
    assert (await by_url.json())["linear"] == [one]


async def test_weights_are_given_by_label_too() -> None:
    """The mean of equal weights is exact."""
    pipeline = serve_collections({"rides": {**RIDES, "minimum": 0}})
    pipeline.collections["rides"].report(0, ["bus"] * 60 + ["tram"] * 40, times_ms=[START_MS] * 100)
    path = "/api/collections/rides/estimate"
    async with TestClient(TestServer(build_http(pipeline))) as rides:
        linear = [
            {"name": "fares", "weights": {"bus": 2.0, "tram": 3.5}},
            {"name": "all", "weights": [7, 7, 7]},
        ]
        answer = await post(rides, {"top": "all", "linear": linear}, path=path)
        fares, everything = answer["linear"]
        listed = [{"name": "fares", "weights": [2, 0, 3.5]}]
        assert (await post(rides, {"linear": listed}, path=path))["linear"] == [fares]
        assert fares["low"] < fares["mean"] < fares["high"]
        assert (everything["mean"], everything["low"], everything["high"]) == (7.0, 7.0, 7.0)
        assert everything["forged"] is None
        projected = await post(
            rides, {"top": "all", "project": "simplex", "linear": linear}, path=path
        )
        shares = {one["value"]: one["share"] for one in projected["distribution"]}
        assert projected["linear"][0]["mean"] == pytest.approx(
            2.0 * shares["bus"] + 3.5 * shares["tram"]
        )
        kept = {key: value for key, value in fares.items() if key not in ("mean", "total")}
        assert projected["linear"][0] == projected["linear"][0] | kept
        unknown = [{"name": "x", "weights": {"ship": 1.0}}]
        refused = await post(rides, {"linear": unknown}, 400, path=path)
        assert refused["error"] == "linear: expected labels of the domain, got 'ship'"


async def test_a_body_asks_for_spans_and_named_ranges_as_parameters_do(client: Client) -> None:
    """What else can be asked: tests/stream/commands/test_declared.py."""
    named = {"name": "box", "bounds": [[2, 2], [3, 3]]}
    answer = await post(client, {**SPAN, "ranges": ["0..1,0..4", named]})
    parameters = f"?start={FIRST[0]}&end={FIRST[1]}&range=0..1,0..4&range=2..2,3..3"
    same = await ask(client, CITY_PATH + parameters)
    same["ranges"][1]["name"] = "box"
    assert answer == same
    times = {"start": START_MS, "end": START_MS + MINUTE_MS}
    assert (await post(client, times))["n"] == 400
    assert await post(client, {}) == await ask(client, CITY_PATH)
    path = "/api/collections/ages/estimate"
    assert (await post(client, {"quantiles": []}, path=path))["quantiles"] == []


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ([], "body: expected an object, got []"),
        ({"tops": 1}, "tops: unknown key (did you mean top?); expected one of start, end"),
        ({"top": -1}, 'top: expected at least 0 or "all", got -1'),
        ({"top": True}, 'top: expected a whole number or "all", got true'),
        ({"start": 0}, "end: expected start and end"),
        ({"start": "soon", "end": 0}, "start: expected a time"),
        ({"start": 10**30, "end": 0}, "start: expected a time"),
        ({"ranges": ["0..99,0..1"]}, "ranges: expected whole numbers in 0..5"),
        ({"ranges": [{"name": "x", "bounds": [[0, 1]]}]}, "ranges: expected 2 pairs"),
        ({"ranges": [{"name": "", "bounds": [[0, 1]]}]}, "ranges[0].name: expected at least 1"),
        ({"ranges": {"x": [0, 1]}}, 'ranges: expected a list, such as ["0..9", {"name": '),
        ({"ranges": [[0, 1]]}, 'ranges: expected entries as in ["0..9", {"name": "night", "bou'),
        ({"quantiles": 0.5}, "quantiles: expected a list, such as [0.25, 0.5], got 0.5"),
        ({"quantiles": [True]}, "quantiles[0]: expected a number, got true"),
        ({"linear": ["1,2"]}, 'linear: expected entries as in [{"name": "fare", "weights": '),
        ({"linear": [{"name": "x", "weights": [1.0]}]}, "linear: expected 60 weights, one"),
        ({"linear": [{"name": "x", "weights": [1e31] * 60}]}, "linear: expected finite weights"),
        ({"linear": [{"name": "x", "weights": {"a": 1}}]}, "linear: expected a list of weights"),
        ({"confidence": 1.0}, "confidence: expected a number above 0 and below 1"),
        ({"method": "wilson"}, 'method: expected one of "padded", "exact"'),
        ({"bounds": [[0, 1]]}, "bounds: unknown key; expected one of start, end"),
        ({"ranges": ["0..1,0..1", {"name": "b"}]}, "ranges[1].values: expected either bou"),
        ({"ranges": [{"name": "b", "bounds": [[0]]}]}, "ranges[0].bounds[0]: expected at least 2"),
        ({"linear": [{"name": "f", "weights": 5}]}, "linear[0].weights: expected a list or an"),
        ({"linear": [{"name": "f", "weight": {}}]}, "linear[0].weights: expected a value"),
        ({"ranges": ["0..1,0..1"] * 101}, "ranges: expected at most 100 entries"),
    ],
)  # fmt: skip
async def test_a_bad_body_is_refused_by_its_key(client: Client, asked: Any, named: str) -> None:
    assert (await post(client, asked, 400))["error"].startswith(named)


async def test_malformed_bodies_are_refused(client: Client) -> None:
    for body, status, named in (
        (b"", 400, "body: expected JSON: "),
        (b"{", 400, "body: expected JSON: "),
        (b"\xff\xfe", 400, "body: expected JSON: "),
        (b'{"confidence": NaN}', 400, ""),
        (b'{"confidence": 1e999}', 400, "confidence: "),
        (b'{"top": 1, "top": 2}', 400, "body: expected each key once"),
        (
            b'{"linear": [{"name": "a", "weights": [], "name": "b"}]}',
            400,
            "body: expected each key",
        ),
        (b"[" * 100_000, 400, "body: expected JSON: "),
        (b" " * (requests.BODY_BYTES + 1), 413, ""),
    ):
        headers = {"Content-Type": "application/json"}
        answer = await client.post(CITY_PATH, data=io.BytesIO(body), headers=headers)
        assert answer.status == status, body[:20]
        assert (await answer.json())["error"].startswith(named)
    answer = await client.post(CITY_PATH, data={"top": "1"})
    assert answer.status == 415
    assert (await answer.json())["error"] == "Content-Type: expected application/json"
