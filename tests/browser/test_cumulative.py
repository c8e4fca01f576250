"""The cumulative view labels its quantiles, and compares them with another window."""

from itertools import pairwise

import pytest
from playwright.async_api import Page, expect

from tests.browser.looking import ask, open_view

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUANTILES = [0.1, 0.5, 0.9]
FINAL = "&window=2026-11-21T10:05:00Z"
_RECORD = """
window.labels = new Map();
window.dashes = [];
const pen = CanvasRenderingContext2D.prototype;
const {fillText, stroke} = pen;
pen.fillText = function (text, x, y) {
  if (text.includes("% up to ") && this.canvas.closest("#cdf-chart")) labels.set(text, y);
  return fillText.apply(this, arguments);
};
pen.stroke = function () {
  if (String(this.getLineDash()) === "5,4") dashes.push(this.strokeStyle);
  return stroke.apply(this, arguments);
};
"""


async def labels(page: Page) -> list[float]:
    """Return the heights of the labels of quantiles in the chart."""
    found: list[float] = await page.evaluate("() => [...labels.values()]")
    return sorted(found)


async def test_quantiles_are_labelled_apart_and_not_on_a_phone(page: Page, url: str) -> None:
    await page.add_init_script(_RECORD)
    await open_view(page, url, "ages", "cumulative", FINAL)
    heights = await labels(page)
    assert len(heights) == len(QUANTILES)
    assert all(high - low > 12 for low, high in pairwise(heights))
    await page.set_viewport_size({"width": 390, "height": 800})
    await open_view(page, url, "ages", "cumulative", FINAL)
    assert await labels(page) == []


async def test_a_compared_window_is_dashed_and_changes_are_the_workers(
    page: Page, url: str
) -> None:
    await page.emulate_media(color_scheme="light")
    await page.add_init_script(_RECORD)
    await open_view(page, url, "ages", "cumulative", f"{FINAL}&compare=before")
    panel = page.locator("#compared")
    await panel.locator("summary").click()
    table = panel.locator("table:not(#compared-rows)")
    said = page.locator("#cdf-bounds")
    await expect(said).to_contain_text("Dashed: Sat, Nov 21, 10:04 – 10:05 UTC.")
    assert set(await page.evaluate("dashes")) == {"#737f8d"}
    then, now = [one["window"] for one in (await ask(url, "ages/windows"))["windows"]][4:6]
    before = {f"before_{name}": time for name, time in then.items()}
    judged = await ask(url, "ages/change", **now, **before, quantile=QUANTILES)
    for one in judged["quantiles"]:
        row = panel.locator("tbody tr").filter(has_text=f"Quantile {one['p']}")
        cell = row.locator("td").last
        shown = "changed by" if one["told"] else "no difference shown"
        await expect(cell).to_contain_text(shown)
        ends = [2 * one[end] for end in ("low", "high")]  # Bins are as wide.
        signed = [f"{'+' if end > 0 else ''}{end:g}".replace("-", "−") for end in ends]
        await expect(cell.locator("small")).to_have_text(" to ".join(signed))
    assert await table.evaluate("it => it.scrollWidth <= it.parentElement.clientWidth")
    await page.keyboard.press("c")
    await expect(panel).to_be_hidden()
