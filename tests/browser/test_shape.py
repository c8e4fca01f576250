"""Pages of long names, large numbers and tall grids, and pages that nobody sees."""

from itertools import pairwise
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, Request, expect

from tests.browser.looking import change_answers, open_view
from tests.stream.serving import MINUTE_MS, START_MS, Pipeline, serve_collections, stopped_clock

pytestmark = pytest.mark.asyncio(loop_scope="session")

LONG = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenverordnung" * 3
_WINDOW: dict[str, Any] = {
    "partitions": 1,
    "minimum": 0,
    "window": {"size": "1m", "retention": "1d"},
}
NAMED: dict[str, Any] = {
    "mechanism": "randomized-response",
    "epsilon": 1.0,
    "domain": {"values": [LONG, "short"]},
    **_WINDOW,
}
INCOMES: dict[str, Any] = {
    "mechanism": "block-hadamard",
    "epsilon": 1.0,
    "domain": {"interval": [0.0, 10_000_000.0], "bins": 16},
    "publish": {"quantiles": [0.5], "ranges": {LONG: [0.0, 5_000_000.0]}},
    "axes": ["income"],
    "unit": "€",
    **_WINDOW,
}
THIRDS: dict[str, Any] = {
    "mechanism": "l1-geometric",
    "epsilon": 1.0,
    "domain": {"interval": [[0.0, 0.7], [-1.0, 1.0]], "bins": [7, 6]},
    "unit": "km",
    **_WINDOW,
}
TALL: dict[str, Any] = {
    "mechanism": "block-hadamard",
    "epsilon": 1.0,
    "domain": {"grid": [60, 5]},
    **_WINDOW,
}
# Of every text that is drawn: the canvas, the text, and from where to where it goes, in pixels.
_RECORD = """
window.drawnTexts = [];
const draw = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  const width = this.measureText(text).width;
  const turn = this.getTransform();
  const at = turn.transformPoint(new DOMPoint(x, y));
  const part = {left: 0, start: 0, center: 0.5, right: 1, end: 1}[this.textAlign];
  // A title along the vertical axis is written upwards.
  const [along, across, room] = turn.b
    ? [at.y, at.x, this.canvas.height] : [at.x, at.y, this.canvas.width];
  window.drawnTexts.push({
    text, y: across, low: along - part * width, high: along + (1 - part) * width, room,
  });
  return draw.apply(this, arguments);
};
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pipeline() -> Pipeline:
    """Collections of long names, of large numbers, and of many rows, one with a long name."""
    served = serve_collections(
        {"named": NAMED, "incomes": INCOMES, "t" * 90: TALL, "thirds": THIRDS}
    )
    served.clock = stopped_clock("2026-11-21T10:03:00Z")
    for minute in range(3):
        times = [START_MS + minute * MINUTE_MS] * 200
        served.collections["named"].report(0, [LONG, "short"] * 100, times_ms=times)
        served.collections["incomes"].report(0, [9e6, 2e6] * 100, times_ms=times)
    served.collections["thirds"].report(0, [[0.1, 0.4]] * 200, times_ms=[START_MS] * 200)
    served.collections["t" * 90].report(0, [[59, 4]] * 200, times_ms=[START_MS] * 200)
    for one in served.collections.values():
        one.close(START_MS + 2 * MINUTE_MS)
    return served


@pytest.mark.parametrize("width", [1280, 320])
async def test_long_names_make_no_view_wider_than_the_screen(
    page: Page, url: str, width: int
) -> None:
    await page.set_viewport_size({"width": width, "height": 800})
    for collection, view in (
        ("named", "values"), ("named", "time"), ("incomes", "values"), ("incomes", "time"),
    ):  # fmt: skip
        await open_view(page, url, collection, view)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, view


@pytest.mark.parametrize(
    ("collection", "view", "chart", "texts_there"),
    [
        ("incomes", "cumulative", "#cdf-chart", {"10,000,000", "income, €"}),
        ("incomes", "time", "#time-charts .chart-host:last-child", {"reports"}),
        ("incomes", "time&lines=['Quantile 0.5']", "#time-charts", {"income, €"}),
        ("thirds", "map", "#map-frame", {"−0.33", "0.1", "second coordinate, km"}),
    ],
)
async def test_numbers_at_axes_are_whole_and_apart_and_axes_have_units(
    page: Page, url: str, collection: str, view: str, chart: str, texts_there: set[str]
) -> None:
    await page.add_init_script(_RECORD)
    await page.set_viewport_size({"width": 390, "height": 844})
    view, _, lines = view.partition("&")
    await open_view(page, url, collection, view, f"&window=live&{lines}".replace("'", '"'))
    await expect(page.locator(f"{chart} canvas").last).to_be_visible()
    texts: list[dict[str, Any]] = await page.evaluate("window.drawnTexts")
    assert texts_there <= {one["text"] for one in texts}
    for one in texts:
        assert 0 <= one["low"] <= one["high"] <= one["room"], one
    for one, other in pairwise(texts):
        assert one["y"] != other["y"] or one["high"] < other["low"], (one, other)


async def test_a_tall_grid_is_seen_at_once(page: Page, url: str) -> None:
    await open_view(page, url, "t" * 90, "map")
    box = await page.locator("#map-canvas").bounding_box()
    assert box is not None
    assert box["height"] <= 0.66 * 900
    # The long name leaves room for the other controls in its line.
    tops = [await page.locator(name).bounding_box() for name in ("#collection", "#pause")]
    assert len({box and box["y"] for box in tops}) == 1


@pytest.mark.parametrize("width", [390, 320])
async def test_on_a_phone_the_head_is_short_and_the_sentence_begins_within_200_pixels(
    page: Page, url: str, width: int
) -> None:
    await page.set_viewport_size({"width": width, "height": 844})
    for view in ("values", "cumulative", "time", "privacy"):
        await open_view(page, url, "incomes", view, "&window=2026-11-21T10:01:00Z")
        await expect(page.locator("#age")).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        boxes = [
            await page.locator(name).bounding_box()
            for name in ("#all", "#collection", "#age", "#pause", "#theme")
        ]
        for one, other in pairwise(boxes):
            assert one is not None
            assert other is not None
            # One row, side by side, of controls that a finger hits.
            assert one["x"] + one["width"] <= other["x"]
            assert max(one["y"], other["y"]) < min(
                one["y"] + one["height"], other["y"] + other["height"]
            )
        for name in ("#collection", "#pause", "#theme", "#window", "#older", "#tab-values"):
            box = await page.locator(name).bounding_box()
            assert box is not None
            assert box["height"] >= 40, name
        sentence = page.locator(f"#{view} .sentence")
        lines = await sentence.evaluate("""one => {
          const range = document.createRange();
          range.selectNodeContents(one);
          return [...range.getClientRects()].map(({ bottom }) => bottom);
        }""")
        assert lines[0] <= 200, view
        tabs = await page.locator("#tabs").bounding_box()
        assert tabs is not None
        assert lines[-1] <= tabs["y"]


async def test_the_title_says_what_is_shown(page: Page, url: str) -> None:
    await open_view(page, url, "named", "time")
    await expect(page).to_have_title("named: Over time · ldpstream")


async def test_a_page_that_is_hidden_asks_nothing_until_it_is_seen(
    page: Page, url: str, pipeline: Pipeline
) -> None:
    await page.add_init_script(
        "window.seen = 'visible';"
        "Object.defineProperty(document, 'visibilityState', {get: () => window.seen});"
    )
    await open_view(page, url, "named", "values")
    await expect(page.locator("#live")).to_have_text("Live")
    await page.evaluate("window.seen = 'hidden'")
    asked: list[Request] = []
    page.on("request", lambda one: asked.append(one))
    # Long enough for an event and the poll after it: a page that is seen asks at both.
    times = [START_MS + 2 * MINUTE_MS] * 50
    for seed in range(4):
        pipeline.collections["named"].report(0, ["short"] * 50, times_ms=times, seed=seed)
        await page.wait_for_timeout(600)
    assert asked == []
    await page.evaluate(
        "window.seen = 'visible'; document.dispatchEvent(new Event('visibilitychange'))"
    )
    await expect(page.locator("#n")).to_have_text("400")


async def test_a_window_that_is_counted_again_is_asked_for_again(page: Page, url: str) -> None:
    """As after `ldpstream reset`: the same final window, with other reports."""
    await open_view(page, url, "named", "time")
    first = "start=2026-11-21T10%3A00%3A00Z"

    def other(body: dict[str, Any]) -> None:
        body["windows"][0]["n"] += 1

    await change_answers(page, "**/named/windows*", other)
    async with page.expect_request(lambda asked: first in asked.url):
        await page.select_option("#method", "normal")
