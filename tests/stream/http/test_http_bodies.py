"""Estimates asked by a body: linear queries, every parameter, refusals by key."""

import io
from typing import Any

import numpy as np
import pytest
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.state.view import totals
from ldpstream.agents.web import build_http, requests
from ldpstream.estimators.weights import estimate_linear
from tests.stream.asking import CITY_PATH, FIRST, Client, ask, post
from tests.stream.serving import MINUTE_MS, RIDES, START_MS, Pipeline, serve_collections

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
