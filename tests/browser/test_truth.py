"""Nothing misleads: what the page says of data whose truth is known."""

import asyncio
import csv
import re
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.looking import ask, open_view, rows
from tests.stream.serving import (
    MINUTE_MS,
    START_MS,
    Pipeline,
    serve,
    serve_collections,
    stopped_clock,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOW = "2026-11-21T10:26:10Z"
_EACH: dict[str, Any] = {
    "mechanism": "randomized-response",
    "epsilon": 1.0,
    "partitions": 1,
    "minimum": 1,
    "window": {"size": "1m", "retention": "1h", "grace": "0s"},
}
_MODES = {"values": ["walk", "bike", "bus"]}
TABLES: dict[str, dict[str, Any]] = {
    # Of 100 reports a window and 1,000 at least: only spans of ten windows are shown.
    "few": {**_EACH, "minimum": 1_000, "domain": _MODES},
    "stuck": {
        **_EACH,
        "value_labels": {"walk": "on foot"},
        "domain": _MODES,
        "partitions": 2,
        "window": {**_EACH["window"], "idle": "off"},
    },
    "ages": {
        **_EACH,
        "title": "Visitors",
        "unit": "years",
        "mechanism": "l1-geometric",
        "domain": {"interval": [0.0, 100.0], "bins": 20},
    },
    "plane": {**_EACH, "mechanism": "block-hadamard", "domain": {"grid": [4, 6]}},
    # 40% are in the first of two disclosed districts, in every window, and none at "rare".
    "districts": {
        **_EACH,
        "mechanism": "block-hadamard",
        "domain": {
            "values": ["here", "rare", "there", "far"],
            "blocks": [["here", "rare"], ["there", "far"]],
        },
    },
    "grown": {**_EACH, "domain": _MODES},
    "rising": {**_EACH, "domain": _MODES},
    "people": {
        **_EACH,
        "mechanism": "randomized-response",
        "domain": {"attributes": {"sex": {"values": ["f", "m"]}, "age": {"size": 9}}},
    },
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pipeline() -> Pipeline:
    """Give collections of 26 minutes; one partition of `stuck` has been silent since the first."""
    pipeline = serve_collections(TABLES)
    pipeline.clock = stopped_clock(NOW)
    few, stuck, ages, plane, districts, grown, rising, people = pipeline.collections.values()
    for minute in range(26):
        times = [START_MS + minute * MINUTE_MS] * 100
        few.report(0, ["walk"] * 60 + ["bus"] * 40, times_ms=times, seed=minute)
        stuck.report(0, ["walk"] * 100, times_ms=times, seed=minute)
        if minute > 1:
            walking = 180 if minute < 14 else 240
            labels = ["walk"] * walking + ["bus"] * (400 - walking)
            rising.report(0, labels, times_ms=times * 4, seed=minute)
        if minute < 2:
            stuck.report(1, ["walk"] * 100, times_ms=times, seed=100 + minute)
        if 22 < minute < 25:
            ages.report(0, [30.0] * 45 + [62.0] * 55, times_ms=times, seed=minute)
            plane.report(0, [[1, 2]] * 100, times_ms=times, seed=minute)
            districts.report(0, ["here"] * 40 + ["there"] * 60, times_ms=times, seed=minute)
    for minute, walking in ((24, 800), (25, 1_180)):
        labels = ["walk"] * walking + ["bus"] * (2_000 - walking)
        grown.report(0, labels, times_ms=[START_MS + minute * MINUTE_MS] * 2_000, seed=minute)
    rising.close(START_MS + 26 * MINUTE_MS)
    grown.close(START_MS + 26 * MINUTE_MS)
    for one in (few, ages, plane, districts):
        one.close(START_MS + 25 * MINUTE_MS)
    stuck.close(START_MS + MINUTE_MS)
    districts.report(0, ["here"] * 33 + ["there"] * 67, times_ms=[START_MS + 25 * MINUTE_MS] * 100)
    districts.close(START_MS + 26 * MINUTE_MS)
    people.report(0, [{"sex": "f", "age": 3}] * 50, times_ms=[START_MS + 25 * MINUTE_MS] * 50)
    return pipeline


async def test_one_chip_says_in_every_view_what_a_stuck_collection_waits_for(
    page: Page, url: str
) -> None:
    await page.clock.install()
    chips = page.locator(".badge[data-state]:visible")
    for view in ("values", "time", "privacy", "health"):
        await open_view(page, url, "stuck", view, "&window=")
        await expect(chips).to_have_text(["Waiting 23 min"])
    # What has become final stays so; what is open is told by the words beside the chip.
    await open_view(page, url, "stuck", "values", "&window=live")
    await expect(chips).to_have_text(["Waiting 23 min"])
    await expect(page.locator("#state-words")).to_contain_text("still open")
    assert "on foot" in [row[0] for row in await rows(page, "#value-rows")]
    # A worker that hangs: within 15 s, and until it is back.
    hung = re.compile(r"/healthz|/api/")
    await page.route(hung, lambda _: None)
    await page.clock.run_for(15_000)
    await expect(chips).to_have_text(["Not current"])
    await expect(page.locator("#live")).to_be_hidden()
    await page.unroute(hung)
    await page.clock.run_for(61_000)
    await expect(chips).to_have_text(["Waiting 23 min"])
    await open_view(page, url, "stuck", "overview")
    row = page.locator("#overview-rows tbody tr").filter(has_text="stuck")
    await expect(row.locator(".badge")).to_have_text("Waiting 23 min")


async def test_a_span_is_drawn_once_over_its_width_and_nothing_beside_withheld(
    page: Page, url: str
) -> None:
    windows = (await ask(url, "few/windows"))["windows"]
    documents = [await ask(url, "few/estimate", **one["window"]) for one in windows]
    spans = [one.get("span") for one in documents]
    distinct = list({one["start"]: one for one in spans if one}.values())
    withheld = sum(one["withheld"] for one in documents)
    assert (len(distinct), withheld) == (2, 6)
    await open_view(page, url, "few", "time", "&window=&last=48")
    shown = await rows(page, "#window-rows")
    assert len(shown) == len(distinct) + withheld
    assert [row[0] for row in reversed(shown)][:2] == [
        "Sat, Nov 21, 10:00 – 10:10",
        "Sat, Nov 21, 10:10 – 10:20",
    ]
    await page.focus("#time-charts")
    await page.keyboard.press("Home")
    await expect(page.locator("#tip")).to_contain_text("10 windows that are shown only together")
    # Of the newest window nothing is shown: hatched, without a number or a line.
    await open_view(page, url, "few", "overview")
    cells = page.locator("#overview-rows tbody tr").filter(has_text="few").locator("td")
    await expect(cells.nth(0)).to_contain_text("Withheld")
    await expect(cells.nth(1)).to_contain_text("nothing shown")
    await expect(cells.nth(2)).to_have_text("–")
    await expect(cells.nth(3).locator(".hatched")).to_be_visible()
    assert await cells.nth(3).locator("path").count() == 0


async def test_numbers_lie_within_their_bounds_wherever_they_are_shown(
    page: Page, url: str
) -> None:
    window = {"start": "2026-11-21T10:23:00Z", "end": "2026-11-21T10:24:00Z"}
    document = await ask(url, "districts/estimate", **window, top="all", simultaneous="true")
    outside = [
        one for one in document["distribution"] if not one["low"] <= one["share"] <= one["high"]
    ]
    assert outside, "an example of what the page has to say within its bounds"
    await open_view(page, url, "districts", "values", "&window=2026-11-21T10:23:00Z")
    shown = await rows(page, "#value-rows")
    assert {row[0] for row in shown} == {one["value"] for one in document["distribution"]}
    assert all(row[3] <= row[1] <= row[4] for row in shown)
    await expect(page.locator("#bounds")).to_contain_text("shown within their bounds")
    await open_view(page, url, "districts", "time", '&window=&lines=["rare","far","here"]')
    lines = [row[4:] for row in await rows(page, "#window-rows")]
    assert all(line[at + 1] <= line[at] <= line[at + 2] for line in lines for at in (0, 3, 6))


async def test_ordered_domains_open_on_what_can_be_told_of_them(page: Page, url: str) -> None:
    for collection, view in (("ages", "cumulative"), ("plane", "map"), ("few", "values")):
        await page.goto("about:blank")
        await page.goto(f"{url}/#collection={collection}")
        await expect(page.locator(f"#{view}")).to_be_visible()
    await page.goto(f"{url}/#collection=ages")
    half = re.compile(r"^Half of the respondents are (\d+) years or less \((\d+ to \d+)\)\.$")
    await expect(page.locator("#cdf-sum")).to_have_text(half)
    said = half.match(await page.locator("#cdf-sum").inner_text())
    assert said is not None
    # One median, with the same bounds in every view.
    await open_view(page, url, "ages", "values", "&window=")
    await expect(page.locator("#values-sum")).to_have_text(said[0])
    names = [row[0] for row in await rows(page, "#value-rows")]
    assert names == sorted(names, key=lambda name: float(name[1:].split(",")[0]))
    assert len(names) == 20
    await open_view(page, url, "ages", "overview")
    newest = (
        page.locator("#overview-rows tbody tr").filter(has_text="Visitors").locator("td").nth(1)
    )
    await expect(newest).to_contain_text(f"median {said[1]} years or less")
    await expect(newest).to_contain_text(said[2])


async def test_projected_shares_are_called_so_and_downloads_have_the_same(page: Page) -> None:
    tree = {**_EACH, "mechanism": "tree", "domain": {"interval": [0.0, 24.0], "bins": 32}}
    pipeline = serve_collections({"hours": tree})
    hours = pipeline.collections["hours"]
    hours.report(0, [8.5] * 60 + [17.5] * 40, times_ms=[START_MS] * 100)
    hours.close(START_MS + MINUTE_MS)
    told = "Shares are projected (ordered), slightly biased; bounds are not. "
    downloads = "downloads have the {} ones, which may lie outside."
    async with serve(pipeline) as own:
        for view, where in (("cumulative", "#cdf-bounds"), ("values", "#bounds")):
            await open_view(page, own, "hours", view, "&window=")
            await expect(page.locator(where)).to_contain_text(told)
            await expect(page.locator(where)).to_contain_text(downloads.format("projected"))
        saved = list(csv.DictReader((await download(page, "#save-csv")).splitlines()))
        assert {row["projection"] for row in saved} == {"ordered"}
        shares = [float(row["value"]) for row in saved if row["kind"] == "value"]
        assert len(shares) == 32
        assert min(shares) == 0.0
        # What is drawn over time, and areas, are not projected.
        for view, where in (("time", "#time-bounds"), ("values", "#bounds")):
            await open_view(page, own, "hours", view, "&window=&top=areas")
            await expect(page.locator(where)).to_contain_text(downloads.format("unbiased"))
            await expect(page.locator(where)).not_to_contain_text("projected")


async def download(page: Page, button: str) -> str:
    """Return the text that a button saves."""
    async with page.expect_download() as saving:
        await page.click(button)
    path = await (await saving.value).path()
    return await asyncio.to_thread(path.read_text)


async def test_sentences_are_whole(page: Page, url: str) -> None:
    await open_view(page, url, "people", "privacy")
    await expect(page.locator("#privacy-sum")).to_have_text(re.compile(r"[^:]\.$"))
    await open_view(page, url, "people", "values")


async def test_change_is_judged_of_the_population_and_missed_by_no_added_half_widths(
    page: Page, url: str
) -> None:
    """Districts are exact of respondents: 40% in every window. Of `grown` 19 points more walk."""
    before = {"before_start": "2026-11-21T10:24:00Z", "before_end": "2026-11-21T10:25:00Z"}
    newest = "&window=2026-11-21T10:25:00Z&compare=before"
    await open_view(page, url, "grown", "values", newest)
    judged = await ask(
        url,
        "grown/change",
        start="2026-11-21T10:25:00Z",
        end="2026-11-21T10:26:00Z",
        top="all",
        **before,
    )
    walk = next(one for one in judged["values"] if one["value"] == "walk")
    assert walk["told"] == "rose"
    halves = [
        await ask(
            url,
            "grown/estimate",
            start=start,
            end=end,
            top="all",
            simultaneous="true",
            confidence=0.975,
        )
        for start, end in (
            ("2026-11-21T10:24:00Z", "2026-11-21T10:25:00Z"),
            ("2026-11-21T10:25:00Z", "2026-11-21T10:26:00Z"),
        )
    ]
    then, now = (
        next(one for one in each["distribution"] if one["value"] == "walk") for each in halves
    )
    assert now["low"] < then["high"], "added half-widths would have missed it"
    shown = {row[0]: row[-2] for row in await rows(page, "#value-rows")}
    assert shown["walk"] == walk["change"]
    await expect(page.locator("#values-sum")).to_contain_text("walk rose")
    await open_view(page, url, "grown", "overview")
    row = page.locator("#overview-rows tbody tr")
    await expect(row.filter(has_text="grown")).to_contain_text("changed by")
    await expect(row.filter(has_text="districts")).to_contain_text("no difference shown")
    await open_view(page, url, "districts", "values", newest)
    await expect(page.locator("#values-sum")).to_contain_text("No difference is shown for any")
    note = page.locator("#compared-note")
    await expect(note).to_contain_text("Of the population, with sampling error")


async def test_a_span_dragged_on_the_strip_tells_what_single_windows_do_not(
    page: Page, url: str
) -> None:
    """Of `rising` 45% walk in twelve windows, and 60% in the twelve after them."""
    await open_view(page, url, "rising", "values", "&window=&compare=before")
    said, bounds = page.locator("#values-sum"), page.locator("#bounds")
    await expect(said).to_contain_text("No difference is shown for any")
    bars = page.locator("#strip span")
    await expect(bars).to_have_count(24)
    await bars.nth(12).hover()
    await page.mouse.down()
    await bars.nth(23).hover()
    await page.mouse.up()
    await expect(said).to_contain_text("walk rose")
    await expect(bounds).to_contain_text("of the newest window alone")
    await expect(page.locator("#strip .shown")).to_have_count(12)
    await expect(page.locator("#strip .compared")).to_have_count(12)
    span = ("2026-11-21T10:14:00Z", "2026-11-21T10:26:00Z")
    assert await page.input_value("#window") == "/".join(span)
    before = {"before_start": "2026-11-21T10:02:00Z", "before_end": span[0]}
    judged = await ask(url, "rising/change", start=span[0], end=span[1], top="all", **before)
    shown = {row[0]: row[-2] for row in await rows(page, "#value-rows")}
    assert shown["walk"] == judged["values"][0]["change"] > 0.05
    await page.reload()
    await expect(said).to_contain_text("walk rose")
    # The period before it, as long, and presets.
    await page.click("#older")
    await expect(page.locator("#strip .shown")).to_have_count(12)
    await expect(said).to_contain_text("Nothing is compared: ")
    await page.select_option("#window", "hour")
    await expect(page.locator("#strip .shown")).to_have_count(24)
    await expect(page.locator("#n")).to_have_text("9,600")
    await page.click("#tab-time")
    await expect(page.locator("#window-rows tbody tr")).to_have_count(24)
    assert "window=hour" in page.url
