"""Write pictures of the page: `python -m tests.browser.screens FOLDER`.

Every view of the newest final window in light and dark and on a phone, drawn by a real Chromium
from example collections, one of which waits for a partition and one rejects; and whole, the
quantiles of a quarter of an hour of start times.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from playwright.async_api import Browser

from tests.browser.chromium import find_chromium, start_chromium
from tests.browser.looking import VIEWS, open_view
from tests.browser.showing import NOW, report, show_collections
from tests.stream import serving
from tests.stream.serving import MINUTE_MS, START_MS, Pipeline, serve

AFTER = "2026-11-21T10:15:10Z"
"""After the quarter of an hour. Clocks stand still, so that ages are the same each time."""
SCREENS = {
    "light": ("light", 1180, 820),
    "dark": ("dark", 1180, 820),
    "phone": ("light", 320, 640),
}


STARTS: dict[str, Any] = {
    "mechanism": "l1-geometric",
    "epsilon": 0.1,
    "domain": {"interval": [0.0, 6.4], "bins": 128},
    "estimand": "population",
    "partitions": 1,
    "window": {"size": "15m", "retention": "1h"},
    "publish": {"every": "100ms", "top": 0, "quantiles": [0.5, 0.95]},
}


DOORS: dict[str, Any] = {
    "mechanism": "randomized-response",
    "epsilon": 3.0,
    "domain": {"values": ["main gate", "north gate", "garage", "staff door"]},
    "partitions": 4,
    "minimum": 100,
    "window": {"size": "1m", "idle": "off", "retention": "1h"},
    "publish": {"every": "100ms", "top": 4},
}


def show_many() -> Pipeline:
    """Return collections of every kind, a silent partition, and senders of something else."""
    pipeline = show_collections(reports=20_000)
    report(pipeline.collections["places"], 7, 300_000, seed=99)
    pipeline.collections["places"].close(START_MS + 8 * MINUTE_MS)
    for _ in range(3):
        pipeline.collections["ages"].deliver(0, serving.foreign_frame())
    doors = serving.serve_collections({"doors": DOORS}).collections["doors"]
    rng = np.random.default_rng(5)
    names = DOORS["domain"]["values"]
    for minute in range(8):
        for partition in range(4):
            if partition == 2 and minute > 3:
                continue
            labels = rng.choice(names, 500, p=[0.42, 0.29, 0.2, 0.09]).tolist()
            doors.report(partition, labels, times_ms=[START_MS + minute * MINUTE_MS] * 500)
    doors.close(START_MS)
    return Pipeline({"doors": doors, **pipeline.collections}, clock=serving.stopped_clock(NOW))


def show_starts() -> Pipeline:
    """Return 31,250 times that applications took to start, in a window that is final."""
    pipeline, rng = serving.serve_collections({"starts": STARTS}), np.random.default_rng(7)
    pipeline.clock = serving.stopped_clock(AFTER)
    warm = rng.random(31_250) < 0.7
    seconds = rng.lognormal(np.where(warm, -0.8, 0.2), np.where(warm, 0.35, 0.4))
    labels = seconds.clip(0.0, 6.4).tolist()
    pipeline.collections["starts"].report(0, labels, times_ms=[START_MS] * len(labels), seed=3)
    pipeline.collections["starts"].close(START_MS + 15 * MINUTE_MS)
    return pipeline


async def write(folder: Path, path: str, *, whole: bool) -> None:
    """Write a picture of each view on each screen; of all that can be scrolled to if `whole`."""
    async with serve(show_many()) as url, start_chromium(path) as browser:
        for screen in SCREENS:
            await _write_screen(folder, browser, url, screen, VIEWS, now=NOW, whole=whole)
    async with serve(show_starts()) as url, start_chromium(path) as browser:
        for screen in SCREENS:
            starts = (("starts", "cumulative"),)
            await _write_screen(folder, browser, url, screen, starts, now=AFTER, whole=True)


async def _write_screen(
    folder: Path,
    browser: Browser,
    url: str,
    screen: str,
    views: Iterable[tuple[str, str]],
    *,
    now: str,
    whole: bool,
) -> None:
    scheme, width, height = SCREENS[screen]
    context = await browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
    )
    page = await context.new_page()
    await page.clock.set_fixed_time(now)
    for collection, view in views:
        await open_view(page, url, collection, view, "&window=")
        await page.wait_for_timeout(300)
        await page.screenshot(path=folder / f"{screen}-{collection}-{view}.png", full_page=whole)
    await context.close()


def main() -> None:
    """Read the options, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--whole", action="store_true", help="the whole page, not one screen")
    options = parser.parse_args()
    path = find_chromium()
    if path is None:
        sys.exit("no Chromium on the PATH; on Debian: apt-get install chromium")
    options.folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(write(options.folder, path, whole=options.whole))


if __name__ == "__main__":
    main()
