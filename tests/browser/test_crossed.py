"""The two-way table of a pair of attributes: the API's numbers, keys, both themes, a phone."""

from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.looking import ask, drawn, numbers
from tests.browser.showing import EACH
from tests.browser.test_accessible import violations
from tests.stream.serving import MINUTE_MS, START_MS, Pipeline, serve_collections

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOMES, FLOORS = ["owned", "rented", "shared"], 11
HABITS: dict[str, Any] = {
    "mechanism": "subset-selection",
    "epsilon": 4.0,
    "domain": {
        "attributes": {"home": {"values": HOMES}, "floor": {"size": FLOORS}},
        "pairs": [["home", "floor"]],
    },
    **EACH,
}
N = 6_000
PATH = "#collection=habits&attribute=home:floor&view=crossed"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pipeline() -> Pipeline:
    """Give a final window: half of all rent on floor 2, the others live anywhere."""
    rng, pipeline = np.random.default_rng(7), serve_collections({"habits": HABITS})
    home, floor = rng.integers(3, size=N), rng.integers(FLOORS, size=N)
    home[: N // 2], floor[: N // 2] = 1, 2
    records = [{"home": HOMES[h], "floor": int(f)} for h, f in zip(home, floor, strict=True)]
    pipeline.collections["habits"].report(0, records, times_ms=[START_MS] * N)
    pipeline.collections["habits"].close(START_MS + MINUTE_MS)
    return pipeline


async def open_table(page: Page, url: str) -> None:
    await page.goto("about:blank")
    await page.goto(f"{url}/{PATH}")
    await drawn(page, "crossed")


async def test_every_cell_has_the_numbers_of_the_api(page: Page, url: str) -> None:
    await open_table(page, url)
    asked = {"attribute": "home:floor", "top": "all", "simultaneous": "true"}
    document = await ask(url, "habits/estimate", method="padded", **asked)
    bounds = {
        tuple(one["value"]): numbers(one, "share", "low", "high")
        for one in document["distribution"]
    }
    heads = await page.locator("#crossed-rows thead th").all_inner_texts()
    assert heads == ["home by floor", *map(str, range(FLOORS))]
    assert await page.locator("#crossed-rows tbody th").all_inner_texts() == HOMES
    for row, home in enumerate(HOMES):
        cells = page.locator(f"#crossed-rows tbody tr:nth-child({row + 1}) td")
        assert await cells.count() == FLOORS
        shown = await cells.evaluate_all(
            "all => all.map(cell => [...cell.querySelectorAll('data')].map(one => +one.value))"
        )
        assert shown == [bounds[home, floor] for floor in range(FLOORS)]
    await expect(page.locator("#crossed-bounds")).to_contain_text("for all cells together")
    await expect(page.locator("#crossed-sum")).to_contain_text("[rented, 2]")


async def test_only_cells_that_are_not_empty_have_a_colour(page: Page, url: str) -> None:
    await open_table(page, url)
    await page.emulate_media(color_scheme="light")
    script = """all => all.map(cell =>
      [+cell.querySelectorAll('data')[1].value, cell.style.background])"""
    cells = page.locator("#crossed-rows td")
    light = await cells.evaluate_all(script)
    assert {low > 0 for low, _ in light} == {True, False}
    assert all((low > 0) == (colour != "") for low, colour in light)
    told = cells.nth(FLOORS + 2)
    before = await told.evaluate("cell => getComputedStyle(cell).backgroundColor")
    await page.emulate_media(color_scheme="dark")
    await expect(told).not_to_have_css("background-color", before)
    dark = await cells.evaluate_all(script)
    assert [low for low, _ in dark] == [low for low, _ in light]
    assert light[FLOORS + 2][1] != dark[FLOORS + 2][1]
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)
        assert await violations(page) == []


async def test_arrow_keys_move_from_cell_to_cell(page: Page, url: str) -> None:
    await open_table(page, url)
    said, focused = page.locator("#tip"), page.locator("#crossed-rows td:focus")
    await page.focus('#crossed-rows td[tabindex="0"]')
    await expect(said).to_contain_text("home owned, floor 0")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        await page.keyboard.press(key)
    await expect(said).to_contain_text("home rented, floor 2")
    shown = await page.locator("#tip data").evaluate_all("all => all.map(d => +d.value)")
    cell = await focused.locator("data").evaluate_all("all => all.map(d => +d.value)")
    assert shown == cell
    await page.keyboard.press("End")
    await page.keyboard.press("PageDown")
    await expect(said).to_contain_text(f"home shared, floor {FLOORS - 1}")
    # One cell is in the tab order: the one that was left.
    assert await page.locator('#crossed-rows td[tabindex="0"]').count() == 1
    await page.keyboard.press("Tab")
    assert await focused.count() == 0


async def test_other_attributes_have_no_such_table(page: Page, url: str) -> None:
    await page.goto(f"{url}/#collection=habits&attribute=home&view=crossed")
    await drawn(page, "values")
    await expect(page.locator("#tab-crossed")).to_be_hidden()
    await page.select_option("#attribute", "home:floor")
    await expect(page.locator("#tab-crossed")).to_be_visible()


async def test_a_phone_shows_cells_with_their_titles(page: Page, url: str) -> None:
    await page.set_viewport_size({"width": 320, "height": 640})
    await open_table(page, url)
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    title = (
        await page.locator("#crossed-rows td")
        .nth(2)
        .evaluate("cell => getComputedStyle(cell, '::before').content")
    )
    assert title.startswith('"2 ')
    assert await violations(page) == []
