"""Everything can be done without a mouse, and is told to who does not see the screen."""

import pytest
from playwright.async_api import Page, expect

from tests.browser.looking import open_view

pytestmark = pytest.mark.asyncio(loop_scope="session")

FOCUSED = "document.activeElement.id || document.activeElement.className"


async def tab_to(page: Page, script: str, answer: str) -> None:
    """Press Tab until a script of the element that has the focus answers so."""
    for _ in range(30):
        await page.keyboard.press("Tab")
        if await page.evaluate(script) == answer:
            return
    raise AssertionError(f"{answer} is not in the tab order")


async def test_from_the_first_tab_to_a_cell_of_the_map(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "values")
    await page.keyboard.press("Tab")
    assert await page.evaluate(FOCUSED) == "skip"
    await tab_to(page, FOCUSED, "collection")
    # One key: of several, those that come late would begin another word.
    await page.keyboard.type("p")
    await expect(page.locator("#tab-map")).to_be_visible()
    await tab_to(page, FOCUSED, "tab-values")
    await page.keyboard.press("ArrowRight")
    assert await page.evaluate(FOCUSED) == "tab-map"
    await expect(page.locator("#tab-map")).to_have_attribute("aria-selected", "true")
    await expect(page.locator("#map-sum")).not_to_be_empty()
    await tab_to(page, FOCUSED, "map-frame")
    await expect(page.locator("#tip")).to_contain_text("Place [0, 0]")
    for key, place in {
        "ArrowDown": "[1, 0]",
        "ArrowRight": "[1, 1]",
        "PageDown": "[11, 1]",
        "End": "[11, 349]",
        "ArrowUp": "[10, 349]",
        "Home": "[10, 0]",
        "PageUp": "[0, 0]",
    }.items():
        await page.keyboard.press(key)
        await expect(page.locator("#tip strong").first).to_have_text(f"Place {place}")


async def test_tabs_turn_around_at_their_ends(page: Page, url: str) -> None:
    await open_view(page, url, "ages", "values")
    await page.focus("#tab-values")
    for key, tab in (
        ("ArrowLeft", "tab-health"),
        ("ArrowRight", "tab-values"),
        ("End", "tab-health"),
        ("ArrowLeft", "tab-privacy"),
        ("Home", "tab-values"),
        ("ArrowRight", "tab-cumulative"),
    ):
        await page.keyboard.press(key)
        assert await page.evaluate(FOCUSED) == tab
    await expect(page.locator("[role=tabpanel]:visible")).to_have_count(1)
    assert await page.locator("[role=tab][tabindex='0']").count() == 1


async def test_what_is_said_aloud_is_the_state_and_not_every_number(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "values")
    said = page.locator("#announce[aria-live=polite]")
    await expect(said).to_have_text("Window Sat, Nov 21, 10:07 – 10:08 UTC of modes is open.")
    await page.focus("#older")
    await page.keyboard.press("Enter")
    await expect(said).to_have_text(
        "Window Sat, Nov 21, 10:06 – 10:07 UTC of modes is final with 6,226 reports."
    )
    assert await page.locator("#value-rows").evaluate("t => t.closest('[aria-live]')") is None


async def test_charts_have_names_and_tables(page: Page, url: str) -> None:
    for view, chart in (("time", "#time-charts"), ("cumulative", "#cdf-chart")):
        await open_view(page, url, "ages", view)
        assert await page.get_attribute(chart, "role") == "application"
        label = await page.get_attribute(chart, "aria-label") or ""
        assert "arrow keys move" in label
        assert "below" in label


async def test_the_theme_is_chosen_and_kept(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "values")
    ground = "getComputedStyle(document.body).backgroundColor"
    await page.emulate_media(color_scheme="light")
    light = await page.evaluate(ground)
    await page.focus("#theme")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Enter")
    await expect(page.locator("#theme")).to_have_text("☾ dark")
    dark = await page.evaluate(ground)
    assert dark != light
    await page.reload()
    assert await page.evaluate(ground) == dark
    await page.keyboard.press("Tab")
    await page.click("#theme")
    await expect(page.locator("#theme")).to_have_text("◐ auto")
    assert await page.evaluate(ground) == light
