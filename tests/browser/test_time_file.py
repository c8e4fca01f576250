"""Over time, CSV and JSON hold the lines that are drawn, with bounds and how they hold."""

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page

from ldpstream.agents.web import serve
from tests.browser.looking import ask, open_modules, open_view
from tests.browser.showing import MODES, report
from tests.stream.serving import MINUTE_MS, START_MS, serve_collections

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def closed_url() -> AsyncIterator[str]:
    """Serve a collection whose windows are all final."""
    pipeline = serve_collections({"modes": MODES})
    served = pipeline.collections["modes"]
    for minute in range(3):
        report(served, minute, 500, seed=minute)
    served.close(START_MS + 3 * MINUTE_MS)
    async with serve(pipeline, port=0) as started:
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
    lines = [one["line"] for one in records[: len(records) // 3]]
    assert lines
    assert [(one["start"], one["line"]) for one in records] == [
        (one["window"]["start"], line) for one in windows for line in lines
    ]
    assert {one["final"] for one in records} == {True}
    assert all(one["low"] <= one["value"] <= one["high"] for one in records)
    assert [float(one["value"]) for one in rows] == [one["value"] for one in records]
