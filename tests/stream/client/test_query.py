"""`ldpstream query` and `ldpstream status` against a served pipeline."""

import csv
import io
import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from ldpstream.agents.client import Client
from ldpstream.agents.document.answers import WindowState
from ldpstream.agents.document.build import build_document
from ldpstream.agents.state.view import totals
from ldpstream.agents.web import build_http
from ldpstream.agents.web.requests import Access
from tests.stream.asking import TOKEN
from tests.stream.querying import five_minutes, ldpstream, windows
from tests.stream.serving import CITY, MINUTE_MS, START_MS, Pipeline, serve_collections


@pytest.fixture
def pipeline() -> Pipeline:
    return five_minutes()


def starts(documents: list[dict[str, Any]]) -> list[str]:
    return [document["window"]["start"][11:16] for document in documents]


async def test_the_newest_window_is_shown_by_default(url: str) -> None:
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
    document = build_document(
        city.config,
        totals(city.context, city.replicas, *span),
        window=span,
        final=False,
        # The default for an open window, which may be looked at more than once.
        options=replace(city.config.options, method="anytime"),
    )
    assert document.to_json().decode() in result.stdout


async def test_a_question_that_is_too_long_for_an_address_is_refused(url: str) -> None:
    result = await ldpstream("query", url, "city", "--linear", ",".join(["1"] * 5000))
    assert result.exit_code != 0
    assert "the address of this question is too long: ask for less" in result.stderr


async def test_a_span_is_one_document_of_all_its_panes(url: str, pipeline: Pipeline) -> None:
    city = pipeline.collections["city"]
    span = "--start", "2026-11-21T10:01:00Z", "--end", "2026-11-21T10:04:00Z"
    (open_one,) = await windows(url, "city", *span)
    assert (open_one["n"], open_one["final"], open_one["method"]) == (300, False, "anytime")
    (asked,) = await windows(url, "city", *span, "--method", "normal")
    assert asked["method"] == "normal"
    (listed,) = await windows(url, "city", *span, "--top", "3")
    assert len(listed["distribution"]) == 3
    city.close(START_MS + 5 * MINUTE_MS)
    (closed,) = await windows(url, "city", *span)
    assert (closed["n"], closed["final"], closed["method"]) == (300, True, "padded")
    shown = await ldpstream("query", url, "city", *span)
    assert "300 reports" in shown.stdout
    refused = await ldpstream("query", url, "city", *span, "--last", "2")
    assert refused.exit_code == 2


@pytest.mark.parametrize(
    "span", [(), ("--start", "2026-11-21T10:01:00Z", "--end", "2026-11-21T10:05:00Z")]
)
async def test_a_window_that_closes_while_it_is_read_has_the_bounds_of_a_final(
    url: str, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, span: tuple[str, ...]
) -> None:
    asked = Client.get

    async def closing(self: Client, path: str, params: Sequence[tuple[str, str]]) -> bytes:
        if ("method", "anytime") in params:
            pipeline.collections["city"].close(START_MS + 5 * MINUTE_MS)
        return await asked(self, path, params)

    monkeypatch.setattr(Client, "get", closing)
    (document,) = await windows(url, "city", *span)
    assert (document["final"], document["method"]) == (True, "padded")


@pytest.mark.parametrize("form", [("--json",), ("--csv",), ()])
async def test_windows_that_expire_while_they_are_read_are_left_out_and_counted(
    url: str, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    listed = Client.windows

    async def expiring(*asked: Any, **more: Any) -> AsyncIterator[WindowState]:
        async for one in listed(*asked, **more):
            yield one
        for _ in range(2):
            pipeline.collections["city"].close(START_MS + 63 * MINUTE_MS)

    monkeypatch.setattr(Client, "windows", expiring)
    monkeypatch.setattr(Client, "newest", lambda *a, **k: collect(expiring(a[0], "city")))
    result = await ldpstream("query", url, "city", "--all", *form)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == "city: 3 of 5 windows expired before they were read: left out\n"
    if form == ("--json",):
        assert starts(json.loads(result.stdout)["windows"]) == ["10:03", "10:04"]
    elif form == ("--csv",):
        found = csv.DictReader(io.StringIO(result.stdout))
        assert {row["start"][11:16] for row in found} == {"10:03", "10:04"}
    else:
        assert "10:02" not in result.stdout
        assert "10:04" in result.stdout


async def collect(found: AsyncIterator[WindowState]) -> list[WindowState]:
    return [one async for one in found]


async def test_tables_show_windows_values_ranges_and_quantiles(url: str) -> None:
    result = await ldpstream("query", url, "city")
    assert result.exit_code == 0
    assert "city, 2026-11-21T10:04:00Z to 2026-11-21T10:05:00Z, open, 100 reports" in result.stdout
    assert "downtown" in result.stdout
    (document,) = await windows(url, "city")
    assert len(document["distribution"]) == 5
    for entry in document["distribution"]:
        assert f"│ {entry['value']} │ " in result.stdout
        assert f"{100 * entry['share']:.2f}%" in result.stdout
    ages = await ldpstream("query", url, "ages")
    assert "50.00%" in ages.stdout
    assert "[10, 20)" in ages.stdout


async def test_too_few_reports_are_withheld_and_the_minimum_is_named(
    url: str, pipeline: Pipeline
) -> None:
    rides = pipeline.collections["rides"]
    rides.report(0, ["bus"] * 7, times_ms=[START_MS] * 7)
    few = await ldpstream("query", url, "rides")
    assert few.exit_code == 0, few.stderr
    first, second = few.stdout.splitlines()
    assert first.endswith("open, 7 reports")
    assert second == (
        "withheld: 7 reports wait for 193 more, or until the window closes with minimum = 100 or "
        "more"
    )
    rides.report(0, ["bus"] * 300, times_ms=[START_MS + MINUTE_MS] * 300)
    waiting = await ldpstream("query", url, "rides")
    assert "withheld: 300 reports wait to be grouped by the worker of partition 0" in waiting.stdout
    rides.report(0, ["bus"] * 7, times_ms=[START_MS + 2 * MINUTE_MS] * 7)
    rides.close(START_MS + 3 * MINUTE_MS)
    both = await ldpstream("query", url, "rides", "--last", "2")
    assert (
        "withheld: 7 reports wait for 93 more in later windows, which have to close "
        "(minimum = 100)" in both.stdout
    )
    assert "applies to 2026-11-21T10:00:00Z to 2026-11-21T10:02:00Z, final" in both.stdout
    one = await ldpstream("query", url, "rides", "--last", "3", "--csv")
    rows = list(csv.DictReader(io.StringIO(one.stdout)))
    assert {row["span_end"] for row in rows} == {"2026-11-21T10:02:00Z", ""}


async def test_tables_state_what_the_bounds_of_each_list_hold_for(url: str) -> None:
    chosen = "95% bounds: anytime, simultaneous, respondents"
    for form in ([], ["--last", "2"]):
        asked = ["query", url, "city", *form]
        assert f"{chosen}; ranges pointwise\n" in (await ldpstream(*asked)).stdout
        together = (await ldpstream(*asked, "--simultaneous")).stdout
        assert f"{chosen}\n" in together
        projected = await ldpstream(*asked, "--simultaneous", "--project", "simplex")
        assert f"{chosen}; shares projected (simplex), bounds not" in projected.stdout
    every = await ldpstream("query", url, "city", "--top", "all")
    assert "95% bounds: anytime, pointwise, respondents\n" in every.stdout


async def test_status_shows_every_collection(url: str, pipeline: Pipeline) -> None:
    pipeline.collections["rides"].problems.append("topic rides.reports was [created] again")
    result = await ldpstream("status", url)
    assert result.exit_code == 0
    for text in ("city", "rides", "ages", "2026-11-21T10:04:00Z", "rejected: fingerprint 1"):
        assert text in result.stdout
    assert "problem: topic rides.reports was [created] again" in result.stdout
    assert re.search(r"^rides \(.*\): stopped *$", result.stdout, re.MULTILINE)
    as_json = await ldpstream("status", url, "--json")
    listed = json.loads(as_json.stdout)["collections"]
    assert [one["collection"] for one in listed] == ["city", "rides", "ages"]
    assert listed[0]["counted"] == 500


async def test_csv_has_one_header_and_all_windows(url: str) -> None:
    result = await ldpstream("query", url, "city", "--csv", "--last", "2")
    assert result.exit_code == 0
    rows = list(csv.DictReader(io.StringIO(result.stdout_bytes.decode(), newline="")))
    assert len(rows) == 2 * 6
    assert len({row["start"] for row in rows}) == 2
    assert [row["kind"] for row in rows[:6]] == ["value"] * 5 + ["range"]


async def test_tables_say_how_many_forged_reports_it_would_take(url: str) -> None:
    (document,) = await windows(url, "city")
    result = await ldpstream("query", url, "city")
    assert "forged" in result.stdout
    assert document["distribution"]
    for entry in document["distribution"]:
        assert f"│ {entry['forged']:>6} │" in result.stdout


async def test_spans_are_compared(url: str) -> None:
    found = json.loads(
        (await ldpstream("query", url, "city", "--compare", "before", "--json")).stdout
    )
    assert (found["before"]["window"]["start"], found["after"]["window"]["start"]) == (
        "2026-11-21T10:03:00Z",
        "2026-11-21T10:04:00Z",
    )
    again = await ldpstream("query", url, "city", "--compare", "1m", "--json")
    assert json.loads(again.stdout) == found
    span = ("--start", "2026-11-21T10:02:00Z", "--end", "2026-11-21T10:04:00Z")
    first = "2026-11-21T10:00:00Z/2026-11-21T10:02:00Z"
    table = await ldpstream("query", url, "city", *span, "--compare", first)
    assert "before: 2026-11-21T10:00:00Z to 2026-11-21T10:02:00Z" in table.stdout
    assert "of the population; all 61 bounds hold at once with 95.00%" in table.stdout
    assert "downtown" in table.stdout
    # Points of a share and percent of a number are two things; silence proves nothing.
    assert re.search(r"[+-]\d+\.\d\d pt", table.stdout)
    assert re.search(r"(none|\d+) of 61 changes (is )?shown", table.stdout)
    rows = list(csv.reader(io.StringIO((
        await ldpstream("query", url, "city", "--compare", "before", "--csv", "--top", "all")
    ).stdout)))  # fmt: skip
    assert {"before_start", "start", "kind", "change", "low", "told"} < set(rows[0])
    assert len(rows) == 1 + 60 + 1
    spans = dict(zip(rows[0], rows[1], strict=True))
    assert spans["before_start"] == found["before"]["window"]["start"]
    assert spans["n"] == str(found["after"]["n"])
    refused = await ldpstream("query", url, "city", "--compare", "yesterday")
    assert "--compare: expected before, how much earlier" in refused.stderr


async def test_values_that_may_be_nobodys_are_counted(url: str) -> None:
    (document,) = json.loads((await ldpstream("query", url, "city", "--json")).stdout)["windows"]
    lows = [entry["low"] for entry in document["distribution"]]
    zeros = sum(low == 0.0 for low in lows)
    assert zeros
    shown = await ldpstream("query", url, "city")
    assert f"low is 0 for {zeros} of {len(lows)} values: nothing shows that" in shown.stdout


async def test_an_open_span_is_compared_for_one_look(url: str) -> None:
    note = "a span is still open: its bounds hold for one look"
    assert note in (await ldpstream("query", url, "city", "--compare", "before")).stdout
    often = await ldpstream("query", url, "city", "--compare", "before", "--method", "anytime")
    assert note not in often.stdout


class TestQuantiles:
    """Of an axis with a unit, of one without, and of numbers that are not cut into bins."""

    DOMAINS: ClassVar = {
        "hours": {"domain": {"interval": [0.0, 24.0], "bins": 96}, "unit": "h"},
        "plain": {"domain": {"interval": [0.0, 24.0], "bins": 96}},
        "rounded": {
            "domain": {"interval": [0.0, 24.0], "bins": 96, "rounding": "random"},
            "unit": "h",
        },
        "numbers": {"domain": {"size": 96}},
    }

    @pytest.fixture
    def pipeline(self) -> Pipeline:
        table = {
            "mechanism": "l1-geometric",
            "epsilon": 5.0,
            "minimum": 1,
            "window": {"size": "1m"},
        }
        made = serve_collections({name: {**table, **own} for name, own in self.DOMAINS.items()})
        for name, collection in made.collections.items():
            for number, middle in enumerate((40, 54)):
                value = middle if name == "numbers" else middle / 4  # an edge of bins
                times_ms = [START_MS + number * MINUTE_MS] * 2000
                collection.report(0, [value] * 2000, times_ms=times_ms, seed=number)
        return made

    @pytest.mark.parametrize(
        ("name", "change"),
        [("hours", "+3.5 h"), ("plain", "+3.5"), ("rounded", "+3.5 h"), ("numbers", "+14 steps")],
    )
    async def test_the_change_is_in_the_unit_of_the_axis(
        self, url: str, name: str, change: str
    ) -> None:
        asked = ("query", url, name, "--compare", "before", "--quantile", "0.5", "--top", "0")
        shown = (await ldpstream(*asked)).stdout
        assert re.search(rf"│ +{re.escape(change)} (│ +{re.escape(change)} ){{2}}│ +rose │", shown)
        (row,) = csv.DictReader(io.StringIO((await ldpstream(*asked, "--csv")).stdout))
        assert (row["change"], row["unit"]) == ("14", "steps")


@pytest.fixture
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


async def test_a_server_that_is_no_worker_is_named_as_such() -> None:
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
        assert "its state is still being read" in result.stderr
        result = await ldpstream("status", base)
        assert result.exit_code == 0
        assert "not ready" in result.stdout


async def test_a_worker_with_a_token(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    app = build_http(pipeline, access=Access(token=TOKEN.encode()))
    async with TestServer(app) as server:
        url = str(server.make_url("/"))
        for command in (("query", url, "city"), ("status", url)):
            monkeypatch.delenv("LDPSTREAM_TOKEN", raising=False)
            refused = await ldpstream(*command)
            assert refused.exit_code == 2
            assert "the worker wants a token: set LDPSTREAM_TOKEN" in refused.stderr
            monkeypatch.setenv("LDPSTREAM_TOKEN", "another-token-altogether")
            refused = await ldpstream(*command)
            assert "the worker wants another token" in refused.stderr
            assert "altogether" not in refused.stderr
            monkeypatch.setenv("LDPSTREAM_TOKEN", TOKEN)
            assert (await ldpstream(*command)).exit_code == 0
