"""The health of a collection: which partition holds windows open, and what is rejected."""

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.looking import ask, numbers, open_view, rows
from tests.stream.serving import (
    CITY,
    MINUTE_MS,
    START_MS,
    Pipeline,
    foreign_frame,
    serve_collections,
    stopped_clock,
    visits,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pipeline() -> Pipeline:
    """Give a city whose partition 1 is three minutes behind the other."""
    served = serve_collections({"city": CITY})
    for partition, minute in ((0, 0), (1, 0), (0, 4), (1, 1)):
        times = [START_MS + minute * MINUTE_MS] * 200
        served.collections["city"].report(partition, visits(minute, 200), times_ms=times)
    served.collections["city"].deliver(1, foreign_frame())
    return served


async def test_what_holds_windows_open_what_releases_them_and_what_is_rejected(
    page: Page, url: str, pipeline: Pipeline
) -> None:
    pipeline.clock = stopped_clock("2026-11-21T10:21:00Z")
    city = pipeline.collections["city"]
    await page.set_viewport_size({"width": 320, "height": 640})
    await open_view(page, url, "city", "overview")
    badge, row = page.locator("#overview-rows .badge"), page.locator("#overview-rows tbody tr")
    await expect(badge).to_have_text("Waiting 2 min")
    boxes = [await one.bounding_box() for one in (badge, row)]
    ends = [box["x"] + box["width"] for box in boxes if box]
    assert ends[0] <= ends[1], "a row draws nothing outside of itself"
    await page.set_viewport_size({"width": 1280, "height": 900})
    await open_view(page, url, "city", "health")
    said = page.locator("#health-sum")
    await expect(said).to_have_text(
        "No window can close: city waits for partition 1 (of 2), which has reached 10:01 UTC, "
        "3 minutes behind the first."
    )
    await expect(page.locator("#waits")).to_be_hidden()
    status = await ask(url, "city/status")
    reached, states = ("10:04", "10:01"), ("", "waited for")
    assert await rows(page, "#partition-rows") == [
        [f"partition {at}", reached[at], "chart", *numbers(one, "lag", "counted", "late"), state]
        for at, (one, state) in enumerate(zip(status["partitions"], states, strict=True))
    ]
    behind = page.locator("#partition-rows .bar.behind")
    await expect(behind).to_have_count(1)
    assert await page.locator("#releases li").all_inner_texts() == [
        (
            "A report of 10:02 UTC or later in partition 1. "
            "Everything there has been read: nobody writes to it."
        ),
        "Waiting does not help: idle is off, so a silent partition holds windows open for ever.",
    ]
    by_hand = "ldpstream close city --until 2026-11-21T10:01:00Z"
    await expect(page.locator("#by-hand")).to_have_text(by_hand)
    assert [row[:2] for row in await rows(page, "#reason-rows")] == [["fingerprint", 1]]
    await page.click("#tab-values")
    # The window that is shown waits for nobody: no partition has come to its end.
    await expect(page.locator("#waits")).to_be_hidden()
    await page.click("#tab-health")
    # Its command does what the page says.
    city.close(START_MS + MINUTE_MS)
    first, second, *_ = (await ask(url, "city/windows"))["windows"]
    assert (first["final"], second["final"]) == (True, False)
    await expect(page.locator("#by-hand")).to_have_text(by_hand.replace("10:01", "10:02"))
    city.close(START_MS + 6 * MINUTE_MS)
    await expect(said).to_have_text("All windows are final.")
    await expect(page.locator("#release")).to_be_hidden()
    await expect(behind).to_have_count(0)


async def test_a_replay_waits_for_no_partition_and_says_how_old_its_reports_are(
    page: Page, url: str, pipeline: Pipeline
) -> None:
    city = pipeline.collections["city"]
    for partition in range(2):
        times = [START_MS + 9 * MINUTE_MS] * 200
        city.report(partition, visits(3, 200), times_ms=times, seed=9)
    await open_view(page, url, "city", "health")
    pipeline.clock = stopped_clock("2036-11-21T10:09:00Z")
    await page.clock.set_fixed_time("2010-01-01T00:00:00Z")  # the viewer's clock is not asked
    await open_view(page, url, "city", "health")
    await expect(page.locator("#health-sum")).to_have_text(
        "The next window, Sat, Nov 21, 2026, 10:09 – 10:10, becomes final once reports of "
        "Sat, Nov 21, 2026, 10:11 UTC or later arrive: the newest is of "
        "Sat, Nov 21, 2026, 10:09 UTC, 3,653 days ago."
    )
    await expect(page.locator("#release")).to_be_hidden()
    await open_view(page, url, "city", "overview")
    said = page.locator("#overview-sum")
    await expect(said).to_have_text("1 collection: city is behind the clock.")
    await expect(page.locator("#overview-rows .badge")).to_have_text("Behind 3,653 days")
