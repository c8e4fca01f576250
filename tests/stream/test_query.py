"""`ldpstream query` and `ldpstream status` against a served pipeline."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from click.testing import CliRunner, Result

from ldpstream.agents.cli import query as query_module
from ldpstream.agents.cli.main import main
from ldpstream.agents.document import compose
from ldpstream.agents.http import build_http
from ldpstream.agents.view import totals
from tests.stream.serving import (
    AGES,
    CITY,
    MINUTE_MS,
    RIDES,
    START_MS,
    Pipeline,
    foreign_frame,
    serve_collections,
    visits,
)


@pytest.fixture
def pipeline() -> Pipeline:
    made = serve_collections({"city": CITY, "rides": RIDES, "ages": AGES})
    city = made.collections["city"]
    for minute in range(5):
        times = [START_MS + minute * MINUTE_MS] * 100
        city.report(0, visits(minute, 100), times_ms=times)
    city.deliver(0, foreign_frame())
    made.collections["ages"].report(0, [12.0] * 500, times_ms=[START_MS] * 500)
    return made


@pytest.fixture
async def url(pipeline: Pipeline) -> AsyncIterator[str]:
    async with TestServer(build_http(pipeline)) as server:
        yield str(server.make_url("/"))


async def ldpstream(*arguments: str) -> Result:
    """Run a command beside the server's event loop."""
    return await asyncio.to_thread(CliRunner().invoke, main, list(arguments))


async def windows(*arguments: str) -> list[dict[str, object]]:
    """Return the documents that `query --json` prints."""
    result = await ldpstream("query", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    parsed = json.loads(result.stdout)
    assert list(parsed) == ["windows"]
    documents: list[dict[str, object]] = parsed["windows"]
    return documents


def starts(documents: list[dict[str, object]]) -> list[str]:
    return [document["window"]["start"][11:16] for document in documents]  # type: ignore[index] # JSON


async def test_the_newest_window_unless_others_are_asked_for(url: str) -> None:
    assert starts(await windows(url, "city")) == ["10:04"]
    assert starts(await windows(url, "city", "--last", "2")) == ["10:03", "10:04"]
    assert starts(await windows(url, "city", "--last", "99")) == [f"10:0{i}" for i in range(5)]
    assert starts(await windows(url, "city", "--all")) == [f"10:0{i}" for i in range(5)]
    assert starts(await windows(url, "city", "--from", "2026-11-21T10:02:30Z")) == [
        "10:03", "10:04"
    ]  # fmt: skip
    assert starts(await windows(url, "city", "--to", "2026-11-21T10:02:00Z")) == ["10:00", "10:01"]
    assert starts(await windows(url, "city", "--to", "2026-11-21T10:02:00Z", "--last", "1")) == [
        "10:01"
    ]


async def test_many_windows_come_page_by_page(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_module, "_PAGE", 2)
    assert starts(await windows(url, "city", "--all")) == [f"10:0{i}" for i in range(5)]
    assert starts(await windows(url, "city", "--last", "3")) == ["10:02", "10:03", "10:04"]
    assert starts(await windows(url, "ages", "--all")) == ["09:59", "10:00"]


async def test_documents_are_printed_as_the_worker_composes_them(
    url: str, pipeline: Pipeline
) -> None:
    city = pipeline.collections["city"]
    result = await ldpstream("query", url, "city", "--json")
    span = START_MS + 4 * MINUTE_MS, START_MS + 5 * MINUTE_MS
    document = compose(
        city.config, totals(city.context, city.tails, *span), window=span, final=False
    )
    assert document.to_json().decode() in result.stdout


async def test_options_reach_the_worker(url: str) -> None:
    (document,) = await windows(
        url, "city", "--top", "2", "--range", "0..1,0..1", "--method", "bernstein"
    )
    assert len(document["distribution"]) == 2  # type: ignore[arg-type] # JSON
    assert document["ranges"][0]["name"] == "0..1,0..1"  # type: ignore[index] # JSON
    assert document["method"] == "bernstein"


async def test_tables_show_windows_values_ranges_and_quantiles(url: str) -> None:
    result = await ldpstream("query", url, "city")
    assert result.exit_code == 0
    assert "city, 2026-11-21T10:04:00Z to 2026-11-21T10:05:00Z, open, 100 reports" in result.stdout
    assert "downtown" in result.stdout
    (document,) = await windows(url, "city")
    for entry in document["distribution"]:  # type: ignore[attr-defined] # JSON
        assert f"│ {entry['value']} │ " in result.stdout
        assert f"{100 * entry['share']:.2f}%" in result.stdout
    ages = await ldpstream("query", url, "ages")
    assert "50.00%" in ages.stdout
    assert "[10.0, 20.0]" in ages.stdout


async def test_refusals_are_one_plain_message(url: str) -> None:
    for arguments, code, named in [
        (("query", url, "nowhere"), 2, "no such collection; expected one of city, rides, ages"),
        (("query", url, "city", "--top", "x"), 2, "top: expected a whole number"),
        (("query", url, "city", "--from", "soon"), 2, "from: expected a time"),
        (("query", url, "city", "--last", "1", "--all"), 2, "--last: expected --last or --all"),
        (("query", url, "city", "--last", "0"), 2, "--last"),
        (("query", url, "rides"), 1, "rides: no window with reports yet"),
        (("query", "localhost", "city"), 2, "expected a URL such as http://127.0.0.1:6066"),
        (("query", "http://127.0.0.1:1", "city"), 1, "no worker answers at http://127.0.0.1:1"),
        (("status", "http://127.0.0.1:1"), 1, "no worker answers at http://127.0.0.1:1"),
    ]:
        result = await ldpstream(*arguments)
        assert result.exit_code == code, arguments
        assert named in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert result.stdout == ""


async def test_what_is_no_worker_is_said_to_be_none() -> None:
    async with TestServer(web.Application()) as server:
        result = await ldpstream("status", str(server.make_url("/")))
    assert result.exit_code == 1
    assert "expected a worker, got HTTP status 404" in result.stderr


async def test_a_worker_that_is_not_ready_says_so() -> None:
    pipeline = serve_collections({"city": CITY}, read=False)
    async with TestServer(build_http(pipeline)) as server:
        base = str(server.make_url("/"))
        result = await ldpstream("query", base, "city")
        assert result.exit_code == 1
        assert "has not been read to the end yet" in result.stderr
        result = await ldpstream("status", base)
        assert result.exit_code == 0
        assert "not ready" in result.stdout


async def test_status_shows_every_collection(url: str, pipeline: Pipeline) -> None:
    pipeline.collections["rides"].problems.append("topic rides.reports was [created] anew")
    result = await ldpstream("status", url)
    assert result.exit_code == 0
    for text in ("city", "rides", "ages", "2026-11-21T10:04:00Z", "rejected: fingerprint 1"):
        assert text in result.stdout
    assert "problem: topic rides.reports was [created] anew" in result.stdout
    as_json = await ldpstream("status", url, "--json")
    listed = json.loads(as_json.stdout)["collections"]
    assert [one["collection"] for one in listed] == ["city", "rides", "ages"]
    assert listed[0]["counted"] == 500
