"""Names and sizes that nobody expects: markup, marks of direction, 10,000 values, one report."""

import re
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.browser.looking import open_modules, open_view, rows
from tests.browser.test_habits import speaking
from tests.stream.serving import MINUTE_MS, START_MS, Pipeline, serve_collections, stopped_clock

pytestmark = pytest.mark.asyncio(loop_scope="session")

MARKUP = "<script>document.title = 'run'</script>"
BUS = "حافلة"
TURNED = "\u202e3 of 10"
VALUES = [MARKUP, BUS, TURNED, "x" * 200]
TITLE = "<img src=x onerror=\"document.title = 'run'\">"
_EACH: dict[str, Any] = {
    "epsilon": 4.0,
    "partitions": 1,
    "minimum": 1,
    "window": {"size": "1m", "retention": "1h", "grace": "0s"},
}
TABLES: dict[str, dict[str, Any]] = {
    "named": {
        **_EACH,
        "title": TITLE,
        "unit": "<b>",
        "mechanism": "randomized-response",
        "domain": {"values": VALUES},
        "publish": {"sets": {BUS: [BUS, TURNED]}},
    },
    "many": {
        **_EACH,
        "mechanism": "block-hadamard",
        "domain": {"values": [f"shop {number}" for number in range(10_000)]},
    },
    "one": {**_EACH, "mechanism": "randomized-response", "domain": {"values": ["a", "b"]}},
    "empty": {**_EACH, "mechanism": "block-hadamard", "domain": {"grid": [4, 6]}},
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pipeline() -> Pipeline:
    """Give them: two windows are final, of one report each in `one`, and none in `empty`."""
    served = serve_collections(TABLES)
    served.clock = stopped_clock("2026-11-21T10:03:00Z")
    labels = {"named": [BUS] * 700 + VALUES * 50, "many": ["shop 7"] * 2_000, "one": ["a"]}
    for name, some in labels.items():
        for minute in range(2):
            times = [START_MS + minute * MINUTE_MS] * len(some)
            served.collections[name].report(0, some, times_ms=times, seed=minute)
        served.collections[name].close(START_MS + 2 * MINUTE_MS)
    return served


async def test_names_are_texts_and_turn_no_number_around(page: Page, url: str) -> None:
    shown = {MARKUP, f"\u2068{BUS}\u2069", "\ufffd3 of 10", "x" * 200}
    for view in ("values", "time", "privacy", "health"):
        await open_view(page, url, "named", view, "&window=&compare=before")
        assert await page.title() != "run"
        if view != "values":
            continue
        await expect(page.locator("#compared-sum")).not_to_be_empty()
        assert {row[0] for row in await rows(page, "#value-rows")} >= shown
        said = await page.locator("#values-sum").inner_text()
        assert said.startswith(f"\u2068{BUS}\u2069 leads with ")
        await expect(page.locator("#collection option").first).to_have_text(TITLE)
    await open_view(page, url, "named", "overview")
    row = page.locator("#overview-rows tbody tr").filter(has_text=TITLE)
    await expect(row).to_contain_text(TITLE)
    await expect(row).to_contain_text(f"\u2068{BUS}\u2069 has ")
    assert await page.locator("main img, main script, main b").count() == 0


async def test_few_of_many_values_are_rows_and_one_report_is_told(page: Page, url: str) -> None:
    await open_view(page, url, "many", "values", "&window=")
    await expect(page.locator("#values-sum")).to_contain_text("shop 7 has the largest estimate")
    await expect(page.locator("#value-rows tbody tr")).to_have_count(20)
    await open_view(page, url, "one", "values", "&window=&compare=before")
    await expect(page.locator("#n")).to_have_text("1")
    await expect(page.locator("#values-sum")).to_contain_text("No clear leader")
    await expect(page.locator("#values-sum")).to_contain_text("No difference is shown")


async def test_a_collection_without_windows_is_told_beside_the_others(page: Page, url: str) -> None:
    await open_view(page, url, "empty", "overview")
    row = page.locator("#overview-rows tbody tr").filter(has_text="empty")
    await expect(row.locator(".badge")).to_have_text("Open")
    await expect(row).to_contain_text("none")
    await row.locator("th a").click()
    await expect(page.locator("#waiting")).to_contain_text("No reports have been counted yet")
    await expect(page.locator("#facts")).to_be_hidden()
    await page.click("#all")
    await expect(row).to_be_visible()


async def test_each_number_and_time_in_arabic_digits_stays_in_its_place(
    browser: Browser, url: str
) -> None:
    async with speaking(browser, "ar-EG") as page:
        await open_view(page, url, "named", "overview")
        said = await page.locator("#overview-rows tbody tr").filter(has_text=TITLE).inner_text()
    digits = [run for run in re.split("\u2068[^\u2069]*\u2069", said) if re.search("[٠-٩]", run)]
    assert digits == [], "digits outside of an isolated part turn those around them around"
    assert "٢" in said


@pytest.mark.parametrize(
    ("time", "text"),
    [
        ("2026-10-24T23:30:00Z", "01:30"),
        ("2026-10-25T00:30:00Z", "02:30 GMT+2"),
        ("2026-10-25T01:30:00Z", "02:30 GMT+1"),
        ("2026-10-25T02:30:00Z", "03:30"),
        ("2026-03-29T01:30:00Z", "03:30"),
    ],
)
async def test_hours_that_a_day_has_twice_are_told_apart(
    page: Page, url: str, time: str, text: str
) -> None:
    await open_modules(page, url)
    script = """async time =>
      (await import('/js/format.js')).hourText(Date.parse(time), "Europe/Berlin")"""
    assert await page.evaluate(script, time) == text
