"""Over time, all picked lines are in one chart: told apart, bounded, and at most four."""

import re
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.looking import ask, drawn, lines, open_view

pytestmark = pytest.mark.asyncio(loop_scope="session")

COLOURS = {
    "light": ["#1a5fb4", "#b3450f", "#00806a", "#17202b"],
    "dark": ["#74b3f5", "#ff9a52", "#9fe3a0", "#ffffff"],
}
# What is drawn: texts with their colours and places, points with theirs, and dashed strokes.
_RECORD = """
window.drawnOnCanvas = {texts: [], points: [], dashed: 0};
const pen = CanvasRenderingContext2D.prototype;
const {fillText, fill, stroke} = pen;
pen.fillText = function (text, x, y) {
  drawnOnCanvas.texts.push({text, x, y, colour: this.fillStyle});
  return fillText.apply(this, arguments);
};
pen.fill = function (path) {
  if (path) drawnOnCanvas.points.push([this.strokeStyle, this.fillStyle]);
  return fill.apply(this, arguments);
};
pen.stroke = function () {
  if (String(this.getLineDash()) === "3,3") drawnOnCanvas.dashed += 1;
  return stroke.apply(this, arguments);
};
"""


async def on_canvas(page: Page) -> dict[str, Any]:
    """Return what was drawn since this was asked last."""
    found: dict[str, Any] = await page.evaluate(
        """() => {
          const found = drawnOnCanvas;
          window.drawnOnCanvas = {texts: [], points: [], dashed: 0};
          return found;
        }"""
    )
    return found


async def test_a_fifth_line_is_refused_in_a_sentence_and_picks_stay(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "time")
    first = await lines(page)
    assert len(first) == 4
    await page.select_option("#add-line", "tram")
    said = page.locator("#lines-full[role=status]")
    await expect(said).to_have_text("At most 4 lines are drawn: remove one to add tram.")
    assert await lines(page) == first
    assert await page.input_value("#add-line") == ""
    await page.locator("#lines button").nth(1).click()
    await expect(page.locator("#lines button")).to_have_count(3)
    await expect(said).to_be_hidden()
    await page.select_option("#add-line", "tram")
    await expect(page.locator("#lines button")).to_have_count(4)
    picked = [first[0], *first[2:], "tram"]
    assert await lines(page) == picked
    assert unquote(page.url).replace("+", " ").count('"tram"]') == 1
    await page.reload()
    await drawn(page, "time")
    assert await lines(page) == picked
    assert await page.locator("#time-charts canvas").count() == 2


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_lines_have_the_colours_of_the_design_a_shape_and_a_label(
    page: Page, url: str, theme: Any
) -> None:
    await page.emulate_media(color_scheme=theme)
    await page.add_init_script(_RECORD)
    await open_view(page, url, "modes", "time")
    names = await lines(page)
    found = await on_canvas(page)
    labels = {one["text"]: one for one in found["texts"] if one["text"] in names}
    assert [labels[name]["colour"] for name in names] == COLOURS[theme]
    assert len({one["x"] for one in labels.values()}) == 1
    heights = sorted(one["y"] for one in labels.values())
    assert all(high - low > 25 for low, high in pairwise(heights))
    paths = await page.locator("#lines path").evaluate_all("all => all.map(p => p.outerHTML)")
    assert len(set(paths)) == 4


async def test_on_paper_charts_are_whole_and_marks_are_filled(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "time")
    await page.emulate_media(media="print")
    await expect(page.locator("#tabs")).to_be_hidden()
    # Scripts do not run between the layout for paper and printing: charts are not drawn again.
    narrow = """hosts => hosts.map(host => {
      host.style.width = "400px";
      return [...host.querySelectorAll("canvas, .u-wrap")].map(one => one.offsetWidth);
    })"""
    widths = await page.locator("#time-charts > *").evaluate_all(narrow)
    assert widths == [[400, 400]] * 2
    exact = "one => getComputedStyle(one).printColorAdjust"
    for mark in await page.locator(".marks i").all():
        assert await mark.evaluate(exact) == "exact"
    await open_view(page, url, "modes", "overview")
    await expect(page.locator("#overview-rows tbody tr")).to_have_count(7)
    # The table of collections begins below its headline, not on the next page.
    assert len(re.findall(rb"/Type\s*/Page\b", await page.pdf(format="A4"))) == 2
    await page.emulate_media(media="screen")


async def test_with_forced_colours_nothing_is_drawn_in_the_colour_of_its_ground(
    page: Page, url: str
) -> None:
    await page.emulate_media(forced_colors="active")
    await open_view(page, url, "modes", "time")
    colours = await page.evaluate("""names => names.map(name => {
      const probe = document.body.appendChild(document.createElement("i"));
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color;
    })""", ["card", "open-ground", "open", "ink", "quiet", "before", "mark"])  # fmt: skip
    card, ground, open_ink, ink, *bars = colours
    assert ground == card != ink == open_ink
    assert len({card, *bars}) == 4, "final, compared and shown windows of the strip are told apart"
    await page.emulate_media(forced_colors="none")


async def test_the_open_window_is_hollow_and_dashed(page: Page, url: str) -> None:
    await page.emulate_media(color_scheme="light")
    await page.add_init_script(_RECORD)
    await open_view(page, url, "modes", "time", '&lines=["walk","bus"]')
    found = await on_canvas(page)
    # Seven windows are final; a chart may be drawn several times.
    for colour in COLOURS["light"][:2]:
        fills = [fill for line, fill in found["points"] if line == colour]
        assert fills[:8] == [colour] * 7 + ["#ffffff"]
    assert found["dashed"] % 3 == 0
    assert found["dashed"] > 0
    assert {one["text"] for one in found["texts"]} >= {"open", "walk", "bus", "reports"}


async def test_a_window_that_is_withheld_is_marked_and_lines_go_past_it(
    page: Page, url: str
) -> None:
    windows = (await ask(url, "modes/windows"))["windows"]

    async def withhold(route: Route) -> None:
        answer = await route.fetch()
        document = await answer.json()
        starts = document["points"]["start"]
        if windows[3]["window"]["start"] in starts:
            at = starts.index(windows[3]["window"]["start"])
            document["points"]["withheld"][at] = True
            for line in document["lines"]:
                line["estimate"][at] = line["low"][at] = line["high"][at] = None
        await route.fulfill(response=answer, json=document)

    await page.route("**/modes/series?*", withhold)
    await page.add_init_script(_RECORD)
    await open_view(page, url, "modes", "time")
    assert "withheld" in [one["text"] for one in (await on_canvas(page))["texts"]]
    await page.focus("#time-charts")
    for _ in range(4):
        await page.keyboard.press("ArrowLeft")
    await expect(page.locator("#tip")).to_contain_text("10:03 – 10:04 withheld, final")
    await page.unroute_all(behavior="wait")


async def test_the_sentence_says_what_rose_and_what_is_not_shown(page: Page, url: str) -> None:
    async def walk_rose(route: Route) -> None:
        answer = await route.fetch()
        document = await answer.json()
        for one in document["values"]:
            if one["value"] == "walk":
                one |= {"change": 0.251, "low": 0.102, "high": 0.4, "told": "rose"}
        await route.fulfill(response=answer, json=document)

    await page.route("**/modes/change?*", walk_rose)
    await open_view(page, url, "modes", "time", '&lines=["walk","tram"]')
    await expect(page.locator("#time-sum")).to_have_text(
        "Since 10:00 walk rose by 25.1 points (10.2 to 40.0); tram: no difference shown."
    )
    await page.unroute_all(behavior="wait")


async def test_the_span_is_chosen_as_a_time_and_kept_in_the_address(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "time", "&last=7")
    spans = page.locator("#spans button")
    texts = ["24 min", "1 h", "1 d", "7 d", "30 d", "all"]
    assert await spans.all_inner_texts() == texts
    pressed = page.locator("#spans [aria-pressed=true]")
    await expect(pressed).to_have_text("24 min")  # 7 is none of them.
    await spans.nth(2).click()
    await expect(pressed).to_have_text("1 d")
    assert "last=day" in page.url
    await page.reload()
    await expect(pressed).to_have_text("1 d")
    await page.go_back()
    await expect(pressed).to_have_text("24 min")
