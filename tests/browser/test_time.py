"""Over time, all picked lines are in one chart, at most four; CSV and JSON hold what is drawn."""

import asyncio
import csv
import io
import json
import re
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.looking import ask, change_answers, drawn, lines, open_modules, open_view
from tests.browser.showing import MODES, report
from tests.stream.serving import MINUTE_MS, START_MS, serve, serve_collections

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
    assert len({card, *bars}) == 4, (
        "the strip has a colour for final windows, one for compared and one for shown ones"
    )
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

    def withhold(document: dict[str, Any]) -> None:
        starts = document["points"]["start"]
        if windows[3]["window"]["start"] in starts:
            at = starts.index(windows[3]["window"]["start"])
            document["points"]["withheld"][at] = True
            for line in document["lines"]:
                line["estimate"][at] = line["low"][at] = line["high"][at] = None

    await change_answers(page, "**/modes/series?*", withhold)
    await page.add_init_script(_RECORD)
    await open_view(page, url, "modes", "time")
    assert "withheld" in [one["text"] for one in (await on_canvas(page))["texts"]]
    await page.focus("#time-charts")
    for _ in range(4):
        await page.keyboard.press("ArrowLeft")
    await expect(page.locator("#tip")).to_contain_text("10:03 – 10:04 withheld, final")


async def test_the_sentence_says_what_rose_and_what_is_not_shown(page: Page, url: str) -> None:
    def walk_rose(document: dict[str, Any]) -> None:
        for one in document["values"]:
            if one["value"] == "walk":
                one |= {"change": 0.251, "low": 0.102, "high": 0.4, "told": "rose"}

    await change_answers(page, "**/modes/change?*", walk_rose)
    await open_view(page, url, "modes", "time", '&lines=["walk","tram"]')
    await expect(page.locator("#time-sum")).to_have_text(
        "Since 10:00 walk rose by 25.1 points (10.2 to 40.0); tram: no difference shown."
    )


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


@pytest_asyncio.fixture(loop_scope="session")
async def closed_url() -> AsyncIterator[str]:
    """Serve a collection whose windows are all final."""
    pipeline = serve_collections({"modes": MODES})
    served = pipeline.collections["modes"]
    for minute in range(3):
        report(served, minute, 500, seed=minute)
    served.close(START_MS + 3 * MINUTE_MS)
    async with serve(pipeline) as started:
        yield started


async def saved(page: Page) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    """Save both files, and return the records of CSV and of JSON."""
    texts = {}
    for form in ("csv", "json"):
        async with page.expect_download() as saving:
            await page.click(f"#save-{form}")
        file = await saving.value
        assert file.suggested_filename.endswith(f"-lines.{form}")
        texts[form] = await asyncio.to_thread(Path(await file.path()).read_bytes)
    return list(csv.DictReader(io.StringIO(texts["csv"].decode()))), json.loads(texts["json"])


async def test_files_say_what_lines_show_with_bounds_and_method(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "time", '&lines=["walk","bus"]')
    rows, records = await saved(page)
    windows = (await ask(url, "modes/windows"))["windows"]
    assert [(one["start"], one["line"]) for one in records] == [
        (one["window"]["start"], line) for one in windows for line in ("walk", "bus")
    ]
    first = await ask(url, "modes/estimate", **windows[0]["window"], top="all", simultaneous="true")
    walk = next(one for one in first["distribution"] if one["value"] == "walk")
    told = [walk[name] for name in ("share", "low", "high")]
    assert [records[0][name] for name in ("value", "low", "high")] == pytest.approx(told, rel=1e-5)
    names = ("n", "method", "confidence")
    assert [records[0][name] for name in names] == [first[name] for name in names]
    assert [one["final"] for one in records] == [True] * 14 + [False] * 2
    assert [float(one["low"]) for one in rows] == [one["low"] for one in records]
    assert set(rows[0]) == set(records[0])
    assert rows[-1]["method"] == "anytime"


async def test_files_have_the_labels_of_quantiles_as_the_document_has_them(page: Page, url: str):
    await open_view(page, url, "ages", "time", '&lines=["Quantile 0.5"]')
    rows, records = await saved(page)
    start = records[0]["start"]
    window = {"start": start, "end": records[0]["end"]}
    first = await ask(url, "ages/estimate", **window, simultaneous="true", quantile="0.5")
    (half,) = (one for one in first["quantiles"] if one["p"] == 0.5)
    names = ("value", "low", "high")
    assert [records[0][name] for name in names] == [half[name] for name in names]
    assert [json.loads(rows[0][name]) for name in names] == [half[name] for name in names]


async def test_what_begins_like_a_formula_is_no_formula_in_a_spreadsheet(page: Page, url: str):
    await open_modules(page, url)
    text = await page.evaluate("""async () => {
      const { csvOf } = await import("/js/views/time-file.js");
      return csvOf([{ line: "=1+1", value: -0.5 }, { line: 'a "b", c', value: null }]);
    }""")
    assert text == 'line,value\r\n\'=1+1,-0.5\r\n"a ""b"", c",\r\n'


async def test_where_all_windows_are_final_files_hold_all_of_them(
    page: Page, closed_url: str
) -> None:
    await open_view(page, closed_url, "modes", "time", "&window=")
    rows, records = await saved(page)
    windows = (await ask(closed_url, "modes/windows"))["windows"]
    assert [one["final"] for one in windows] == [True] * 3
    drawn_lines = [one["line"] for one in records[: len(records) // 3]]
    assert drawn_lines
    assert [(one["start"], one["line"]) for one in records] == [
        (one["window"]["start"], line) for one in windows for line in drawn_lines
    ]
    assert {one["final"] for one in records} == {True}
    assert all(one["low"] <= one["value"] <= one["high"] for one in records)
    assert [float(one["value"]) for one in rows] == [one["value"] for one in records]
