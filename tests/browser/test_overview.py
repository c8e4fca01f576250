"""All collections on one page, and the bars of a collection's windows, as the API tells them."""

import re
import time
from typing import Any, Final

import numpy as np
import pytest
from playwright.async_api import Page, expect

from ldpstream.agents.web.home_points import HOME_QUERY
from tests.browser.looking import ask, change_answers, drawn, open_view, rows
from tests.browser.showing import MAKE, TABLES, report
from tests.stream.serving import (
    MINUTE_MS,
    START_MS,
    Pipeline,
    serve,
    serve_collections,
    stopped_clock,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

COLD_BYTES: Final = 120_000
HOME_REQUESTS: Final = 5
HOME_BYTES: Final = 60_000
FINAL = "2026-11-21T10:00:00Z"
ALL = {"simultaneous": "true"}


async def test_a_bar_stands_for_each_window_and_shows_it(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "values", f"&window=&compare={FINAL}")
    bars = page.locator("#strip span")
    windows = (await ask(url, "modes/windows"))["windows"]
    assert [one["final"] for one in windows] == [True] * 7 + [False]
    classes = ["final compared", *["final"] * 5, "final shown", "open"]
    assert await bars.evaluate_all("all => all.map(b => b.className)") == classes
    heights = "all => all.map(b => parseFloat(b.style.getPropertyValue('--height')))"
    most = max(one["n"] for one in windows)
    assert await bars.evaluate_all(heights) == pytest.approx(
        [100 * one["n"] / most for one in windows], abs=1e-3
    )
    await bars.last.click()
    await expect(bars.last).to_have_class("open shown")
    await expect(page.locator("#state")).to_have_text("Open")


async def test_the_overview_says_a_number_of_each_collection_and_its_change(
    page: Page, url: str
) -> None:
    await open_view(page, url, "modes", "overview")
    lines = "all => all.map(row => [...row.cells].map(cell => cell.innerText.split('\\n')))"
    shown = {
        cells[0][0]: cells
        for cells in await page.locator("#overview-rows tbody tr").evaluate_all(lines)
    }
    assert set(shown) == set(TABLES)
    finals = [one["window"] for one in (await ask(url, "modes/windows"))["windows"] if one["final"]]
    document = await ask(url, "modes/estimate", **finals[-1], top="all", **ALL)
    now = max(document["distribution"], key=lambda one: one["share"])
    leader = now["value"]
    before = {f"before_{name}": time for name, time in finals[-2].items()}
    judged = await ask(url, "modes/change", **finals[-1], **before, top="all")
    own = next(one for one in judged["values"] if one["value"] == leader)
    _, state, newest, change, _, counted, epsilon = shown["modes"]
    assert state == ["Current", "next final 10:09"]
    assert newest[0] == f"{leader} has {100 * now['share']:.1f}%"
    low, high = 100 * own["low"], 100 * own["high"]
    said = f"{low:+.1f} to {high:+.1f} points".replace("-", "−")
    assert change == ["no difference shown", said]
    assert counted == [f"{document['n']:,} reports", "late so far 0", "rejected so far 0"]
    assert epsilon == ["1"]
    others = [shown[name][-1] for name in ("ages", "places")]
    assert others == [["0.4 for each 2"], ["3 in a block"]]
    assert shown["ages"][2][0].startswith("median ")
    # The largest of its cells would be that with the most noise.
    assert re.match(r"(No|One|\d+) areas? stands? out", shown["spots"][2][0])
    assert await page.locator("#overview-rows .spark").count() == len(TABLES) - 1


async def test_a_collection_that_is_not_answered_leaves_the_others_shown(
    page: Page, url: str
) -> None:
    def without_modes(document: dict[str, Any]) -> None:
        document["series"] = [one for one in document["series"] if one["collection"] != "modes"]
        document["problems"] = {"modes": "internal error: odd"}

    await change_answers(page, "**/api/series?*", without_modes)
    await open_view(page, url, "modes", "overview")
    shown = page.locator("#overview-rows tbody tr")
    assert await shown.count() == len(TABLES)
    first = (await shown.first.inner_text()).split()
    assert first[0] == "modes"
    assert "Problem" in first
    await expect(shown.first).to_contain_text("odd")
    await expect(page.locator("#overview-sum")).to_contain_text("modes has a problem")


async def test_what_is_said_lies_within_its_bounds(page: Page, url: str) -> None:
    def above_its_bounds(document: dict[str, Any]) -> None:
        (modes,) = (one for one in document["series"] if one["collection"] == "modes")
        for line in modes["lines"]:
            line["estimate"] = [one and one + 0.05 for one in line["high"]]

    await change_answers(page, "**/api/series?*", above_its_bounds)
    await open_view(page, url, "modes", "overview")
    row = page.locator("#overview-rows tbody tr").filter(has_text="modes")
    said, bounds = (await row.locator("td").nth(1).inner_text()).split("\n")[:2]
    assert said.split(" has ")[1] == bounds.split(" to ")[1]


def show_ten() -> Pipeline:
    """Return ten collections of every kind, each with 25 final windows, and one that is open."""
    kinds = [*TABLES, "ages", "modes", "hours"]
    pipeline = serve_collections(
        {f"{kind}-{number}": TABLES[kind] for number, kind in enumerate(kinds)}
    )
    pipeline.clock = stopped_clock("2026-11-21T10:26:10Z")
    for seed, (name, served) in enumerate(pipeline.collections.items()):
        for minute in range(26):
            labels = MAKE[name.split("-")[0]](np.random.default_rng(100 * seed + minute), 200)
            served.report(0, labels, times_ms=[START_MS + minute * MINUTE_MS] * 200, seed=minute)
        served.close(START_MS + 25 * MINUTE_MS)
    return pipeline


async def test_ten_collections_load_in_few_bytes_and_requests(page: Page) -> None:
    requests: dict[str, str] = {}
    sizes: dict[str, int] = {}
    session = await page.context.new_cdp_session(page)
    await session.send("Network.enable")

    def received(event: dict[str, Any]) -> None:
        if event["response"]["fromDiskCache"]:
            requests.pop(event["requestId"])

    def loaded(event: dict[str, Any]) -> None:
        if path := requests.get(event["requestId"]):
            sizes[path] = event["encodedDataLength"]

    session.on(
        "Network.requestWillBeSent",
        lambda event: requests.update({event["requestId"]: event["request"]["url"]}),
    )
    session.on("Network.requestServedFromCache", lambda event: requests.pop(event["requestId"]))
    session.on("Network.responseReceived", received)
    session.on("Network.loadingFinished", loaded)
    pipeline = show_ten()
    served, open_ms = pipeline.collections["modes-0"], START_MS + 26 * MINUTE_MS
    async with serve(pipeline) as url:
        await page.goto(url)
        await drawn(page, "overview")
        await expect(page.locator("#live")).to_have_text("Live")
        assert await page.locator("#overview-rows tbody tr").count() == 10
        assert 50_000 < sum(sizes.values()) <= COLD_BYTES, sizes
        requests.clear()
        sizes.clear()
        for ten in pipeline.collections.values():
            ten.close(START_MS + 26 * MINUTE_MS)
        await page.reload()
        await drawn(page, "overview")
        await expect(page.locator("#live")).to_have_text("Live")
        # On a slow machine it has asked for the same again meanwhile.
        assert len(set(requests.values())) <= HOME_REQUESTS, requests
        # What the worker computes when windows close.
        assert f"{url}/api/series?{HOME_QUERY}" in requests.values()
        # Where it has asked for the same before, the worker only confirms it.
        assert 1_000 < sum(sizes.values()) <= HOME_BYTES, sizes
        # However fast reports come.
        requests.clear()
        begun = time.monotonic()
        for part in range(15):
            await page.wait_for_timeout(200)
            served.report(0, ["walk"] * 50, times_ms=[open_ms] * 50, seed=part)
        # One refresh of three requests may fall into the first second.
        assert 1 <= len(requests) <= time.monotonic() - begun + 3, requests


async def test_of_several_collections_the_page_opens_on_all_and_leads_to_each(
    page: Page, url: str
) -> None:
    await page.set_viewport_size({"width": 375, "height": 812})
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url) if "/page/" not in one.url else None)
    await page.goto(url)
    await drawn(page, "overview")
    await page.wait_for_timeout(500)
    # The page, its collections, their series, and events.
    assert len(asked) == 4, "\n".join(asked)
    box = await page.locator("#overview-rows strong").first.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 200, "a number on top of a phone"
    await page.get_by_role("link", name="modes", exact=True).first.click()
    await drawn(page, "values")
    await expect(page.locator("#overview")).to_be_hidden()
    await page.click("#all")
    await expect(page.locator("#overview-rows")).to_be_visible()
    await expect(page.locator("#tabs")).to_be_hidden()
    await page.go_back()
    await expect(page.locator("#values-sum")).to_be_visible()


async def test_cards_tell_what_has_changed_how_fast_is_counted_and_what_is_promised(
    page: Page, url: str, pipeline: Pipeline
) -> None:
    def walk_rose(document: dict[str, Any]) -> None:
        (modes,) = (one for one in document["series"] if one["collection"] == "modes")
        modes["change"]["values"][0] |= {"change": 0.2, "low": 0.1, "high": 0.3, "told": "rose"}

    await change_answers(page, "**/api/series?*", walk_rose)
    now = "2026-11-21T10:08:10Z"
    pipeline.clock = stopped_clock(now)
    await page.clock.set_fixed_time(now)
    await open_view(page, url, "modes", "overview")
    assert await rows(page, "#changed-rows") == [["modes", "walk", 0.2]]
    worker = page.locator("#worker dd")
    assert await worker.all_inner_texts() == [
        "not known yet", "0 messages", "10:08, modes 0", "7 of 7"
    ]  # fmt: skip
    await page.clock.set_fixed_time("2026-11-21T10:08:30Z")
    report(pipeline.collections["modes"], 7, 4_000, seed=50)
    await expect(worker.first).to_have_text("200 reports/s")
    collections = [await ask(url, name) for name in TABLES]
    open_ones = [one for one in collections if one["privacy"]["unprotected"] is not None]
    assert await page.locator("#promises li").all_inner_texts() == [
        f"{one['name']} does not protect {one['privacy']['unprotected']}" for one in open_ones
    ]
    assert await page.locator("#promises-sum").inner_text() == (
        "4 of 7 protect all values: modes, ages, hours and 1 more."
    )
