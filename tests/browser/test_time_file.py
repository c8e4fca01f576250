"""Over time, CSV and JSON hold the lines that are drawn, with bounds and how they hold."""

import asyncio
import csv
import io
import json
from pathlib import Path

import pytest
from playwright.async_api import Page

from tests.browser.looking import ask, open_view

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_files_say_what_lines_show_with_bounds_and_method(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "time", '&lines=["walk","bus"]')
    texts = {}
    for form in ("csv", "json"):
        async with page.expect_download() as saving:
            await page.click(f"#save-{form}")
        saved = await saving.value
        assert saved.suggested_filename.endswith(f"-lines.{form}")
        texts[form] = await asyncio.to_thread(Path(await saved.path()).read_bytes)
    records = json.loads(texts["json"])
    windows = (await ask(url, "modes/windows"))["windows"]
    assert [(one["start"], one["line"]) for one in records] == [
        (one["window"]["start"], line) for one in windows for line in ("walk", "bus")
    ]
    first = await ask(url, "modes/estimate", **windows[0]["window"], top="all", simultaneous="true")
    walk = next(one for one in first["distribution"] if one["value"] == "walk")
    assert [records[0][name] for name in ("value", "low", "high", "n", "method", "confidence")] == [
        *(walk[name] for name in ("share", "low", "high")),
        *(first[name] for name in ("n", "method", "confidence")),
    ]
    assert [one["final"] for one in records] == [True] * 14 + [False] * 2
    rows = list(csv.DictReader(io.StringIO(texts["csv"].decode())))
    assert [float(one["low"]) for one in rows] == [one["low"] for one in records]
    assert set(rows[0]) == set(records[0])
    assert rows[-1]["method"] == "anytime"
