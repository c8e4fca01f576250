"""What people do with the page beside looking: their language, their clock, their own documents."""

import asyncio
import csv
import io
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from xml.etree import ElementTree as ET

import duckdb
import numpy as np
import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer
from playwright.async_api import Browser, Page, expect

from ldpstream.agents.document.flat import document_rows
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.document.sinks import store_documents
from ldpstream.mechanisms.base.times import parse_time
from tests.browser.conftest import PATIENCE_MS
from tests.browser.looking import ask, open_view, rows
from tests.browser.showing import MODES, NOW, modes
from tests.browser.test_numbers import NOTE_COPIED, copied
from tests.stream.serving import (
    CITY,
    MINUTE_MS,
    START_MS,
    Pipeline,
    serve,
    serve_collections,
    stopped_clock,
    visits,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

FRAMED = web.AppKey("framed", list[str])
TIME = "2026-11-21T10:05:00Z"
DAY = {"size": "1d", "timezone": "Europe/Berlin", "idle": "off", "retention": "30d"}


@asynccontextmanager
async def speaking(browser: Browser, locale: str, zone: str = "UTC") -> AsyncIterator[Page]:
    """Give a page of a browser in a language and a time zone."""
    context = await browser.new_context(locale=locale, timezone_id=zone)
    context.set_default_timeout(PATIENCE_MS)
    try:
        yield await context.new_page()
    finally:
        await context.close()


@pytest.mark.parametrize(
    ("locale", "day", "clock", "digits"),
    [
        ("en-US", "Sat, Nov 21, 10:05 – 10:06 UTC", "10:05", "0123456789.,%"),
        ("de-DE", "Sa., 21. Nov., 10:05 – 10:06 UTC", "10:05", "0123456789,.%"),
        ("ar-EG", "السبت، ٢١ نوفمبر, ١٠:٠٥ – ١٠:٠٦ UTC", "١٠:٠٥", "٠١٢٣٤٥٦٧٨٩٫٬٪"),
    ],
)
async def test_numbers_and_dates_are_written_as_the_language_does(
    browser: Browser, url: str, locale: str, day: str, clock: str, digits: str
) -> None:
    as_here = str.maketrans("0123456789.,%", digits)
    document = await ask(url, "modes/estimate", start=TIME, end=TIME.replace("05", "06"), top="all")
    async with speaking(browser, locale) as page:
        await open_view(page, url, "modes", "values", f"&window={TIME}")
        assert plain(await page.locator("#state-words").inner_text()) == day
        assert plain(await page.locator("#n").inner_text()) == f"{document['n']:,}".translate(
            as_here
        )
        row = page.locator("#value-rows tbody tr").first
        share = next(one for one in document["distribution"] if one["value"] == "walk")["share"]
        assert f"{100 * share:.1f}%".translate(as_here) in plain(await row.inner_text())
        assert clock in await page.locator("#window option:checked").inner_text()


def plain(text: str) -> str:
    """Return a text without the marks of direction and the spaces before units."""
    return re.sub(r"[\u200e\u200f\u061c\u2068\u2069]|[\u00a0\u202f ](?=%)", "", text)


async def test_times_are_utc_until_the_local_ones_are_chosen(browser: Browser, url: str) -> None:
    async with speaking(browser, "en-GB", "Asia/Kolkata") as page:
        await open_view(page, url, "modes", "values", f"&window={TIME}")
        said = page.locator("#state-words")
        await expect(said).to_have_text("Sat 21 Nov, 10:05 – 10:06 UTC")
        await page.get_by_role("button", name="Times: UTC").click()
        await expect(said).to_have_text("Sat 21 Nov, 15:35 – 15:36 GMT+5:30")
        await page.reload()
        await expect(said).to_have_text("Sat 21 Nov, 15:35 – 15:36 GMT+5:30")
        await expect(page.locator("#strip-first")).to_have_text("15:30")
        # What is asked for, kept in the address and saved, does not depend on it.
        assert f"window={TIME}" in page.url


async def saved(page: Page, button: str) -> bytes:
    """Return what a button downloads."""
    async with page.expect_download() as started:
        await page.click(button)
    path = await (await started.value).path()
    return await asyncio.to_thread(path.read_bytes)


async def test_annotations_mark_bars_and_charts_and_are_listed(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text("2026-11-21T10:02:30Z,Strike <b>\n2026-11-20T10:00:00Z,Long ago\n")
    pipeline = serve_collections({"modes": {**MODES, "annotations": str(file)}})
    pipeline.clock = stopped_clock(NOW)
    served, rng = pipeline.collections["modes"], np.random.default_rng(3)
    for minute in range(5):
        served.report(0, modes(rng, 400), times_ms=[START_MS + minute * MINUTE_MS] * 400)
    served.close(START_MS + 5 * MINUTE_MS)
    async with serve(pipeline) as url:
        await open_view(page, url, "modes", "time", "&window=")
        noted = page.locator("#strip .noted")
        await expect(noted).to_have_attribute("data-to", "2026-11-21T10:02:00Z")
        assert str(await noted.get_attribute("title")).endswith("; Strike <b>")
        listed = page.locator("#annotations li")
        await expect(listed).to_have_text(["◆ 10:02:30 Strike <b>"])
        chart = "() => document.querySelector('#time-charts canvas').toDataURL()"
        marked = await page.evaluate(chart)
        file.write_text("")
        await open_view(page, url, "modes", "time", "&window=")
        await expect(listed).to_have_count(0)
        assert await page.evaluate(chart) != marked


async def test_what_is_shown_is_saved_with_what_it_is_compared_with(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "values", f"&window={TIME}")
    await expect(page.locator("#save-change")).to_be_hidden()
    before = "2026-11-21T10:04:00Z"
    await open_view(page, url, "modes", "values", f"&window={TIME}&compare={before}")
    table = csv.DictReader(io.StringIO((await saved(page, "#save-change")).decode()))
    rows = [row for row in table if row["kind"] == "value"]
    assert {row["name"] for row in rows} == set(MODES["domain"]["values"])
    assert {(row["before_start"], row["start"]) for row in rows} == {(before, TIME)}
    assert all(float(row["low"]) <= float(row["change"]) <= float(row["high"]) for row in rows)


@pytest.mark.parametrize(("collection", "view"), [("modes", "values"), ("ages", "cumulative")])
async def test_a_report_card_says_what_it_shows_of_when_and_how_sure(
    page: Page, url: str, collection: str, view: str
) -> None:
    await open_view(page, url, collection, view, f"&window={TIME}")
    card = ET.fromstring(await saved(page, "#save-card"))
    name = "{http://www.w3.org/2000/svg}"
    said = " ".join(one.text or "" for one in card.iter(f"{name}text"))
    sum_id = {"values": "values-sum", "cumulative": "cdf-sum"}[view]
    for part in (sum_id, "state-words", "n"):
        assert await page.locator(f"#{part}").inner_text() in said
    assert f"{collection}: {view.capitalize()}" in said
    assert "95%" in said
    assert "padded" in said
    assert f"collection={collection}" in said
    assert bool([*card.iter(f"{name}image")]) == (view == "cumulative")
    assert ("walk" in said) == (view == "values")
    assert "all quantiles together" not in said or view == "cumulative", "nothing that is hidden"
    lines: dict[str, dict[str, str]] = {}
    for one in card.iter(f"{name}text"):
        lines.setdefault(one.get("y", ""), {})[one.get("x", "")] = one.text or ""
    if view == "values":
        head, *others = [line for line in lines.values() if len(line) > 1]
        assert list(head.values()) == ["value", "share", "low", "high"]
        asked = {"start": TIME, "end": TIME.replace("05", "06"), "top": 6, "simultaneous": "true"}
        shown = await ask(url, "modes/estimate", **asked)
        ends = {one["value"]: (one["low"], one["high"]) for one in shown["distribution"]}
        walk = next(line for line in others if "walk" in line.values())
        assert walk.keys() == head.keys()
        low, high = [*walk.values()][2:]
        assert float(low[:-1]) == pytest.approx(100 * ends["walk"][0], abs=0.06)
        assert float(high[:-1]) == pytest.approx(100 * ends["walk"][1], abs=0.06)


async def test_the_copied_sql_answers_from_finals_in_duckdb(
    page: Page, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await page.add_init_script(NOTE_COPIED)
    await open_view(page, url, "modes", "values", f"&window={TIME}")
    sql = await copied(page, "sql")
    documents = [
        EstimateDocument.model_validate(await ask(url, f"modes/estimate?start={start}&end={end}"))
        for start, end in ((TIME, "2026-11-21T10:06:00Z"), ("2026-11-21T10:04:00Z", TIME))
    ]
    monkeypatch.chdir(tmp_path)
    store_documents(documents, "finals.parquet")
    found = duckdb.sql(sql).df()
    assert len(found) == len(list(document_rows(documents[0])))
    assert set(found["collection"]) == {"modes"}


@pytest.mark.parametrize(("query", "shown"), [("?embed=1", True), ("", False)])
async def test_only_configured_pages_show_one_view_in_a_frame(
    browser: Browser, pipeline: Pipeline, query: str, shown: bool
) -> None:
    async def framing(request: web.Request) -> web.Response:
        view = f"{request.app[FRAMED][0]}/{query}#collection=modes&view=values"
        return web.Response(text=f'<iframe src="{view}"></iframe>', content_type="text/html")

    app = web.Application()
    app[FRAMED] = []
    app.router.add_get("/", framing)
    async with TestServer(app) as other, speaking(browser, "en-US") as page:
        origin = str(other.make_url("")).rstrip("/")
        async with serve(pipeline, frame_ancestors=[origin]) as url:
            app[FRAMED].append(url)
            await page.goto(origin)
            frame = page.frame_locator("iframe")
            if shown:
                await expect(frame.locator("#values-sum")).not_to_be_empty()
                await expect(frame.locator("header")).to_be_hidden()
                await expect(frame.locator("#tabs")).to_be_hidden()
            else:
                await page.wait_for_load_state("networkidle")
                await expect(frame.locator("#values-sum")).to_have_count(0)


async def test_blocks_with_shapes_are_drawn_as_such_under_their_names(
    page: Page, tmp_path: Path
) -> None:
    north, south = (
        [[west, low], [west + 1, low], [west + 1, low + 1], [west, low + 1]]
        for west, low in ((8.0, 51.0), (8.0, 50.0))
    )
    file = tmp_path / "wards.json"
    features = [
        {"type": "Feature", "id": one, "geometry": {"type": kind, "coordinates": ring}}
        for one, kind, ring in (("north", "Polygon", [north]), (1, "MultiPolygon", [[south]]))
    ]
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    wards = {
        **MODES,
        "mechanism": "block-hadamard",
        "domain": {"values": ["a", "b", "c", "d"], "blocks": 2},
        "publish": {"top": 4},
        "block_names": ["north", "south"],
        "value_labels": {"a": "Altstadt"},
        "geojson": str(file),
    }
    pipeline = serve_collections({"wards": wards})
    served = pipeline.collections["wards"]
    served.report(0, ["a"] * 700 + ["d"] * 300, times_ms=[START_MS] * 1000)
    served.close(START_MS + MINUTE_MS)
    async with serve(pipeline) as url:
        await page.goto(url)
        await expect(page.locator("#map-bounds")).to_contain_text("the share of a block")
        box = await page.locator("#map-canvas").bounding_box()
        assert box is not None
        tip = page.locator("#tip")
        for height, name, share in ((0.3, "north", "70"), (0.7, "south", "30")):
            await page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + height * box["height"])
            await expect(tip).to_contain_text(name)
            await expect(tip).to_contain_text(f"{share}.")
        await page.click("#areas summary")
        names = page.locator("#all-area-rows tbody th")
        await expect(names).to_have_text(["north", "south"])
        await page.click("#tab-values")
        await expect(page.locator("#value-rows tbody th").first).to_have_text("Altstadt")


@pytest_asyncio.fixture(loop_scope="session")
async def days_url() -> AsyncIterator[str]:
    """Serve a city's days of which one has 25 hours: 200 reports of each day's first minute."""
    served = serve_collections({"city": {**CITY, "partitions": 1, "window": DAY}})
    served.clock = stopped_clock("2026-10-26T23:00:03Z")
    city = served.collections["city"]
    for seed, day in enumerate(("24T00:00:00+02", "25T00:00:00+02", "26T00:00:00+01")):
        time_ms = parse_time(f"2026-10-{day}:00")
        city.report(0, visits(seed, 200), times_ms=[time_ms] * 200, seed=seed)
    city.close(parse_time("2026-10-27T00:00:00+01:00"))
    async with serve(served) as started:
        yield started


async def test_days_are_named_by_their_dates(page: Page, days_url: str) -> None:
    # The viewer's clock is far off: ages are the worker's.
    await page.clock.set_fixed_time("2031-01-01T00:00:00Z")
    await open_view(page, days_url, "city", "values")
    assert await page.locator("#window option").all_inner_texts() == [
        *("newest final", "live, still open", "the last 7 days", "the last 30 days"),
        *("Mon, Oct 26", "Sun, Oct 25 (25 h)", "Sat, Oct 24"),
    ]
    await page.select_option("#window", label="Sun, Oct 25 (25 h)")
    await expect(page.locator("#facts")).to_contain_text("Sun, Oct 25 (25 h)")
    await expect(page.locator("#facts")).not_to_contain_text("UTC")
    await open_view(page, days_url, "city", "time")
    named = [row[0] for row in await rows(page, "#window-rows")]
    assert named == ["Mon, Oct 26", "Sun, Oct 25 (25 h)", "Sat, Oct 24"]
    await open_view(page, days_url, "city", "overview")
    row = page.locator("#overview-rows tbody tr")
    await expect(row).to_contain_text("1d, Europe/Berlin")
    await expect(row).to_contain_text("Mon, Oct 26, 3 s ago")
