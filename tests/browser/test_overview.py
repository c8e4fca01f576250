"""All collections on one page, and the bars of a collection's windows, as the API tells them."""

import re
from collections import Counter
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.looking import ask, open_view
from tests.browser.showing import TABLES

pytestmark = pytest.mark.asyncio(loop_scope="module")

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
    await expect(page.locator("#state")).to_have_text("Provisional")


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
    asked = {"top": "all", **ALL}
    documents = [await ask(url, "modes/estimate", **window, **asked) for window in finals]
    sums: Counter[str] = Counter()
    for document in documents:
        sums.update({one["value"]: one["share"] for one in document["distribution"]})
    leader = max(sums, key=lambda value: sums[value])

    def entry(document: Any) -> Any:
        return next(one for one in document["distribution"] if one["value"] == leader)

    halves = [
        await ask(url, "modes/estimate", **one, **asked, confidence=0.975) for one in finals[-2:]
    ]
    then, now = map(entry, halves)
    _, state, newest, change, _, counted = shown["modes"]
    assert state[0] == "Waiting"
    assert newest[0] == f"{leader} has {100 * now['share']:.1f}%"
    low, high = 100 * (now["low"] - then["high"]), 100 * (now["high"] - then["low"])
    said = f"{low:+.1f} to {high:+.1f} points".replace("-", "−")
    assert change == ["no difference shown", said]
    assert counted == [f"{documents[-1]['n']:,} reports", "late so far 0", "rejected so far 0"]
    # Bins in two dimensions are said in words, with the digits that tell them apart.
    assert re.match(r"[\d.-]+ to [\d.-]+ × [\d.-]+ to [\d.-]+ has ", shown["spots"][2][0])
    assert await page.locator("#overview-rows .spark").count() == len(TABLES) - 1
