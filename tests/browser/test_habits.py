"""What people do with the page beside looking: their language, their clock, their own documents."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE_MS
from tests.browser.looking import ask, open_view
from tests.stream.serving import Pipeline

pytestmark = pytest.mark.asyncio(loop_scope="session")

TIME = "2026-11-21T10:05:00Z"


@asynccontextmanager
async def speaking(browser: Browser, locale: str, zone: str = "UTC") -> AsyncIterator[Page]:
    """Give a page of a browser in a language and a time zone."""
    context = await browser.new_context(locale=locale, timezone_id=zone)
    context.set_default_timeout(PATIENCE_MS)
    try:
        yield await context.new_page()
    finally:
        await context.close()


@pytest.mark.parametrize(
    ("locale", "day", "clock", "digits"),
    [
        ("en-US", "Sat, Nov 21, 2026, 10:05 – 10:06 UTC", "10:05", "0123456789.,%"),
        ("de-DE", "Sa., 21. Nov. 2026, 10:05 – 10:06 UTC", "10:05", "0123456789,.%"),
        ("ar-EG", "السبت، ٢١ نوفمبر ٢٠٢٦, ١٠:٠٥ – ١٠:٠٦ UTC", "١٠:٠٥", "٠١٢٣٤٥٦٧٨٩٫٬٪"),
    ],
)
async def test_numbers_and_dates_are_written_as_the_language_does(
    browser: Browser, url: str, locale: str, day: str, clock: str, digits: str
) -> None:
    as_here = str.maketrans("0123456789.,%", digits)
    document = await ask(url, "modes/estimate", start=TIME, end=TIME.replace("05", "06"), top="all")
    async with speaking(browser, locale) as page:
        await open_view(page, url, "modes", "values", f"&window={TIME}")
        assert plain(await page.locator("#state-words").inner_text()) == day
        assert plain(await page.locator("#n").inner_text()) == f"{document['n']:,}".translate(
            as_here
        )
        row = page.locator("#value-rows tbody tr").first
        share = next(one for one in document["distribution"] if one["value"] == "walk")["share"]
        assert f"{100 * share:.1f}%".translate(as_here) in plain(await row.inner_text())
        assert clock in await page.locator("#window option:checked").inner_text()


def plain(text: str) -> str:
    """Return a text without the marks of direction and the spaces before units."""
    return re.sub(r"[\u200e\u200f\u061c]|[\u00a0\u202f ](?=%)", "", text)


async def test_times_are_utc_until_the_local_ones_are_chosen(browser: Browser, url: str) -> None:
    async with speaking(browser, "en-GB", "Asia/Kolkata") as page:
        await open_view(page, url, "modes", "values", f"&window={TIME}")
        said = page.locator("#state-words")
        await expect(said).to_have_text("Sat, 21 Nov 2026, 10:05 – 10:06 UTC")
        await page.get_by_role("button", name="Times: UTC").click()
        await expect(said).to_have_text("Sat, 21 Nov 2026, 15:35 – 15:36 GMT+5:30")
        await page.reload()
        await expect(said).to_have_text("Sat, 21 Nov 2026, 15:35 – 15:36 GMT+5:30")
        await expect(page.locator("#strip-first")).to_have_text("15:30")
        # What is asked for, kept in the address and saved, does not depend on it.
        assert f"window={TIME}" in page.url
