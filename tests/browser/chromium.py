"""A headless Chromium of the system, driven by Playwright: found, required or skipped."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

from tests import missing

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A new process for every page takes a quarter of what a test of the page does.
    "--renderer-process-limit=1",
)


def find_chromium() -> str | None:
    """Return the path of a Chromium on this machine, or None."""
    # The first has no windows to prepare, and takes a third less of a core for the same pages.
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def need_chromium() -> str:
    """Return the path of Chromium; skip the test without one, or fail where it is required."""
    found = find_chromium()
    if found is None:
        reason = "no Chromium on the PATH; on Debian: apt-get install chromium"
        missing.skip(reason)
    return found


@asynccontextmanager
async def start_chromium(path: str) -> AsyncIterator[Browser]:
    """Start a browser for the length of a block; its profile is new, empty and deleted after."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=path, headless=True, args=list(FLAGS)
        )
        try:
            yield browser
        finally:
            await browser.close()
