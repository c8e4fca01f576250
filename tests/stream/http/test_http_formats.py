"""CSV for clients that prefer it to JSON, and links from page to page."""

import csv
import io
import json
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.document.flat import HEADER, to_csv
from ldpstream.agents.web import build_http
from tests.stream.asking import CITY_PATH, Client, ask
from tests.stream.serving import CITY, MINUTE_MS, START_MS, Pipeline, serve_collections, visits


async def test_csv_holds_the_numbers_of_the_document(client: Client) -> None:
    query = "?top=3&range=0..1,0..1&linear=w:" + ",".join(["0.5"] * 30 + ["1"] * 30)
    document = await ask(client, CITY_PATH + query)
    answer = await client.get(CITY_PATH + query, headers={"Accept": "text/csv, */*;q=0.1"})
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


@pytest.mark.parametrize(
    ("accept", "csv_wanted"),
    [
        ("text/csv", True), ("*/*", False), ("", False), ("application/json, text/csv", False),
        ("text/csv;q=0.9, application/json;q=0.8", True), ("TEXT/CSV", True),
        ("text/csv;q=0.5, application/json", False), ("text/csv;q=x", False),
    ],
)  # fmt: skip
async def test_the_preferred_format_is_served(
    client: Client, accept: str, csv_wanted: bool
) -> None:
    answer = await client.get(CITY_PATH, headers={"Accept": accept})
    assert answer.content_type == ("text/csv" if csv_wanted else "application/json")
    assert answer.headers["Vary"] == "Accept"


def test_no_cell_is_a_formula_and_quotes_survive() -> None:
    rows = [["=1+1", "@x", "-5", "+5", "\tx", 'a"b', "a,b", "a\r\nb", -0.5, None, True, "é"]]
    text = to_csv(rows, [str(i) for i in range(12)]).decode()
    (row,) = csv.reader(io.StringIO(text.split("\r\n", 1)[1], newline=""))
    assert row[:5] == ["'=1+1", "'@x", "'-5", "'+5", "'\tx"]
    assert row[5:] == ['a"b', "a,b", "a\r\nb", "-0.5", "", "true", "é"]


@pytest.mark.parametrize("first", ["?limit=2", "?last=2", "?limit=2&from=1795255260000"])
async def test_links_lead_through_all_windows(first: str) -> None:
    pipeline = serve_collections({"city": CITY})
    for minute in range(7):
        times = [START_MS + minute * MINUTE_MS] * 20
        pipeline.collections["city"].report(0, visits(minute, 20), times_ms=times)
    path = "/api/collections/city/windows"
    async with TestClient(TestServer(build_http(pipeline))) as client:
        every = (await ask(client, f"{path}?all=true"))["windows"]
        found: list[Any] = []
        url, pages = path + first, 0
        while url:
            answer = await client.get(url)
            body = await answer.json()
            found = found + body["windows"] if "limit" in first else body["windows"] + found
            link = next(iter(answer.links.values()), None)
            assert body["more"] == (link is not None)
            url, pages = link["url"].path_qs if link else "", pages + 1
            assert len(body["windows"]) <= 2
        assert found == (every[1:] if "from" in first else every)
        assert pages in (3, 4)
        table = await client.get(f"{path}?format=csv&last=2")
        lines = (await table.text()).split("\r\n")
        assert lines[0] == "start,end,n,late,final,published,size"
        assert lines[2] == "2026-11-21T10:06:00Z,2026-11-21T10:07:00Z,20,0,false,false,1m"
