"""Maps, lines and labels show the areas that stand out, with the numbers of the API."""

import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.looking import ask, numbers, open_view, rows
from tests.stream.serving import MINUTE_MS, START_MS, Pipeline

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("collection", ["places", "spots"])
async def test_every_area_of_the_map_is_in_its_table(
    page: Page, url: str, pipeline: Pipeline, collection: str
) -> None:
    crowd(pipeline)
    document = await ask(url, f"{collection}/estimate", top=0, areas="true", method="anytime")
    entries = document["areas"]["entries"]
    await open_view(page, url, collection, "map")
    await page.click("#areas summary")
    shown = await rows(page, "#all-area-rows")
    names = "share", "low", "high"
    assert [[row[0], *row[2:5]] for row in shown] == [
        [spoken(one["name"]), *numbers(one, *names)] for one in entries
    ]
    named = [one for one in entries if one["inside"] is not None]
    assert await page.locator("#area-rows tbody tr").count() == min(10, len(named))
    assert bool(named) == (collection == "places")
    family = f"for all {document['areas']['family']:,} areas that"
    await expect(page.locator("#map-bounds")).to_contain_text(family)


def spoken(name: str) -> str:
    """Return the name of an area as the page writes it: `44 to 49, 97` for `44..49,97..97`."""
    sides = [[end.removesuffix(".0") for end in side.split("..")] for side in name.split(",")]
    return ", ".join(" to ".join(dict.fromkeys(ends)) for ends in sides)


def crowd(pipeline: Pipeline) -> None:
    """Let one place of the open window's map stand out."""
    times = [START_MS + 7 * MINUTE_MS] * 6_000
    pipeline.collections["places"].report(0, [[50, 110]] * 6_000, times_ms=times)


async def test_the_map_is_painted_zoomed_and_read_out(
    page: Page, url: str, pipeline: Pipeline
) -> None:
    crowd(pipeline)
    await open_view(page, url, "places", "map")
    document = await ask(url, "places/estimate", top=0, areas="true", method="anytime")
    entries = document["areas"]["entries"]
    place = max(
        (at for at, one in enumerate(entries) if one["inside"] is not None),
        key=lambda at: entries[at]["share"],
    )
    (top, _), (left, _) = entries[place]["box"]
    before = await pixels(page)
    assert len(before) > 5
    await page.focus("#map-frame")
    for key, times in (("PageDown", top // 10), ("ArrowDown", top % 10), ("ArrowRight", left)):
        for _ in range(times):
            await page.keyboard.press(key)
    said = page.locator("#tip")
    await expect(said).to_contain_text(f"Place [{top}, {left}]")
    owner = innermost(entries, top, left)
    await expect(said).to_contain_text(spoken(entries[owner]["name"]))
    rest = entries[owner]["rest"] or entries[owner]
    shown = await page.locator("#tip data").evaluate_all("all => all.map(d => +d.value)")
    assert shown == numbers(rest, "share", "low", "high")
    await page.keyboard.press("+")
    await expect(page).to_have_url(re.compile(r"zoom=\d+%2C\d+%2C2"))
    await expect(said).to_contain_text(f"Place [{top}, {left}]")
    await page.keyboard.press("0")
    assert "zoom" not in page.url
    await page.select_option("#measure", "blocks")
    await expect(page.locator("#stand-out")).to_be_hidden()
    assert await pixels(page) != before


def innermost(entries: list[dict[str, Any]], row: int, column: int) -> int:
    """Return the entry that a place has its colour of."""
    found = -1
    for at, one in enumerate(entries):
        (top, bottom), (left, right) = one["box"]
        if top <= row <= bottom and left <= column <= right:
            found = at
    return found


@pytest.mark.parametrize("collection", ["ages", "modes"])
async def test_what_stands_out_of_lines_and_labels_and_the_rest_of_them(
    page: Page, url: str, collection: str
) -> None:
    asked = {"top": 0, "areas": "true", "simultaneous": "true"}
    window = {"start": "2026-11-21T10:06:00Z", "end": "2026-11-21T10:07:00Z"}
    areas = (await ask(url, f"{collection}/estimate", **asked, **window))["areas"]
    root, *named = areas["entries"]
    assert named
    await open_view(page, url, collection, "values", "&window=&top=areas")
    first, *others = await rows(page, "#value-rows")
    assert first[:2] == ["the rest of all values", root["rest"]["share"]]
    ends = "share", "low", "high"
    shown = [[row[1], *row[3:5]] for row in others if not row[0].startswith("the rest")]
    assert shown == [numbers(one, *ends) for one in named]
    await expect(page.locator("#values-sum")).to_contain_text("out: ")
    await expect(page.locator("#bounds")).to_contain_text(f"for all {areas['family']} areas that")


async def pixels(page: Page) -> set[int]:
    """Return the colours of the map."""
    script = """canvas => {
      const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return [...new Set(new Uint32Array(data.buffer))];
    }"""
    return set(await page.locator("#map-canvas").evaluate(script))


async def shown_part(page: Page) -> list[float]:
    """Return the row and the column in the middle of the map, and its magnification."""
    found = re.search(r"zoom=([\d.]+)%2C([\d.]+)%2C([\d.]+)", page.url)
    return [float(one) for one in found.groups()] if found else []


async def test_the_wheel_a_drag_and_two_fingers_move_the_map(page: Page, url: str) -> None:
    await open_view(page, url, "places", "map", "&window=")
    canvas = page.locator("#map-canvas")
    await canvas.scroll_into_view_if_needed()
    box = await canvas.bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    # The whole is not zoomed out of: the page scrolls.
    await page.mouse.move(*middle)
    await page.mouse.wheel(0, 40)
    outward = """() => new Promise(resolve => {
      const frame = document.querySelector("#map-frame");
      frame.addEventListener("wheel", event => resolve(event.defaultPrevented), {once: true});
      frame.dispatchEvent(new WheelEvent("wheel", {deltaY: 40, cancelable: true}));
    })"""
    assert await page.evaluate(outward) is False
    await page.mouse.wheel(0, -800)
    await expect(page).to_have_url(re.compile("zoom="))
    row, column, factor = await shown_part(page)
    assert factor == 4
    await page.mouse.down()
    await page.mouse.move(middle[0] + 100, middle[1] + 30, steps=4)
    await page.mouse.up()
    # What was in the middle has moved with the pointer, right and down.
    await expect(page).not_to_have_url(re.compile(rf"zoom={row:g}%2C{column:g}%2C"))
    dragged = await shown_part(page)
    assert dragged[0] < row
    assert dragged[1] < column
    assert dragged[2] == factor
    session = await page.context.new_cdp_session(page)
    for kind, apart in (("touchStart", 80), ("touchMove", 60), ("touchMove", 40), ("touchEnd", 0)):
        fingers = [{"x": middle[0] + side * apart, "y": middle[1], "id": side} for side in (-1, 1)]
        points = [{**one, "id": number} for number, one in enumerate(fingers)] if apart else []
        await session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    await expect(page).to_have_url(re.compile(r"zoom=[\d.]+%2C[\d.]+%2C2(&|$)"))
    await page.click("#map-fit")
    assert await shown_part(page) == []
