"""`ldpstream query` and `ldpstream status` against a served pipeline."""

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from click.testing import CliRunner, Result

from ldpstream.agents.cli.main import main
from ldpstream.agents.cli.plots import Marks, Point, sparkline, whisker
from ldpstream.agents.document import compose
from ldpstream.agents.http import build_http
from ldpstream.agents.http.access import Access
from ldpstream.agents.state.view import totals
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


async def test_too_few_reports_are_withheld_and_the_minimum_said(
    url: str, pipeline: Pipeline
) -> None:
    rides = pipeline.collections["rides"]
    rides.report(0, ["bus"] * 7, times_ms=[START_MS] * 7)
    for form in ((), ("--plot",)):
        few = await ldpstream("query", url, "rides", *form)
        assert few.exit_code == 0, few.stderr
        first, second = few.stdout.splitlines()
        assert first.endswith("open, 7 reports")
        assert second == "withheld: fewer than minimum = 100 reports"
    rides.report(0, ["bus"] * 300, times_ms=[START_MS + MINUTE_MS] * 300)
    both = await ldpstream("query", url, "rides", "--plot", "--last", "2")
    assert "1 of 2 windows withheld: fewer than minimum = 100 reports" in both.stdout


async def test_tables_and_pictures_say_what_the_bounds_of_each_list_hold_for(url: str) -> None:
    chosen = "95% bounds: normal, simultaneous, respondents"
    for form in ([], ["--plot"], ["--plot", "--last", "2"]):
        asked = ["query", url, "city", *form]
        assert f"{chosen}; ranges pointwise\n" in (await ldpstream(*asked)).stdout
        together = (await ldpstream(*asked, "--simultaneous")).stdout
        assert f"{chosen}\n" in together
        projected = await ldpstream(*asked, "--simultaneous", "--project", "simplex")
        assert f"{chosen}; shares projected (simplex), bounds those of before" in projected.stdout
    every = await ldpstream("query", url, "city", "--top", "all")
    assert "95% bounds: normal, pointwise, respondents\n" in every.stdout


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


async def test_pictures_show_values_bounds_and_courses(url: str) -> None:
    (document,) = await windows(url, "city")
    result = await ldpstream("query", url, "city", "--plot")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    for entry in [*document["distribution"], *document["ranges"]]:  # type: ignore[misc] # JSON
        share = f"{100 * entry['share']:.2f}%"
        drawn = [text for text in lines if share in text and "●" in text]
        assert drawn
        assert all("─" in text for text in drawn)
    course = await ldpstream("query", url, "city", "--plot", "--last", "3", "--quantile", "0.5")
    assert course.exit_code == 2
    course = await ldpstream("query", url, "city", "--plot", "--last", "3")
    assert "range downtown" in course.stdout
    assert sum("●" in text for text in course.stdout.splitlines()) == 3
    assert course.stdout.count("(open)") == 3
    ages = await ldpstream(
        "query", url, "ages", "--plot", "--all", "--linear", "w:" + "1," * 9 + "1"
    )
    assert "quantile 0.5" in ages.stdout
    assert "mean w" in ages.stdout
    rides = await ldpstream("query", url, "rides", "--plot")
    assert rides.exit_code == 1


def test_a_whisker_has_its_marks_where_the_numbers_are() -> None:
    marks = Marks("-", "o", "|", ".:")
    assert whisker(Point(0.2, 0.3, 0.5, ""), (0.0, 1.0), 11, marks) == "| -o--"
    assert whisker(Point(-0.5, 0.0, 0.5, ""), (-1.0, 1.0), 9, marks) == "  --o--"
    assert whisker(Point(None, 1.0, None, ""), (0.0, 1.0), 5, marks) == "|   o"
    assert whisker(Point(None, None, None, ""), (0.0, 1.0), 5, marks) == "|"
    assert whisker(Point(2.0, 2.0, 2.0, ""), (2.0, 2.0), 5, marks) == "  o"
    assert sparkline([0.0, None, 1.0, 0.4], marks) == ". :."
    assert sparkline([3.0, 3.0], marks) == ".."
    assert sparkline([None], marks) == ""


async def test_csv_has_one_header_and_all_windows(url: str) -> None:
    result = await ldpstream("query", url, "city", "--csv", "--last", "2")
    assert result.exit_code == 0
    rows = list(csv.DictReader(io.StringIO(result.stdout_bytes.decode(), newline="")))
    assert len(rows) == 2 * 6
    assert len({row["start"] for row in rows}) == 2
    assert [row["kind"] for row in rows[:6]] == ["value"] * 5 + ["range"]
    both = await ldpstream("query", url, "city", "--csv", "--json")
    assert (both.exit_code, both.stderr) == (
        2,
        "--json, --csv, --plot: expected one of them at most\n",
    )


async def test_tables_say_how_many_forged_reports_it_would_take(url: str) -> None:
    (document,) = await windows(url, "city")
    result = await ldpstream("query", url, "city")
    assert "forged" in result.stdout
    for entry in document["distribution"]:  # type: ignore[attr-defined] # JSON
        assert f"│ {entry['forged']:>6} │" in result.stdout


async def test_a_worker_with_a_token(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "correct-horse-battery-staple"
    kept = tmp_path / "token"
    kept.write_text(f"{token}\n")
    monkeypatch.setenv("ELSEWHERE", token)
    app = build_http(pipeline, access=Access(token=token.encode()))
    async with TestServer(app) as server:
        url = str(server.make_url("/"))
        for command in (("query", url, "city"), ("status", url)):
            monkeypatch.delenv("LDPSTREAM_TOKEN", raising=False)
            refused = await ldpstream(*command)
            assert refused.exit_code == 2
            assert "the worker wants a token: set LDPSTREAM_TOKEN" in refused.stderr
            for option in (("--token-env", "ELSEWHERE"), ("--token-file", str(kept))):
                assert (await ldpstream(*command, *option)).exit_code == 0
            for option, why in (
                (("--token-env", "NOWHERE"), "--token-env: expected the environment variable"),
                (("--token-file", str(tmp_path / "x")), "--token-file: cannot read"),
                (("--token-env", "A", "--token-file", "B"), "not both"),
            ):
                refused = await ldpstream(*command, *option)
                assert refused.exit_code == 2
                assert why in refused.stderr
            monkeypatch.setenv("LDPSTREAM_TOKEN", "another-token-altogether")
            refused = await ldpstream(*command)
            assert "the worker wants another token" in refused.stderr
            assert "altogether" not in refused.stderr
            monkeypatch.setenv("LDPSTREAM_TOKEN", token)
            assert (await ldpstream(*command)).exit_code == 0
