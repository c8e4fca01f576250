"""What is chosen in the address, what names may be, and which lines and windows are shown."""

import struct
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import pytest_asyncio
from playwright.async_api import Page, Route, expect

from tests.browser.looking import (
    ask,
    change_answers,
    drawn,
    drawn_windows,
    lines,
    numbers,
    open_view,
    rows,
    within,
)
from tests.stream.serving import MINUTE_MS, START_MS, Pipeline, serve_collections

pytestmark = pytest.mark.asyncio(loop_scope="session")

LABELS = ["<b>ä</b>", "a/b", "a b", 'a"b', "港", "湾", "=1+1", "'"]
_WINDOW: dict[str, Any] = {"partitions": 1, "window": {"size": "1m", "retention": "1d"}}
NAMED: dict[str, Any] = {
    "mechanism": "randomized-response",
    "epsilon": 2.0,
    "domain": {"values": LABELS},
    "minimum": 1,
    **_WINDOW,
}
LINE: dict[str, Any] = {
    "mechanism": "l1-geometric",
    "epsilon": 1.0,
    "domain": {"size": 130},
    "minimum": 0,
    "publish": {"ranges": {"港": [0, 9], "湾": [10, 99], 'a"b': [5, 6], "a/b": [7, 8]}},
    **_WINDOW,
}
SURVEY: dict[str, Any] = {
    "mechanism": "randomized-response",
    "epsilon": 2.0,
    "domain": {"attributes": {"answer": {"values": ["no", "yes"]}, "home": {"grid": [2, 3]}}},
    "minimum": 1,
    **_WINDOW,
}
EMPTY: dict[str, Any] = {**NAMED, "domain": {"size": 2}}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pipeline() -> Pipeline:
    """Collections of strange names, one of 205 windows, one of one window, and one of none."""
    served = serve_collections(
        {"named": NAMED, "line": LINE, "only": EMPTY, "empty": EMPTY, "survey": SURVEY}
    )
    people = [{"answer": "yes", "home": [1, 2]}, {"answer": "no", "home": [0, 0]}] * 200
    served.collections["survey"].report(0, people, times_ms=[START_MS] * 400)
    served.collections["only"].report(0, [0, 1] * 100, times_ms=[START_MS] * 200)
    labels = [label for label in LABELS for _ in range(40)]
    for minute, n in enumerate((320, 320, 30)):
        times = [START_MS + minute * MINUTE_MS] * n
        served.collections["named"].report(0, labels[:n], times_ms=times, seed=minute)
    times = [START_MS + minute * MINUTE_MS for minute in range(205)]
    served.collections["line"].report(0, [7] * 205, times_ms=times)
    return served


async def test_names_are_shown_as_they_are_and_each_line_is_its_own(page: Page, url: str) -> None:
    await open_view(page, url, "named", "values", "&window=2026-11-21T10:01:00Z")
    assert {row[0] for row in await rows(page, "#value-rows")} == set(LABELS)
    await open_view(page, url, "line", "time", "&last=12")
    assert await lines(page) == list(LINE["publish"]["ranges"])
    document = await ask(url, "line/estimate", method="anytime", simultaneous="true")
    newest, *_ = await drawn_windows(page)
    for entry in document["ranges"]:
        told = numbers(within(entry), "share", "low", "high")
        assert newest[entry["name"]] == pytest.approx(told, rel=1e-5)


async def test_values_that_stand_out_are_bounded_all_together(page: Page, url: str) -> None:
    await open_view(page, url, "named", "time")
    first = (await ask(url, "named/windows"))["windows"][0]["window"]
    asked = {"top": "all", "simultaneous": "true", "method": "anytime"}
    document = await ask(url, "named/estimate", **first, **asked)
    known = {one["value"]: numbers(one, "share", "low", "high") for one in document["distribution"]}
    oldest = (await drawn_windows(page))[-1]
    assert len(oldest.pop("")) == len(oldest) == 4
    assert oldest.keys() <= known.keys()
    for name, told in oldest.items():
        assert told == pytest.approx(known[name], rel=1e-5)
    await expect(page.locator("#time-bounds")).to_contain_text("for all values together")


async def test_a_young_window_does_not_hide_those_before_it(page: Page, url: str) -> None:
    def withhold_the_young(document: dict[str, Any]) -> None:
        if document["n"] < 100:
            kept = ("collection", "fingerprint", "window", "n", "final")
            for key in document.keys() - kept:
                del document[key]
            document["withheld"] = True

    await change_answers(page, "**/named/estimate?*", withhold_the_young)
    await open_view(page, url, "named", "time")
    await expect(page.locator("#withheld")).to_be_visible()
    await expect(page.locator("#time-charts canvas")).to_have_count(2)


async def test_a_window_of_long_ago_can_be_shared_and_one_that_is_gone_is_told(
    page: Page, url: str
) -> None:
    oldest = "2026-11-21T10:00:00Z"
    await open_view(page, url, "line", "values", f"&window={oldest}")
    await expect(page.locator("#state-words")).to_contain_text("Sat, Nov 21, 10:00 – 10:01")
    assert await page.input_value("#window") == oldest
    await expect(page.locator("#older")).to_be_disabled()

    async def refuse(route: Route) -> None:
        await route.fulfill(status=410, json={"error": "older reports have expired"})

    long_ago = "2026-11-10T10:00:00Z/2026-11-10T11:00:00Z"
    await page.route("**/line/*?start=2026-11-10*", refuse)
    for gone in ("2026-11-20T10:00:00Z", "never", long_ago):
        await open_view(page, url, "line", "values", f"&window={gone}")
        await expect(page.locator("#instead")).to_contain_text(f"The window of {gone} is not kept")
        await expect(page.locator("#state-words")).to_contain_text("13:24 – 13:25")
    await page.evaluate("location.hash = 'collection=line&view=values'")
    await expect(page.locator("#instead")).to_be_hidden()


async def test_a_collection_that_is_not_there_is_told(page: Page, url: str) -> None:
    for view in ("values", "health"):
        await open_view(page, url, "nope", view, "&window=never")
        told = page.locator("#instead")
        await expect(told).to_have_text("There is no collection nope: showing named.")
        await expect(page.locator("#collection")).to_have_value("named")
    await page.select_option("#collection", "line")
    await expect(told).to_be_hidden()


async def test_an_attribute_that_is_not_there_is_told(page: Page, url: str) -> None:
    told = page.locator("#instead")
    await open_view(page, url, "survey", "values", "&attribute=nope")
    await expect(told).to_have_text("There is no attribute nope: showing answer.")
    await page.select_option("#attribute", "home")
    await expect(told).to_be_hidden()
    await open_view(page, url, "named", "values", "&attribute=home")
    await expect(told).to_have_text("There is no attribute home: showing named.")
    await page.select_option("#collection", "survey")
    await expect(told).to_be_hidden()


async def test_windows_before_the_newest_200_are_reached_one_by_one(page: Page, url: str) -> None:
    await open_view(page, url, "line", "values", "&window=2026-11-21T10:05:00Z")
    await page.click("#older")
    await expect(page.locator("#strip .shown")).to_have_attribute("data-to", "2026-11-21T10:04:00Z")
    await page.click("#newer")
    await expect(page.locator("#strip .shown")).to_have_attribute("data-to", "2026-11-21T10:05:00Z")


async def test_lists_show_what_the_address_says(page: Page, url: str) -> None:
    await open_view(page, url, "line", "values", "&method=magic&top=7")
    assert (await page.input_value("#method"), await page.input_value("#top")) == ("", "all")
    await expect(page.locator("#problem")).to_be_hidden()
    await page.evaluate("location.hash = 'collection=line&view=values&method=bernstein&top=10'")
    await expect(page.locator("#bounds")).to_contain_text("method bernstein")
    await expect(page.locator("#value-rows tbody tr")).to_have_count(10)
    assert (await page.input_value("#method"), await page.input_value("#top")) == (
        "bernstein",
        "10",
    )


async def test_bounds_say_what_they_hold_for(page: Page, url: str) -> None:
    await open_view(page, url, "line", "values")
    await expect(page.locator("#bounds")).to_contain_text("for all values together")
    await expect(page.locator("#ranges")).to_contain_text("Bounds hold for all ranges together.")
    await open_view(page, url, "line", "cumulative")
    said = page.locator("#cdf-bounds")
    await expect(said).to_contain_text("for the 64 shares below together")
    await expect(said).to_contain_text("drawn between 64 of them")


async def test_a_collection_without_reports_shows_none_of_the_one_before(
    page: Page, url: str
) -> None:
    await open_view(page, url, "line", "values")
    await page.select_option("#collection", "empty")
    await expect(page.locator("#waiting")).to_contain_text("No reports have been counted")
    await expect(page.locator("#facts")).to_be_hidden()
    await expect(page.locator("#value-rows")).to_be_hidden()


async def test_of_many_windows_the_newest_have_bars_and_those_around_an_older_one(
    page: Page, url: str
) -> None:
    wanted = "2026-11-21T11:00:00Z"
    for window, place in (("live", 47), (wanted, 24)):
        await open_view(page, url, "line", "values", f"&window={window}")
        classes = await page.locator("#strip span").evaluate_all("all => all.map(b => b.className)")
        assert ["shown" in one for one in classes] == [at == place for at in range(48)]
    await expect(page.locator("#strip .shown")).to_have_attribute("data-to", wanted)


async def test_nothing_is_older_than_the_only_window(page: Page, url: str) -> None:
    await open_view(page, url, "only", "values")
    await expect(page.locator("#older")).to_be_disabled()
    await expect(page.locator("#newer")).to_be_disabled()


async def test_the_page_opens_on_the_newest_final_window_and_back_works(
    page: Page, url: str
) -> None:
    await page.goto(f"{url}/#collection=named&view=values")
    await drawn(page, "values")
    known = (await ask(url, "named/windows"))["windows"]
    newest = ([one for one in known if one["final"]] or known)[-1]
    await expect(page.locator("#n")).to_have_text(f"{newest['n']:,}")
    await page.click("#tab-time")
    await drawn(page, "time")
    drawn_lines = await lines(page)
    assert [unquote(part) for part in page.url.split("&") if part.startswith("lines=")]
    await page.go_back()
    await expect(page.locator("#values")).to_be_visible()
    await page.go_forward()
    await drawn(page, "time")
    assert await lines(page) == drawn_lines


async def test_a_page_that_pauses_counts_what_it_does_not_draw(
    page: Page, url: str, pipeline: Pipeline
) -> None:
    await open_view(page, url, "line", "values")
    await expect(page.locator("#live")).to_have_text("Live")
    await page.keyboard.press("p")
    await expect(page.locator("#pause")).to_have_attribute("aria-pressed", "true")
    # What the page asked for before the pause, it still draws.
    await page.wait_for_timeout(1_000)
    before = await page.locator("#n").inner_text()
    newest = (await ask(url, "line/windows"))["windows"][-1]["window"]["start"]
    moment = int(datetime.fromisoformat(newest).timestamp() * 1000)
    pipeline.collections["line"].report(0, [7] * 50, times_ms=[moment] * 50)
    await expect(page.locator("#pause")).to_contain_text("waiting")
    assert await page.locator("#n").inner_text() == before
    await page.click("#pause")
    await expect(page.locator("#n")).not_to_have_text(before)


async def test_what_is_shown_is_saved_as_a_file(page: Page, url: str, tmp_path: Path) -> None:
    await open_view(page, url, "line", "values")
    async with page.expect_download() as saving:
        await page.click("#save-csv")
    saved = await saving.value
    assert saved.suggested_filename.startswith("line-")
    await saved.save_as(tmp_path / "saved.csv")
    text = (tmp_path / "saved.csv").read_text()
    assert text.startswith("collection,start,end,n")
    assert len(text.splitlines()) > len(await rows(page, "#value-rows"))


async def test_a_file_that_is_refused_says_why(page: Page, url: str) -> None:
    await open_view(page, url, "line", "values")
    refusal = {"error": "start: expected a later time"}
    await page.route("**/estimate*format=csv*", lambda r: r.fulfill(status=410, json=refusal))
    await page.click("#save-csv")
    said = page.locator("#not-saved")
    await expect(said).to_have_text("Not saved: start: expected a later time")
    await page.unroute("**/estimate*format=csv*")
    async with page.expect_download():
        await page.click("#save-csv")
    await expect(said).to_be_empty()


async def test_the_picture_has_all_charts_of_the_view(page: Page, url: str, tmp_path: Path) -> None:
    await open_view(page, url, "modes", "time")
    sizes = await page.locator("#time-charts canvas").evaluate_all(
        "all => all.map(({width, height}) => [width, height])"
    )
    assert len(sizes) == 2
    async with page.expect_download() as saving:
        await page.click("#save-png")
    saved = await saving.value
    assert saved.suggested_filename.endswith(".png")
    await saved.save_as(tmp_path / "saved.png")
    # The header: width and height follow the signature, and the length and name of a chunk.
    width, height = struct.unpack(">II", (tmp_path / "saved.png").read_bytes()[16:24])
    assert width == max(width for width, _ in sizes)
    assert height == sum(height for _, height in sizes)


async def test_records_are_shown_one_attribute_at_a_time(page: Page, url: str) -> None:
    await open_view(page, url, "survey", "values")
    known = await page.locator("#attribute option").all_inner_texts()
    assert known == ["answer", "home"]
    answer = await ask(url, "survey/estimate", attribute="answer")
    shown = await rows(page, "#value-rows")
    assert [row[0] for row in shown] == [one["value"] for one in answer["distribution"]]
    assert shown[0][1] == answer["distribution"][0]["share"]
    await expect(page.locator("#state-words")).to_contain_text("about answer of 400 reports")
    await expect(page.locator("#problem")).to_be_hidden()
    await expect(page.locator("#tab-map")).to_be_hidden()
    await page.select_option("#attribute", "home")
    await expect(page.locator("#state-words")).to_contain_text("about home of 400 reports")
    await expect(page.locator("#value-rows tbody tr")).to_have_count(6)
    await page.locator("#tab-map").click()
    await drawn(page, "map")
    await open_view(page, url, "survey", "time", "&attribute=answer")
    await expect(page.locator("#lines button")).to_have_count(2)
    await open_view(page, url, "named", "values", "&window=2026-11-21T10:01:00Z")
    await expect(page.locator("#attribute-part")).to_be_hidden()
