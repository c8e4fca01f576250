"""One tooltip for all charts: the same by pointer, keyboard and tap, with one cursor a view."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE_MS
from tests.browser.looking import ask, numbers, open_view
from tests.browser.showing import report
from tests.browser.test_accessible import violations
from tests.stream.serving import Pipeline

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHARTS = (
    ("modes", "time", "#time-charts", "ArrowLeft"),
    ("ages", "cumulative", "#cdf-chart", "ArrowRight"),
    ("modes", "values", "#value-rows", "ArrowDown"),
    ("places", "map", "#map-frame", "ArrowDown"),
)

_TIP = "#tip", "#tip-said"
"""What a tooltip adds to a view and its chart; test_accessible looks at all the rest."""


@asynccontextmanager
async def touched(browser: Browser, width: int, height: int) -> AsyncIterator[Page]:
    """Give a page on a screen that takes taps."""
    context = await browser.new_context(
        viewport={"width": width, "height": height}, has_touch=True, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE_MS)
    yield await context.new_page()
    await context.close()


async def place_of(page: Page, host: str) -> tuple[float, float]:
    """Return where the cursor is that the keyboard has moved, in the browser window."""
    script = """host => {
      const mark = host.querySelector(".cursor, .pointed .bar, #map-cursor");
      const {left, width, top, height} = mark.getBoundingClientRect();
      return [left + width / 2, top + height / 2];
    }"""
    x, y = await page.locator(host).evaluate(script)
    return x, y


@pytest.mark.parametrize(("collection", "view", "host", "key"), CHARTS)
async def test_pointing_focus_and_a_tap_show_the_same(
    browser: Browser, url: str, collection: str, view: str, host: str, key: str
) -> None:
    async with touched(browser, 1280, 900) as page:
        await open_view(page, url, collection, view)
        tip = page.locator("#tip")
        await expect(tip).to_be_hidden()
        await page.focus(host)
        for _ in range(3):
            await page.keyboard.press(key)
        focused = await tip.inner_text()
        assert len(focused) > 20
        title = await tip.locator("strong").first.inner_text()
        assert (await page.locator("#tip-said").inner_text()).startswith(title)
        x, y = await place_of(page, host)
        await page.keyboard.press("Escape")
        await expect(tip).to_be_hidden()
        await page.mouse.move(x, y)
        assert await tip.inner_text() == focused
        await page.mouse.move(1, 1)
        await page.evaluate("document.activeElement.blur()")
        await expect(tip).to_be_hidden()
        await page.touchscreen.tap(x, y)
        assert await tip.inner_text() == focused


async def test_all_panels_of_a_view_share_the_cursor(page: Page, url: str) -> None:
    await open_view(page, url, "ages", "time", '&lines=["under 18","Quantile 0.5"]')
    await page.focus("#time-charts")
    await page.keyboard.press("ArrowLeft")
    cursors = page.locator("#time-charts .cursor")
    lefts = await cursors.evaluate_all("all => all.map(c => c.getBoundingClientRect().left)")
    assert len(lefts) == 3
    assert max(lefts) - min(lefts) < 1
    # A ring around each line's point.
    assert await page.locator("#time-charts .cursor i").count() == 2
    await page.emulate_media(color_scheme="dark")
    assert await page.locator("#time-charts .cursor:visible").count() == 3


async def test_the_numbers_of_the_tooltip_are_those_of_the_api(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "time", '&lines=["walk"]')
    await page.focus("#time-charts")
    newest = (await ask(url, "modes/windows"))["windows"][-1]
    asked = {"top": "all", "simultaneous": "true", "method": "anytime"}
    document = await ask(url, "modes/estimate", **newest["window"], **asked)
    walk = next(one for one in document["distribution"] if one["value"] == "walk")
    share, low, high = (f"{100 * one:.1f}%" for one in numbers(walk, "share", "low", "high"))
    tip = page.locator("#tip")
    await expect(tip).to_contain_text(f"walk{share}{low} to {high}")
    await expect(tip).to_contain_text(f"open · {newest['n']:,} reports")


async def test_the_exact_number_is_told_of_a_figure_that_is_pointed_at(
    page: Page, url: str, pipeline: Pipeline
) -> None:
    await open_view(page, url, "smokers", "values")
    figure = page.locator("#value-rows data").first
    assert await figure.get_attribute("title") is None
    await figure.hover()
    exact = str(await figure.get_attribute("value"))
    await expect(figure).to_have_attribute("title", exact)
    report(pipeline.collections["smokers"], 7, 2000, seed=61)
    await expect(figure).not_to_have_attribute("value", exact)
    await expect(figure).to_have_attribute("title", str(await figure.get_attribute("value")))


async def test_escape_ends_it_and_enter_opens_the_window(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "time", "&window=")
    tip = page.locator("#tip")
    await page.focus("#time-charts")
    await expect(tip).to_contain_text("10:07 – 10:08")
    await page.keyboard.press("Escape")
    await expect(tip).to_be_hidden()
    assert await page.locator(".cursor:visible").count() == 0
    await page.keyboard.press("Home")
    await expect(tip).to_contain_text("10:00 – 10:01")
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("Enter")
    await expect(page.locator("#state-words")).to_contain_text("10:01 – 10:02")
    await expect(page.locator("#value-rows")).to_be_visible()
    await expect(tip).to_be_hidden()
    await page.go_back()
    await expect(page.locator("#state-words")).to_contain_text("10:06 – 10:07")
    await page.focus("#time-charts")
    await page.keyboard.press("Home")
    await expect(tip).to_contain_text("10:00 – 10:01")
    await page.keyboard.press("c")
    await expect(page.locator("#value-rows td.difference").first).to_be_visible()
    assert await page.input_value("#compare") == "2026-11-21T10:00:00Z"


async def test_live_numbers_change_it_without_being_announced(
    page: Page, url: str, pipeline: Pipeline
) -> None:
    await open_view(page, url, "modes", "time")
    await expect(page.locator("#live")).to_have_text("Live")
    await page.focus("#time-charts")
    before = await page.locator("#tip").inner_text()
    said = page.locator("#tip-said[aria-live=polite]")
    await expect(said).to_contain_text("10:07 – 10:08, open")
    await page.evaluate(
        """() => {
          window.announced = 0;
          new MutationObserver(seen => { window.announced += seen.length; })
            .observe(document.querySelector("#tip-said"), {childList: true, subtree: true});
        }"""
    )
    report(pipeline.collections["modes"], 7, 2000, seed=41)
    newest = (await ask(url, "modes/windows"))["windows"][-1]
    await expect(page.locator("#tip")).to_contain_text(f"{newest['n']:,} reports")
    assert await page.locator("#tip").inner_text() != before
    assert await page.evaluate("window.announced") == 0
    await page.keyboard.press("ArrowLeft")
    await expect(said).to_contain_text("10:06 – 10:07, final")


async def test_on_a_phone_it_is_a_sheet_at_the_bottom(browser: Browser, url: str) -> None:
    async with touched(browser, 390, 844) as page:
        for collection, view, host, _ in CHARTS:
            await open_view(page, url, collection, view)
            chart = page.locator(f"{host} .bar" if view == "values" else host).first
            await chart.scroll_into_view_if_needed()
            await chart.tap(position={"x": 150, "y": 15} if view == "values" else None)
            tip = page.locator("#tip")
            box = await tip.bounding_box()
            assert box is not None, view
            assert (box["x"], box["width"]) == (0, 390)
            assert box["y"] + box["height"] == pytest.approx(844, abs=1)
            assert await page.evaluate("document.documentElement.scrollWidth") <= 390
            assert await violations(page, host, *_TIP) == []
            await tip.tap()
            await expect(tip).to_be_hidden()


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_with_a_tooltip_no_view_has_serious_violations(
    page: Page, url: str, theme: str
) -> None:
    await page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    for collection, view, host, key in CHARTS:
        await open_view(page, url, collection, view)
        await page.focus(host)
        await page.keyboard.press(key)
        await expect(page.locator("#tip")).to_be_visible()
        assert await violations(page, host, *_TIP) == [], view
