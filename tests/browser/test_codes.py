"""Integer labels are codes: the page shows every digit of them, also those that no double holds."""

from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page

from tests.browser.looking import open_modules, open_view, rows
from tests.browser.showing import EACH
from tests.stream.serving import MINUTE_MS, START_MS, Pipeline, serve_collections

pytestmark = pytest.mark.asyncio(loop_scope="session")

CODES = [1234567890123, 1234567890124, 9007199254740992, 9007199254740993, -9007199254740993]
SHOPS: dict[str, Any] = {
    "mechanism": "randomized-response",
    "epsilon": 3.0,
    "domain": {"values": CODES},
    **EACH,
    "publish": {"top": 5},
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pipeline() -> Pipeline:
    pipeline = serve_collections({"shops": SHOPS})
    labels = [code for number, code in enumerate(CODES) for _ in range(200 * (number + 1))]
    pipeline.collections["shops"].report(0, labels, times_ms=[START_MS] * len(labels))
    pipeline.collections["shops"].close(START_MS + MINUTE_MS)
    return pipeline


async def test_codes_have_all_their_digits(page: Page, url: str) -> None:
    await open_view(page, url, "shops", "values", more=f"&window={START_MS}")
    assert sorted(row[0] for row in await rows(page, "#value-rows")) == sorted(map(str, CODES))


@pytest.mark.parametrize(
    ("json", "parsed"),
    [
        ('{"a": 9007199254740993}', {"a": "9007199254740993"}),
        ("[1234567890123,-9007199254740993]", [1234567890123, "-9007199254740993"]),
        (
            '["x: 9007199254740993,", 0.30000000000000004, 9007199254740993]',
            ["x: 9007199254740993,", 0.30000000000000004, "9007199254740993"],
        ),
        (
            '{"a\\"b": [90071992547409930, 1e300, 12345678901234567.5]}',
            {'a"b': ["90071992547409930", 1e300, 12345678901234567.5]},
        ),
        ("no json", {}),
    ],
)
async def test_integers_that_no_double_holds_become_texts(
    page: Page, url: str, json: str, parsed: Any
) -> None:
    await open_modules(page, url)
    script = "async text => (await import('/js/api.js')).parseExactly(text)"
    assert await page.evaluate(script, json) == parsed


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1234567890123, "1234567890123"),
        (0.1 + 0.2, "0.3"),
        (1 / 3, "0.333333333333333"),
        (-0.0, "0"),
        (1700000000123.5, "1700000000123.5"),
    ],
)
async def test_numbers_have_the_digits_that_doubles_keep(
    page: Page, url: str, number: float, text: str
) -> None:
    await open_modules(page, url)
    script = "async number => (await import('/js/format.js')).numberText(number)"
    assert await page.evaluate(script, number) == text


async def test_edges_are_the_decimals_of_the_configuration(page: Page, url: str) -> None:
    await open_modules(page, url)
    script = """async () => {
        const { upperEnd } = await import('/js/axis.js');
        const ends = (low, high, bins) => Array.from({ length: bins }, (_, place) =>
            upperEnd({ intervals: [[low, high]], shape: [bins], rounded: false }, 0, place));
        return [ends(0, 5, 50), ends(-1000, 1000, 20000).slice(9999, 10005)];
    }"""
    tenths, fine = await page.evaluate(script)
    assert tenths == [round(0.1 * (place + 1), 1) for place in range(50)]
    assert fine == [0, 0.1, 0.2, 0.3, 0.4, 0.5]
