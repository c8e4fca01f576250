"""The nine jobs of an analyst, an operator and a privacy officer, each in at most three clicks.

A week of recorded windows of an hour has a truth that is known: on the last day 4.5 points more
walk than the day before, and visits to two of twelve districts grew.

1. What is it now?
2. What changed since yesterday?
3. Is it real, or noise?
4. Which district grew?
5. How does it compare with the same hour yesterday, and the same weekday?
6. Is anything stuck, or withheld?
7. A number for a report: as a file, and as a command.
8. How much privacy is spent in a year?
9. How was it on an old day?
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from ldpstream.mechanisms.base.times import format_time, parse_time
from tests.browser.looking import ask, rows
from tests.browser.test_keyboard import FOCUSED, tab_to
from tests.stream.serving import Pipeline, serve_collections, stopped_clock

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOUR_MS = 3_600_000
NOW = "2026-11-21T00:02:00Z"
END_MS = parse_time("2026-11-21T00:00:00Z")
HOURS = 7 * 24
_EACH: dict[str, Any] = {
    "epsilon": 2.0,
    "partitions": 1,
    "minimum": 1,
    "window": {"size": "1h", "retention": "8d", "grace": "0s", "idle": "off"},
}
_DAILY: dict[str, Any] = {"spread": {"reports": 1, "horizon": "24h"}}
"""Each device reports in one hour of each day: a day has as many devices as reports."""
MODES = ["walk", "bike", "bus", "car"]
TABLES: dict[str, dict[str, Any]] = {
    "modes": {
        **_EACH,
        **_DAILY,
        "mechanism": "randomized-response",
        "domain": {"values": MODES},
    },
    "visits": {
        **_EACH,
        **_DAILY,
        "mechanism": "block-hadamard",
        "domain": {"grid": [12, 16], "blocks": [4, 4]},
    },
    "doors": {
        **_EACH,
        "mechanism": "randomized-response",
        "domain": {"values": ["main", "garage"]},
        "partitions": 2,
    },
    "wards": {
        **_EACH,
        "mechanism": "randomized-response",
        "domain": {"values": ["1", "2"]},
        "minimum": 1_000,
    },
}
GROWN = (2, 9)
"""The districts with more visits on the last day."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pipeline() -> Pipeline:
    """Give the week; a partition of `doors` has been silent for a day, and `wards` are few."""
    served = serve_collections(TABLES)
    served.clock = stopped_clock(NOW)
    modes, visits, doors, wards = served.collections.values()
    rng = np.random.default_rng(11)
    districts = np.array([[1 + 4 * (at // 4), 1 + 4 * (at % 4)] for at in range(12)])
    before_ms = END_MS - (HOURS + 1) * HOUR_MS
    visits.report(0, districts.tolist(), times_ms=[before_ms] * 12)
    for hour in range(HOURS):
        time_ms = END_MS + (hour - HOURS) * HOUR_MS
        last = hour >= HOURS - 24
        walk = 0.345 if last else 0.3
        shares = [walk, 0.2, 0.3, 0.5 - walk]
        labels = rng.choice(MODES, 500, p=shares).tolist()
        modes.report(0, labels, times_ms=[time_ms] * 500, seed=hour)
        where = np.full(12, 1.0)
        where[list(GROWN)] = 1.6 if last else 1.0
        picked = rng.choice(12, 500, p=where / where.sum())
        visits.report(0, districts[picked].tolist(), times_ms=[time_ms] * 500, seed=hour)
        doors.report(0, ["main"] * 20, times_ms=[time_ms] * 20, seed=hour)
        if not last:
            doors.report(1, ["main"] * 20, times_ms=[time_ms] * 20, seed=hour)
        wards.report(0, ["1"] * 5, times_ms=[time_ms] * 5, seed=hour)
    for one in (modes, visits, wards, doors):
        until_ms = END_MS - (24 * HOUR_MS if one is doors else 0)
        while (one.replicas[0].head or one).final < one.context.window.pane(until_ms):
            one.close(until_ms)
    return served


_COUNT: Final = """() => {
  window.clicks = 0;
  const count = ({type, target, isTrusted}) => {
    window.clicks += type === "click" ? isTrusted : target.matches("select");
  };
  for (const type of ["click", "change"]) addEventListener(type, count, true);
}"""
"""Counts in the browser: clicks, whatever makes them, and choices in lists, each once."""


async def count_clicks(page: Page) -> int:
    """Return how many clicks and choices the page has seen since it was opened."""
    return int(await page.evaluate("window.clicks"))


async def choose(page: Page, selector: str, value: str) -> None:
    """Choose from a list, which is open and chosen from in one movement."""
    await page.locator(f"{selector} option[value='{value}']").wait_for(state="attached")
    await page.select_option(selector, value)


async def open_home(page: Page, url: str) -> None:
    """Open the home page of the worker, and count from there."""
    await page.goto("about:blank")
    await page.goto(url)
    await expect(page.locator("#overview-rows tbody tr")).to_have_count(len(TABLES))
    await page.evaluate(_COUNT)


@pytest_asyncio.fixture(loop_scope="session")
async def home(page: Page, url: str) -> AsyncIterator[Page]:
    """Give the home page, and allow three clicks."""
    await open_home(page, url)
    yield page
    assert await count_clicks(page) <= 3


def collection(name: str) -> str:
    """Return the selector of a collection's link on the home page."""
    return f"#overview-rows th a:text-is('{name}')"


def span(days: int) -> dict[str, str]:
    """Return a day that ends so many days before the newest final window does."""
    ends = [END_MS - HOUR_MS * 24 * (days + more) for more in (1, 0)]
    return dict(zip(("start", "end"), map(format_time, ends), strict=True))


async def judged(url: str, name: str, **query: Any) -> dict[str, Any]:
    """Return the worker's own judgement of the last day against the day before it."""
    before = {f"before_{end}": time for end, time in span(1).items()}
    answer: dict[str, Any] = await ask(url, f"{name}/change", **span(0), **before, **query)
    return answer


async def test_what_is_it_now(home: Page, url: str) -> None:
    document = await ask(url, "modes/estimate", top=1)
    (first,) = document["distribution"]
    row = home.locator("#overview-rows tbody tr").filter(has_text="modes")
    await expect(row).to_contain_text(f"{first['value']} has {100 * first['share']:.1f}%")
    assert await count_clicks(home) == 0


async def test_what_changed_since_yesterday_and_is_it_real(home: Page, url: str) -> None:
    """4.5 points more walk: told of the days, and of no two hours."""
    await home.click(collection("modes"))
    await choose(home, "#window", "day")
    await choose(home, "#compare", "yesterday")
    panel = home.locator("#compared")
    await expect(home.locator("#compared-rows tbody tr")).to_have_count(2)
    shown = {row[0]: row[-1] for row in await rows(home, "#compared-rows")}
    answer = await judged(url, "modes", top="all")
    told = {one["value"]: one for one in answer["values"] if one["told"]}
    assert shown.keys() == told.keys() == {"walk", "car"}
    walk, car = told["walk"], told["car"]
    assert walk["low"] <= 0.045 <= walk["high"]
    assert car["low"] <= -0.045 <= car["high"]
    assert (shown["walk"], shown["car"]) == (walk["change"], car["change"])
    await expect(panel).to_contain_text("2 of 4 changed since Thu, Nov 19")
    await expect(panel).to_contain_text("No difference is shown for the other 2.")
    # What is assumed is said.
    await expect(home.locator("#devices option:checked")).to_have_text(
        "devices in both, fresh noise"
    )
    assert await count_clicks(home) == 3


async def test_who_knows_more_of_the_devices_says_it(page: Page, url: str) -> None:
    await page.goto("about:blank")
    await page.goto(f"{url}/#collection=modes&window=day&compare=yesterday")
    panel = page.locator("#compared")
    await expect(panel).to_contain_text("2 of 4 changed since Thu, Nov 19")
    await page.select_option("#devices", "different")
    await expect(panel).to_contain_text("all reports of both spans come from different ones")
    narrower = await judged(url, "modes", top="all", devices="different")
    now = {row[0]: row[-1] for row in await rows(page, "#compared-rows")}
    assert now["walk"] == narrower["values"][0]["change"]
    assert "devices=different" in page.url


async def test_no_hour_alone_tells_what_a_day_does(home: Page) -> None:
    await home.click(collection("modes"))
    await choose(home, "#compare", "yesterday")
    await expect(home.locator("#compared-sum")).to_contain_text("no difference is shown for any")
    # The same hour a week before has expired or never was: said, not guessed.
    await choose(home, "#compare", "week-before")
    await expect(home.locator("#compared-sum")).to_contain_text("Nothing is compared: ")


async def test_the_same_hour_of_yesterday_and_of_the_same_weekday(home: Page) -> None:
    await home.click(collection("visits"))
    for compare, day in (("yesterday", "Thu, Nov 19"), ("week-before", "Fri, Nov 13")):
        await choose(home, "#compare", compare)
        await expect(home.locator("#compared-sum")).to_contain_text(f"Since {day}, 23:00")
    assert await count_clicks(home) == 3


async def test_which_district_grew(home: Page, url: str) -> None:
    await home.click(collection("visits"))
    await choose(home, "#window", "day")
    await choose(home, "#compare", "yesterday")
    names = " and ".join(f"Block {block}" for block in GROWN)
    await expect(home.locator("#map-sum")).to_have_text(
        f"{names} rose; no difference is shown for the other 10."
    )
    answer = await judged(url, "visits", top="all", blocks="true")
    assert [one["block"] for one in answer["blocks"] if one["told"]] == list(GROWN)
    assert await home.input_value("#measure") == "change"
    await expect(home.locator("#hatch-key")).to_contain_text("no difference shown")
    await home.focus("#map-frame")
    await home.keyboard.press("ArrowDown")
    await expect(home.locator("#tip")).to_contain_text("no difference shown")


async def test_is_anything_stuck_or_withheld(home: Page) -> None:
    said = home.locator("#overview-sum")
    await expect(said).to_contain_text("doors waits for a partition")
    await expect(said).to_contain_text("wards is withheld")
    await home.click("#overview-rows tbody tr:has-text('doors') a[href*=health]")
    await expect(home.locator("#health-sum")).to_contain_text(
        "doors waits for partition 1 (of 2), which"
    )
    await expect(home.locator("#by-hand")).to_contain_text("ldpstream close")


async def test_a_number_for_a_report(home: Page, url: str) -> None:
    await home.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await home.click(collection("modes"))
    async with home.expect_download() as saving:
        await home.click("#save-csv")
    text = await asyncio.to_thread(Path(await (await saving.value).path()).read_text)
    assert text.startswith("collection,start,end,n")
    await home.click("#copy-curl")
    await expect(home.locator("#copied")).to_have_text("Copied")
    copied: str = await home.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"curl '{url}/api/collections/modes/estimate?start=")


async def test_how_much_privacy_a_year(home: Page) -> None:
    await home.click("#overview-rows tbody tr:has-text('modes') a[href*=privacy]")
    await expect(home.locator("#spent")).to_contain_text("any 365 days: 8,761 windows732")


async def test_an_old_day(home: Page) -> None:
    await home.click(collection("modes"))
    await choose(home, "#window", "day")
    await expect(home.locator("#n")).to_have_text("12,000")
    await home.click("#older")
    await expect(home.locator("#state-words")).to_contain_text("Nov 19")
    await expect(home.locator("#n")).to_have_text("12,000")


async def test_lines_reach_over_the_whole_week(home: Page, url: str) -> None:
    await home.click(collection("modes"))
    await home.click("#tab-time")
    await expect(home.locator("#window-rows tbody tr")).to_have_count(24)
    await home.click("#spans [data-last=week]")
    answer = await ask(url, "modes/series", published="true", top=0, value="walk")
    assert answer["windows_a_point"] == 2
    # Each pair of hours is a point.
    await expect(home.locator("#window-rows tbody tr")).to_have_count(HOURS // 2)
    await expect(home.locator("#time-bounds")).to_contain_text("Each point adds up to 2 windows.")
    shown = {row[0]: row for row in await rows(home, "#window-rows")}
    first = answer["lines"][0]
    walk = (await home.locator("#window-rows thead th").all_text_contents()).index("walk")
    oldest = shown["Sat, Nov 14, 00:00 – 02:00"]
    assert oldest[walk] == pytest.approx(first["estimate"][0], abs=1e-6)
    # A point opens as the span that it stands for.
    await home.focus("#time-charts")
    await home.keyboard.press("Home")
    await expect(home.locator("#tip")).to_contain_text("2 windows together")
    await home.keyboard.press("Enter")
    await expect(home.locator("#n")).to_have_text("1,000")


@pytest.mark.parametrize(
    ("name", "view", "place", "text"),
    [
        ("doors", "health", "#health-sum", "doors waits for partition 1 (of 2), which"),
        ("modes", "privacy", "#spent", "any 365 days: 8,761 windows732"),
    ],
)
async def test_a_phone_leads_to_health_and_privacy_in_two_clicks(
    page: Page, url: str, name: str, view: str, place: str, text: str
) -> None:
    await page.set_viewport_size({"width": 390, "height": 844})
    await open_home(page, url)
    await page.click(collection(name))
    await page.click(f"#tab-{view}")
    await expect(page.locator(place)).to_contain_text(text)
    assert await count_clicks(page) == 2


async def test_what_changed_is_found_on_a_phone_and_by_keys_alone(page: Page, url: str) -> None:
    await page.set_viewport_size({"width": 390, "height": 844})
    await open_home(page, url)
    await tab_to(page, "document.activeElement.textContent", "modes")
    await page.keyboard.press("Enter")
    await expect(page.locator("#n")).to_have_text("500")
    await tab_to(page, FOCUSED, "window")
    await page.keyboard.press("t")  # the last 24 hours
    await expect(page.locator("#n")).to_have_text("12,000")
    await tab_to(page, FOCUSED, "compare")
    await page.keyboard.press("t")  # the period before
    await expect(page.locator("#compared-sum")).to_contain_text("2 of 4 changed since Thu, Nov 19")
    assert {row[0] for row in await rows(page, "#compared-rows")} == {"walk", "car"}


async def test_a_day_is_dragged_out_of_the_week(home: Page) -> None:
    """The strip of a week has more than 48 windows: its bars are pairs of hours."""
    await home.click(collection("modes"))
    await choose(home, "#window", "week")
    bars = home.locator("#strip span")
    await expect(bars).to_have_count(HOURS // 2)
    await expect(home.locator("#strip .shown")).to_have_count(HOURS // 2)
    await bars.nth(0).hover()
    await home.mouse.down()
    await bars.nth(11).hover()
    await home.mouse.up()
    await expect(home.locator("#n")).to_have_text("12,000")
    assert await home.input_value("#window") == "2026-11-14T00:00:00Z/2026-11-15T00:00:00Z"
