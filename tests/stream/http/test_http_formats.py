"""What answers carry and cost: CSV, ETags, sizes of windows, and limits."""

import csv
import io
import json
import re
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.document.flat import HEADER, to_csv
from ldpstream.agents.web import build_http, estimates
from ldpstream.agents.web import computation as computing
from ldpstream.mechanisms.base.times import parse_time
from tests.stream.asking import CITY_PATH, FIRST, Client, ask, post, three_collections
from tests.stream.serving import (
    CITY,
    MINUTE_MS,
    START_MS,
    Pipeline,
    serve_collections,
    stopped_clock,
    visits,
)


async def test_csv_holds_the_numbers_of_the_document(client: Client) -> None:
    query = "?top=3&range=0..1,0..1&linear=w:" + ",".join(["0.5"] * 30 + ["1"] * 30)
    document = await ask(client, CITY_PATH + query)
    answer = await client.get(f"{CITY_PATH}{query}&format=csv")
    assert (answer.content_type, answer.charset) == ("text/csv", "utf-8")
    text = await answer.text()
    assert text.endswith("\r\n")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert tuple(rows[0]) == HEADER
    assert [row["kind"] for row in rows] == ["value"] * 3 + ["range", "linear"]
    entries = document["distribution"] + document["ranges"]
    for row, entry in zip(rows, entries, strict=False):
        for column, key in (("value", "share"), ("low", "low"), ("high", "high"), ("se", "se")):
            assert float(row[column]) == entry[key]
        assert int(row["forged"]) == entry["forged"]
        assert (row["n"], row["final"]) == ("400", "false")
    assert json.loads(rows[0]["name"]) == document["distribution"][0]["value"]
    assert float(rows[4]["value"]) == document["linear"][0]["mean"]
    ages = await client.get("/api/collections/ages/estimate?top=0&format=csv")
    (quantile,) = csv.DictReader(io.StringIO(await ages.text(), newline=""))
    assert (quantile["kind"], quantile["p"], quantile["value"]) == (
        "quantile",
        "0.5",
        "[10.0, 20.0]",
    )


async def test_a_withheld_document_is_one_row(client: Client, pipeline: Pipeline) -> None:
    pipeline.collections["rides"].report(0, ["bus"] * 7, times_ms=[START_MS] * 7)
    answer = await client.get("/api/collections/rides/estimate?format=csv")
    (row,) = csv.DictReader(io.StringIO(await answer.text(), newline=""))
    assert (row["n"], row["withheld"], row["kind"], row["value"]) == ("7", "true", "none", "")
    assert None not in row.values()


def test_no_cell_is_a_formula_and_quotes_survive() -> None:
    rows = [["=1+1", "@x", "-5", "+5", "\tx", 'a"b', "a,b", "a\r\nb", -0.5, None, True, "é"]]
    text = to_csv(rows, [str(i) for i in range(12)]).decode()
    (row,) = csv.reader(io.StringIO(text.split("\r\n", 1)[1], newline=""))
    assert row[:5] == ["'=1+1", "'@x", "'-5", "'+5", "'\tx"]
    assert row[5:] == ['a"b', "a,b", "a\r\nb", "-0.5", "", "true", "é"]


SPAN = {"start": FIRST[0], "end": FIRST[1]}
TWO_MINUTES = {"start": str(START_MS), "end": str(START_MS + 2 * MINUTE_MS)}


async def test_a_known_tag_is_answered_304_without_computing(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await client.get(CITY_PATH, params=SPAN)
    tag = first.headers["ETag"]
    assert re.fullmatch(r'"[0-9a-f]{32}"', tag)
    assert first.headers["Cache-Control"] == "private, no-cache"
    monkeypatch.setattr(computing, "write_document", None)
    for known in (tag, f'"x", {tag}', f"W/{tag}", "*"):
        again = await client.get(CITY_PATH, params=SPAN, headers={"If-None-Match": known})
        assert (again.status, await again.read(), again.headers["ETag"]) == (304, b"", tag)
        assert again.headers["Cache-Control"] == "private, no-cache"
        assert "Content-Security-Policy" in again.headers


async def test_the_areas_of_a_final_are_computed_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    span = {**SPAN, "areas": "true"}
    first = await (await client.get(CITY_PATH, params=span)).read()
    monkeypatch.setattr(computing, "write_document", None)
    assert await (await client.get(CITY_PATH, params=span)).read() == first
    # What is open may change, and is computed again.
    assert (await client.get(CITY_PATH)).status == 500


async def test_every_change_changes_the_tag(client: Client, pipeline: Pipeline) -> None:
    async def tag(query: str = "", **headers: str) -> str:
        span = f"?start={FIRST[0]}&end={FIRST[1]}"
        answer = await client.get(CITY_PATH + span + query, headers=headers)
        assert answer.status == 200
        return answer.headers["ETag"]

    queries = [
        "", "&top=3", "&method=bernstein", "&confidence=0.9", "&estimand=population",
        "&simultaneous=true", "&project=simplex", "&range=0..1,0..1", "&range=0..1,0..2",
        "&linear=" + ",".join(["1"] * 60), "&linear=" + ",".join(["2"] * 60), "&format=csv",
    ]  # fmt: skip
    tags = [await tag(query) for query in queries]
    assert len(set(tags)) == len(queries)
    assert [await tag(query) for query in queries] == tags
    city = pipeline.collections["city"]
    # A late report changes the answer, though not the final.
    city.report(1, visits(7, 1), times_ms=[START_MS])
    assert await tag() != tags[0]


async def test_any_worker_gives_the_same_tag() -> None:
    tags = []
    for _ in range(2):
        async with TestClient(TestServer(build_http(three_collections()))) as client:
            tags.append((await client.get(CITY_PATH)).headers["ETag"])
    assert tags[0] == tags[1]


@pytest.mark.parametrize(
    "changed", [{"epsilon": 2.0}, {"window": {**CITY["window"], "size": "2m"}}, {"minimum": 1_000}]
)
async def test_a_final_of_another_spec_window_or_minimum_has_another_tag(
    client: Client, pipeline: Pipeline, changed: dict[str, Any]
) -> None:
    """Its address is the same, so that a client with the old one has to notice."""
    pipeline.collections["city"].close(START_MS + 2 * MINUTE_MS)
    old = await client.get(CITY_PATH, params=TWO_MINUTES)
    again = serve_collections({"city": {**CITY, **changed}})
    city = again.collections["city"]
    city.report(0, visits(1, 200), times_ms=[START_MS] * 200)
    city.close(START_MS + 2 * MINUTE_MS)
    async with TestClient(TestServer(build_http(again))) as other:
        known = {"If-None-Match": old.headers["ETag"]}
        answer = await other.get(CITY_PATH, params=TWO_MINUTES, headers=known)
        assert answer.status == 200
        assert await answer.read() != await old.read()
    for kept in (old, answer):
        assert not re.search("immutable|max-age", kept.headers["Cache-Control"])


async def test_a_document_has_the_size_of_its_window_and_a_span_has_none():
    pipeline = serve_collections({"city": {**CITY, "window": {"size": "2m", "hop": "1m"}}})
    pipeline.clock = stopped_clock("2031-05-06T07:08:09Z")
    pipeline.collections["city"].report(0, visits(1, 300), times_ms=[START_MS] * 300)
    async with TestClient(TestServer(build_http(pipeline))) as client:
        path = "/api/collections/city"
        for minutes, size in ((1, None), (2, "2m every 1m"), (3, None)):
            span = {"start": str(START_MS), "end": str(START_MS + 60_000 * minutes)}
            answer = await client.get(f"{path}/estimate", params=span)
            assert (await answer.json()).get("size") == size
            date = parsedate_to_datetime(answer.headers["Date"]).isoformat()
            assert parse_time(date) == parse_time("2031-05-06T07:08:09Z")
        listed = await (await client.get(f"{path}/windows")).json()
        status = await (await client.get(f"{path}/status")).json()
        assert (listed["size"], status["size"], status["other_sizes"]) == ("2m every 1m",) * 2 + (
            [],
        )


def never(*_: object, **__: object) -> None:
    raise AssertionError("the request costs more than it should")


async def test_too_large_requests_are_refused_before_they_are_computed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(computing, "write_document", never)
    many = "&".join(["range=0..0,0..0"] * 101)
    assert (await ask(client, f"{CITY_PATH}?{many}", 400))["error"] == (
        "range: expected at most 100 of them, got 101"
    )
    monkeypatch.setattr(estimates, "CELLS_LIMIT", 150)
    monkeypatch.setattr(estimates, "VALUES_LIMIT", 50)
    three = "&".join(["range=0..0,0..0"] * 3)
    assert (await ask(client, f"{CITY_PATH}?{three}", 400))["error"] == (
        "range: expected at most 2 ranges and linear queries together over 60 values, got 3"
    )
    for top in ("all", "51", "999999999999"):
        refused = await ask(client, f"{CITY_PATH}?top={top}", 400)
        assert refused["error"] == "top: expected at most 50 of the domain's 60 values"


async def test_an_estimate_of_a_span_does_not_look_through_all_windows(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "kept_windows", never)
    answer = await ask(client, f"{CITY_PATH}?start={FIRST[0]}&end={FIRST[1]}")
    assert answer["window"]["start"] == FIRST[0]


async def test_too_many_weights_are_refused_before_they_are_built(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldpstream.agents.config.query.queries.make_linear", never)
    monkeypatch.setattr(estimates, "CELLS_LIMIT", 6)
    asked = {"linear": [{"name": "x", "weights": {"bus": 1}}] * 3}
    refused = await post(client, asked, 400, path="/api/collections/rides/estimate")
    assert refused["error"] == (
        "linear: expected at most 2 ranges and linear queries together over 3 values, got 3"
    )


async def test_quantiles_of_huge_domains_are_refused_unless_they_are_published(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "QUANTILE_VALUES_LIMIT", 9)
    path = "/api/collections/ages/estimate"
    for query in ("?quantile=0.9", "?quantile=0.5&quantile=0.9"):
        refused = await ask(client, path + query, 400)
        assert refused["error"] == "quantile: expected a domain of at most 9 values, got 10"
    for query in ("", "?quantile=0.5"):
        assert [one["p"] for one in (await ask(client, path + query))["quantiles"]] == [0.5]
    posted = await post(client, {"quantiles": [0.1]}, 400, path=path)
    assert posted["error"] == refused["error"].replace("quantile:", "quantiles:")
    assert (await post(client, {"quantiles": []}, path=path))["quantiles"] == []


async def test_a_long_address_is_refused(client: Client) -> None:
    answer = await client.get(CITY_PATH + "?range=" + "0" * 10_000)
    assert answer.status in (400, 414)


async def test_the_queue_is_bounded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldpstream.agents.web.computation.WAITING_LIMIT", 0)
    answer = await ask(client, CITY_PATH, 503)
    assert answer["error"] == "0 requests are waiting already: try again later"
